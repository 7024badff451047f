package debug

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/panics"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// page is the content of the debug page, and of its JSON form.
type page struct {
	Time           time.Time   `json:"time"`
	Process        string      `json:"process"`
	Version        string      `json:"version"` // of shardkey
	State          state       `json:"state"`
	Connectors     []connector `json:"connectors"`
	Chosen         int         `json:"-"` // number of the connector that the forms use
	Key, Statement string      `json:"-"`
	Decoded        []decoded   `json:"decoded,omitempty"`
	Plan           *planned    `json:"plan,omitempty"`
}

// state is a state of health, from best to worst.
type state int

const (
	good state = iota
	warned
	failing
)

// String returns the state's name, which is also its CSS class.
func (s state) String() string { return [...]string{"ok", "warning", "failing"}[s] }

func (s state) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// connector is the part of the page about one connector.
type connector struct {
	Number     int          `json:"-"`
	Name       string       `json:"name"`
	State      state        `json:"state"`
	Messages   []string     `json:"messages"`           // the reasons for the state
	Warnings   []string     `json:"warnings,omitempty"` // of the rule file
	Stats      driver.Stats `json:"stats"`
	MoreTables int          `json:"moreTables,omitempty"` // tables that Stats doesn't list
	Generators []generator  `json:"-"`
	// FreeWorkerIDs are the numbers of free worker IDs by generator. Those of a store that doesn't
	// answer in time are missing.
	FreeWorkerIDs map[string]int64 `json:"freeWorkerIds,omitempty"`
	from          *driver.Connector
}

// generator is the part of the page about one generator or worker-ID assigner.
type generator struct {
	rule.Status
	State state
}

// Renewed returns the time of the last renewal, which follows from the lease's limit. It is zero
// without a lease, and for one that starts in the future.
func (g generator) Renewed() time.Time {
	lease := g.Health.Lease
	if lease == nil || lease.Limit.IsZero() || lease.Length <= 0 || lease.Left > lease.Length {
		return time.Time{}
	}
	return lease.Limit.Add(-lease.Length)
}

// Segment returns how many keys are in memory, which may be those of two fetches.
func (g generator) Segment() string {
	segment := g.Health.Segment
	switch {
	case segment == nil || segment.Left == nil:
		return ""
	case segment.Size == 0:
		return grouped(*segment.Left)
	}
	return grouped(*segment.Left) + " (" + grouped(segment.Size) + " per fetch)"
}

// Free returns a generator's number of free worker IDs, empty if it is unknown.
func (v connector) Free(generator string) string {
	if free, known := v.FreeWorkerIDs[generator]; known {
		return grouped(free)
	}
	return ""
}

// readFree reads the numbers of free worker IDs from their stores, all at once, until ctx ends.
func (v *connector) readFree(ctx context.Context) {
	answers := make(chan func(), len(v.Generators))
	asked := 0
	for _, g := range v.Generators {
		if g.WorkerIDs == nil || g.Assigner || g.Health.Lease == nil {
			continue
		}
		asked++
		go func() { // a store such as a directory may ignore the context
			free, err := freeOf(ctx, g.WorkerIDs)
			answers <- func() {
				if err == nil {
					v.FreeWorkerIDs[g.Name] = free
				}
			}
		}()
	}
	for range asked {
		select {
		case record := <-answers:
			record()
		case <-ctx.Done():
			return
		}
	}
}

func freeOf(ctx context.Context, l spi.WorkerIDLister) (free int64, err error) {
	defer panics.Recover(&err, "the store of worker IDs")
	ids, err := l.ListWorkerIDs(ctx)
	free = ids.Max + 1
	for _, id := range ids.List {
		if id.ID <= ids.Max && !id.Free() {
			free--
		}
	}
	return free, err
}

// grouped returns a number with commas between groups of three digits.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// maxTables and maxWarnings limit the size of the page. It lists the tables with the most keys.
const maxTables, maxWarnings = 200, 100

