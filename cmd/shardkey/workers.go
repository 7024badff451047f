package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
	"github.com/spf13/cobra"
)

func workersCommand(p *program) *cobra.Command {
	f := new(workersFlags)
	c := &cobra.Command{
		Use:   "workers [GENERATOR…]",
		Short: "say who has which worker id",
		Long: "Says who has which worker id of a rule's generators, since when, and until when keys are\n" +
			"reserved, as the store of their worker-id assigner has it, and how many are free. It\n" +
			"only reads: no worker id is taken, and nothing is made in the store.\n\n" +
			"A worker id is held; free, when it was given back; expired, when its holder went\n" +
			"without giving it back, and it is free; ahead, when a wrong clock reserved it for more\n" +
			"than a day ahead and nobody takes it; fixed, when it is configured and not leased; or\n" +
			"unknown, when its record is not understood. One that is not listed was never used.",
		Example: "  shardkey workers -rule rule.yaml -dsn @dsn.txt\n" +
			"  shardkey workers -rule rule.yaml -watch snowflake",
		ValidArgsFunction: fromRule(generatorsOf),
	}
	fs := c.Flags()
	fs.StringVar(&f.rule, "rule", "", "the rule `file` (required)")
	fs.StringArrayVar(&f.dsns, "dsn", nil, ownHelp)
	fs.BoolVar(&f.watch, "watch", false, "look again and again, until the program is interrupted: a terminal shows the\nlast look, other outputs get a line for each change, and with -o json an\nobject for each look")
	fs.DurationVar(&f.interval, "interval", 2*time.Second, "how long to wait between two looks")
	fs.DurationVar(&f.timeout, "timeout", 10*time.Second, "how long a look may take")
	fs.StringVar(&f.zone, "tz", "UTC", "the time `zone` to print times in: a name as Asia/Shanghai, +08:00, or Local")
	p.outputFlag(fs)
	c.RunE = func(c *cobra.Command, args []string) error { return workers(c.Context(), p, f, args) }
	return c
}

type workersFlags struct {
	rule, zone        string
	dsns              []string
	watch             bool
	interval, timeout time.Duration
}

func (f *workersFlags) check() error {
	switch {
	case f.rule == "":
		return usagef("give the rule file with -rule")
	case f.interval < 100*time.Millisecond:
		return usagef("-interval %v is not 100ms or more", f.interval)
	case f.timeout <= 0:
		return usagef("-timeout %v is not above 0", f.timeout)
	}
	return nil
}

// workerStore is what workers prints of one store.
type workerStore struct {
	Store      string           `json:"store"`
	Time       string           `json:"time"` // of the look, RFC 3339
	Generators []storeUser      `json:"generators"`
	ClockAhead *float64         `json:"clockAheadMs,omitempty"` // of this machine's clock
	Workers    []workerIDRecord `json:"workers"`
}

// storeUser is a generator whose worker ids are in a store.
type storeUser struct {
	Name string `json:"name"`
	Max  int64  `json:"max"`  // the highest worker id
	Free int64  `json:"free"` // how many are free
}

type workerIDRecord struct {
	ID            int64  `json:"id"`
	State         string `json:"state"`
	Holder        string `json:"holder,omitempty"`
	Host          string `json:"host,omitempty"` // in the holder
	PID           int64  `json:"pid,omitempty"`
	Since         string `json:"since,omitempty"`
	ReservedUntil string `json:"reservedUntil,omitempty"`
	FreeFrom      string `json:"freeFrom,omitempty"`
	Error         string `json:"error,omitempty"`
}

func workers(ctx context.Context, p *program, f *workersFlags, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	zone, err := parseZone(f.zone)
	if err != nil {
		return err
	}
	r, g, err := p.openAtWork(f.rule, f.dsns)
	if err != nil {
		return err
	}
	defer g.Close() // nothing was leased
	names, err := chosenGenerators(r, args)
	if err != nil {
		return err
	}
	w := &watcher{p: p, live: g, names: names, named: len(args) > 0, zone: zone, timeout: f.timeout}
	if !f.watch {
		return w.once(ctx)
	}
	return w.watch(ctx, f.interval)
}

// chosenGenerators are those that arguments name, or all.
func chosenGenerators(r *rule.Rule, args []string) ([]string, error) {
	names := generatorNames(r)
	if len(args) == 0 {
		return names, nil
	}
	var chosen []string
	for _, arg := range args {
		i := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, arg) })
		if i < 0 {
			return nil, usagef("%s has no generator %s; its tables have %s%s", r.Name(), quoted(arg), list(names), didYouMean(arg, names))
		}
		if !slices.Contains(chosen, names[i]) {
			chosen = append(chosen, names[i])
		}
	}
	return chosen, nil
}

// watcher looks at the worker ids of generators.
type watcher struct {
	p       *program
	live    *rule.Live
	names   []string
	named   bool // by arguments
	zone    *time.Location
	timeout time.Duration
	seen    map[string]string // what was printed of each worker id, by store and number
}

// look reads the stores, one after another, and returns those that could be read
// with the errors of the others. A store of several generators is read once for each,
// and shown once.
func (w *watcher) look(ctx context.Context) (stores []*workerStore, none []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	for _, name := range w.names {
		lister, ok := w.live.Generator(name).(spi.WorkerIDLister)
		if !ok {
			none = append(none, name)
			continue
		}
		found, listErr := lister.ListWorkerIDs(ctx)
		if listErr != nil {
			err = errors.Join(err, fmt.Errorf("generator %s: %s", name, plain(listErr)))
			continue
		}
		i := slices.IndexFunc(stores, func(s *workerStore) bool {
			return s.Store == found.Store && !slices.ContainsFunc(found.List, isFixed)
		})
		if i < 0 {
			stores, i = append(stores, w.store(found)), len(stores)
		}
		stores[i].Generators = append(stores[i].Generators, storeUser{name, found.Max, freeOf(found)})
	}
	return stores, none, err
}

