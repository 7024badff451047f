package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
	"github.com/spf13/cobra"
)

func workersCommand(p *program) *cobra.Command {
	var zone *time.Location
	c := &cobra.Command{
		Use:   "workers [GENERATOR...]",
		Short: "show which process holds which worker ID",
		Long: `Use workers to see which processes hold worker IDs, and how many are free. For each
worker ID in the stores of a rule it prints the process, and the times since when and
until when the process may generate keys. It only reads: it leases nothing and creates
nothing in the store. --dsn is the application's database, for generators and worker-ID
assigners that use it.

A worker ID is
  held     a process has leased it
  free     it was released
  expired  its lease ran out without a release; it is free
  ahead    a wrong clock reserved it for more than a day ahead; no process takes it
  fixed    it is configured, not leased
  unknown  its record isn't shardkey's
Worker IDs that aren't listed were never used.

The exit status is 1 if a store can't be read.`,
		Example: `  shardkey workers --dsn @dsn.txt
  watch shardkey workers --rule rule.yaml snowflake`,
		ValidArgsFunction: fromRule(generatorNames),
		RunE:              func(c *cobra.Command, args []string) error { return workers(p, c, zone, args) },
	}
	fs := c.Flags()
	ruleFlag(fs)
	p.dsnFlag(fs)
	timeoutFlag(fs, 10*time.Second)
	zoneFlag(fs, &zone, "of the output")
	return c
}

type workerStores struct {
	Stores []*workerStore `json:"stores"`
	Errors []string       `json:"errors,omitempty"` // one for each store that can't be read
	// WithoutIDs are the generators that use no worker IDs.
	WithoutIDs []string `json:"withoutWorkerIds,omitempty"`
}

type workerStore struct {
	Store      string           `json:"store"`
	Time       string           `json:"time"` // RFC 3339, when the store was read
	Generators []storeUser      `json:"generators"`
	ClockAhead *float64         `json:"clockAheadMs,omitempty"` // this machine's clock minus the store's
	Workers    []workerIDRecord `json:"workers"`
}

// storeUser is a generator whose worker IDs are in a store.
type storeUser struct {
	Name string `json:"name"`
	Max  int64  `json:"max"`  // the highest worker ID
	Free int64  `json:"free"` // number of free worker IDs
}

type workerIDRecord struct {
	ID            int64  `json:"id"`
	State         string `json:"state"`
	Holder        string `json:"holder,omitempty"`
	Host          string `json:"host,omitempty"` // part of Holder
	PID           int64  `json:"pid,omitempty"`
	Since         string `json:"since,omitempty"`
	ReservedUntil string `json:"reservedUntil,omitempty"`
	FreeFrom      string `json:"freeFrom,omitempty"`
	Error         string `json:"error,omitempty"`
}

func workers(p *program, c *cobra.Command, zone *time.Location, args []string) error {
	r, err := p.rule(c)
	if err != nil {
		return err
	}
	names := generatorNames(r)
	if len(args) > 0 {
		names = nil
		for _, arg := range args {
			name, err := generatorName(r, arg)
			if err != nil {
				return err
			}
			names = append(names, name)
		}
	}
	live, err := p.openWith(r)
	if err != nil {
		return err
	}
	defer live.Close() // can't fail: it has leased nothing
	w := &workerReader{now: p.clock.Now, zone: zone}
	ctx, cancel := limited(c)
	defer cancel()
	v := w.read(ctx, live, names)
	err = p.answer(v, func(out io.Writer) { v.print(out, len(args) > 0) }, len(v.Errors) > 0)
	if !p.json() {
		for _, text := range v.Errors {
			p.warn(text)
		}
	}
	return err
}

// workerReader reads the worker IDs of generators.
type workerReader struct {
	now  func() time.Time
	zone *time.Location
}