func view(ctx context.Context, c *driver.Connector) connector {
	v := connector{Stats: c.Stats(), FreeWorkerIDs: map[string]int64{}, from: c}
	s := &v.Stats
	if v.Name = s.Rule.Name; s.Database != "" {
		v.Name += " · " + s.Database
	}
	warnings := c.Rule().Warnings()
	for _, w := range warnings[:min(maxWarnings, len(warnings))] {
		v.Warnings = append(v.Warnings, w.Error())
	}
	if more := len(warnings) - maxWarnings; more > 0 {
		v.Warnings = append(v.Warnings, fmt.Sprintf("… and %d more warnings", more))
	}
	for _, g := range s.Generators {
		if lease := g.Health.Lease; lease != nil {
			lease.Left = lease.Left.Round(100 * time.Millisecond)
		}
		state, message := judge(&g)
		v.Generators = append(v.Generators, generator{g, state})
		repeats := func(m string) bool { return strings.HasSuffix(m, ": "+message) } // repeats an assigner's error
		if state != good && !slices.ContainsFunc(v.Messages, repeats) {
			v.report(state, g.Name+": "+message)
		}
	}
	if e := s.Rule.ReloadError; e != "" {
		v.report(warned, "the rule's file has changed and cannot be loaded; the earlier rule is in use: "+e)
	}
	for _, t := range s.Tables {
		if t.Duplicates > 0 {
			keys := " generated keys"
			if t.Duplicates == 1 {
				keys = " generated key"
			}
			v.report(warned, t.Table+": "+grouped(t.Duplicates)+keys+" existed already; the log has their worker IDs")
		}
	}
	v.readFree(ctx)
	if len(v.Messages) == 0 {
		v.report(good, "keys can be generated")
	}
	if all := s.Tables; len(all) > maxTables {
		used := func(a, b driver.TableStats) int { return cmp.Compare(b.Keys+b.Errors, a.Keys+a.Errors) }
		slices.SortStableFunc(all, used)
		s.Tables, v.MoreTables = all[:maxTables], len(all)-maxTables
	}
	return v
}

func (v *connector) report(s state, message string) {
	v.State, v.Messages = max(v.State, s), append(v.Messages, message)
}

// judge returns a generator's state, and the reason that matters most to an operator.
func judge(g *rule.Status) (state, string) {
	h := &g.Health
	leased := h.Lease != nil && !h.Lease.Limit.IsZero()
	left := int64(0)
	if h.Segment != nil && h.Segment.Left != nil {
		left = *h.Segment.Left
	}
	takesWorkerID := h.WorkerID == nil && (g.Assigner || strings.HasPrefix(g.Type, "SNOWFLAKE"))
	switch {
	case h.Err != nil && leased && h.Lease.Left > 0:
		return warned, fmt.Sprintf("no more keys in %s unless the lease is renewed: %v", h.Lease.Left, h.Err)
	case h.Err != nil && left > 0:
		return warned, fmt.Sprintf("%d keys are left: %v", left, h.Err)
	case h.Err != nil && leased:
		return failing, fmt.Sprintf("no keys: the lease ended %s ago: %v", -h.Lease.Left, h.Err)
	case h.Err != nil:
		return failing, h.Err.Error()
	case leased && h.Lease.Left <= 0:
		return failing, fmt.Sprintf("no keys: the lease ended %s ago and has not been renewed", -h.Lease.Left)
	case takesWorkerID && h.LastError != nil:
		return failing, "no keys: there is no worker ID: " + h.LastError.Error()
	case len(h.Warnings) > 0:
		return warned, strings.Join(h.Warnings, "; ")
	}
	return good, ""
}

// Settings describes a table of the rule, without its column and generator.
func (v connector) Settings(table string) string {
	t := v.from.Lookup("", table)
	if t == nil {
		return ""
	}
	_, settings, _ := strings.Cut(t.String(), ", ")
	if t.Sharding != nil {
		settings += "; sharded by " + t.Sharding.String()
	}
	return settings
}