func isFixed(id spi.WorkerID) bool { return id.State == "fixed" }

// freeOf counts the worker ids that a new process may take.
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

func (w *watcher) store(found spi.WorkerIDs) *workerStore {
	s := &workerStore{Store: found.Store, Time: formatTime(w.p.clock.Now().Truncate(time.Millisecond), w.zone), Workers: []workerIDRecord{}}
	if found.ClockAhead != nil {
		s.ClockAhead = new(float64(found.ClockAhead.Microseconds()) / 1000)
	}
	for _, id := range found.List {
		record := workerIDRecord{
			ID: id.ID, State: id.State, Holder: printable(id.Holder),
			Since: w.time(id.Since), ReservedUntil: w.time(id.ReservedUntil), FreeFrom: w.time(id.FreeFrom),
		}
		if host, pid, ok := strings.Cut(record.Holder, " pid "); ok {
			if n, err := strconv.ParseInt(pid, 10, 64); err == nil {
				record.Host, record.PID = host, n
			}
		}
		if id.Err != nil {
			record.Error = plain(id.Err)
		}
		s.Workers = append(s.Workers, record)
	}
	return s
}

// printable is a text of a store, which anybody may have written, without what a
// terminal would obey.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, text)
}

func (w *watcher) time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return formatTime(t, w.zone)
}

// once looks once.
func (w *watcher) once(ctx context.Context) error {
	stores, none, err := w.look(ctx)
	if printErr := w.print(stores, none); printErr != nil {
		return printErr
	}
	return err
}

// watch looks until ctx ends. A store that is away is an error of that look.
func (w *watcher) watch(ctx context.Context, interval time.Duration) error {
	w.seen = map[string]string{}
	for failed := ""; ; {
		stores, none, err := w.look(ctx)
		if ctx.Err() != nil {
			return nil // interrupted, as it is meant to be
		}
		if w.p.terminal && !w.p.json {
			fmt.Fprint(w.p.out, "\x1b[H\x1b[2J")
		}
		if w.p.terminal || w.p.json {
			if err := w.print(stores, none); err != nil {
				return err
			}
		} else {
			w.printChanges(stores)
		}
		switch {
		case err == nil:
			failed = ""
		case w.p.terminal || w.p.json || failed != err.Error():
			failed = err.Error()
			w.p.fail(err)
		}
		if w.p.out.Flush() != nil {
			return errOutput
		}
		if w.p.clock.Sleep(ctx, interval) != nil {
			return nil
		}
	}
}

// print prints a look.
func (w *watcher) print(stores []*workerStore, none []string) error {
	for _, s := range stores {
		if w.p.json {
			if err := w.p.emit(s); err != nil {
				return err
			}
			continue
		}
		w.printStore(s)
	}
	if !w.p.json && len(none) > 0 && (w.named || len(stores) == 0) {
		fmt.Fprintf(w.p.out, "without worker ids: %s\n", list(none))
	}
	return nil
}

func (w *watcher) printStore(s *workerStore) {
	var names, free []string
	for _, g := range s.Generators {
		names = append(names, g.Name)
		free = append(free, fmt.Sprintf("%s: %d of %d free", g.Name, g.Free, g.Max+1))
	}
	fmt.Fprintf(w.p.out, "%s, for %s\n", s.Store, list(names))
	rows := newTable("WORKER", "STATE", "HOLDER", "SINCE", "RESERVED UNTIL", "FREE FROM")
	for _, id := range s.Workers {
		rows.add(strconv.FormatInt(id.ID, 10), w.state(id.State), orDash(id.Holder), orDash(id.Since), orDash(id.ReservedUntil), orDash(id.FreeFrom))
	}
	rows.print(w.p.out)
	for _, id := range s.Workers {
		if id.Error != "" {
			fmt.Fprintf(w.p.out, "worker id %d: %s\n", id.ID, id.Error)
		}
	}
	if len(s.Workers) == 1 && s.Workers[0].State == "fixed" {
		fmt.Fprintln(w.p.out, "not leased: nothing says who else has it")
		return
	}
	if len(s.Workers) == 0 {
		fmt.Fprintln(w.p.out, "none was ever used")
	}
	fmt.Fprintln(w.p.out, strings.Join(free, "; "))
	if s.ClockAhead != nil {
		fmt.Fprintf(w.p.out, "this machine's clock is %s\n", aheadText(*s.ClockAhead))
	}
}

func aheadText(ms float64) string {
	way := "ahead of"
	if ms < 0 {
		ms, way = -ms, "behind"
	}
	return fmt.Sprintf("%v %s the store's", (time.Duration(ms*1000) * time.Microsecond).Round(time.Millisecond), way)
}

// printChanges prints a line for each worker id that has another state or holder
// than at the last look.
func (w *watcher) printChanges(stores []*workerStore) {
	for _, s := range stores {
		for _, id := range s.Workers {
			name := fmt.Sprintf("%s worker id %d", s.Store, id.ID)
			is := strings.TrimRight(fmt.Sprintf("%s %s", id.State, id.Holder), " ")
			if w.seen[name] != is+id.Since {
				w.seen[name] = is + id.Since
				fmt.Fprintf(w.p.out, "%s %s: %s\n", s.Time, name, is)
			}
		}
	}
}

func (w *watcher) state(state string) string {
	as := map[string]colour{
		"held": green, "free": faint, "expired": yellow, "ahead": red, "unknown": red,
	}[state]
	if as == "" {
		return state
	}
	return w.p.colours.out(as, state)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