// read reads the stores one after another. If several generators use a store, it is read
// for each of them and appears once in the result.
func (w *workerReader) read(ctx context.Context, live *rule.Live, names []string) workerStores {
	v := workerStores{Stores: []*workerStore{}}
	for _, name := range names {
		lister, ok := live.Generator(name).(spi.WorkerIDLister)
		if !ok {
			v.WithoutIDs = append(v.WithoutIDs, name)
			continue
		}
		found, err := lister.ListWorkerIDs(ctx)
		if err != nil {
			v.Errors = append(v.Errors, fmt.Sprintf("generator %s: %s", name, trimPrefix(err)))
			continue
		}
		i := slices.IndexFunc(v.Stores, func(s *workerStore) bool {
			return s.Store == found.Store && !slices.ContainsFunc(found.List, isFixed)
		})
		if i < 0 {
			v.Stores, i = append(v.Stores, w.store(found)), len(v.Stores)
		}
		v.Stores[i].Generators = append(v.Stores[i].Generators, storeUser{name, found.Max, freeOf(found)})
	}
	return v
}

func isFixed(id spi.WorkerID) bool { return id.State == "fixed" }

// freeOf returns the number of worker IDs that a new process may lease.
func freeOf(found spi.WorkerIDs) int64 {
	free := found.Max + 1
	for _, id := range found.List {
		switch {
		case isFixed(id):
			return 0
		case 0 <= id.ID && id.ID <= found.Max && !id.Free():
			free--
		}
	}
	return max(free, 0)
}

func (w *workerReader) store(found spi.WorkerIDs) *workerStore {
	s := &workerStore{Store: found.Store, Time: w.time(w.now().Truncate(time.Millisecond)), Workers: []workerIDRecord{}}
	if found.ClockAhead != nil {
		s.ClockAhead = new(float64(found.ClockAhead.Microseconds()) / 1000)
	}
	for _, id := range found.List {
		record := workerIDRecord{
			ID: id.ID, State: id.State, Holder: sqltoken.Printable(id.Holder),
			Since: w.time(id.Since), ReservedUntil: w.time(id.ReservedUntil), FreeFrom: w.time(id.FreeFrom),
		}
		if host, pid, ok := strings.Cut(record.Holder, " pid "); ok {
			if n, err := strconv.ParseInt(pid, 10, 64); err == nil {
				record.Host, record.PID = host, n
			}
		}
		if id.Err != nil {
			record.Error = sqltoken.Printable(trimPrefix(id.Err))
		}
		s.Workers = append(s.Workers, record)
	}
	return s
}

func (w *workerReader) time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return formatTime(t, w.zone)
}

// print prints the stores. It also prints the generators without worker IDs if named is
// set, which means that the arguments name the generators, or if there is no store.
func (ws workerStores) print(w io.Writer, named bool) {
	for _, s := range ws.Stores {
		s.print(w)
	}
	if len(ws.WithoutIDs) > 0 && (named || len(ws.Stores) == 0) {
		fmt.Fprintf(w, "without worker IDs: %s\n", list(ws.WithoutIDs))
	}
}

func (s *workerStore) print(w io.Writer) {
	var names, free []string
	for _, g := range s.Generators {
		names = append(names, g.Name)
		free = append(free, fmt.Sprintf("%s: %d of %d free", g.Name, g.Free, g.Max+1))
	}
	fmt.Fprintf(w, "%s, used by %s\n", s.Store, list(names))
	rows := newTable(w)
	for i, id := range s.Workers {
		if i == 0 {
			fmt.Fprintln(rows, "WORKER\tSTATE\tHOLDER\tSINCE\tRESERVED UNTIL\tFREE FROM")
		}
		fmt.Fprintf(rows, "%d\t%s\t%s\t%s\t%s\t%s\n",
			id.ID, id.State, orDash(id.Holder), orDash(id.Since), orDash(id.ReservedUntil), orDash(id.FreeFrom))
	}
	rows.Flush()
	for _, id := range s.Workers {
		if id.Error != "" {
			fmt.Fprintf(w, "worker ID %d: %s\n", id.ID, id.Error)
		}
	}
	switch {
	case len(s.Workers) == 1 && s.Workers[0].State == "fixed":
		fmt.Fprintln(w, "not leased: another process may use the same worker ID")
		return
	case len(s.Workers) == 0:
		fmt.Fprintln(w, "no worker ID was used so far")
	}
	fmt.Fprintln(w, strings.Join(free, "; "))
	if s.ClockAhead != nil {
		ahead := time.Duration(*s.ClockAhead*1000) * time.Microsecond
		fmt.Fprintf(w, "this machine's clock is %v ahead of the store's\n", ahead.Round(time.Millisecond))
	}
}
