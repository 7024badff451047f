package debug

import (
	"fmt"
	"strings"
	"time"

	"github.com/shardkey/shardkey/driver"
)

// generatorView is a generator or a worker-id assigner.
type generatorView struct {
	driver.GeneratorStats
	State  state
	Says   string
	Worker string   // the worker id, empty for none
	Tables []string // those that it fills
	Keys   int64
	Lease  *bar
	Left   *bar // of the segment
	Rate   *chart
	Rows   []figure
}

// bar is what is left of something, of a width of 100.
type bar struct {
	State state
	Width float64
	Says  string // how much is left
	Until string // for a lease: when it ends
}

// bars below this share of the whole are marked: a lease is renewed, and a segment
// fetched, well before.
const lowShare = 0.25

func viewGenerator(g driver.GeneratorStats, tables []driver.TableStats, series []sample) generatorView {
	g.LeaseLeft = g.LeaseLeft.Round(100 * time.Millisecond)
	v := generatorView{GeneratorStats: g, Keys: keysOf(g, tables)}
	for _, t := range tables {
		if t.Generator == g.Name && !g.Assigner {
			v.Tables = append(v.Tables, t.Table)
		}
	}
	h := g.Health
	if h.WorkerID != nil {
		v.Worker = fmt.Sprint(*h.WorkerID)
	}
	v.judge()
	if !h.LeaseLimit.IsZero() {
		b := &bar{Says: seconds(g.LeaseLeft) + " left", Until: clockTime(h.LeaseLimit)}
		if h.LeaseLength > 0 {
			b.Says += " of " + seconds(h.LeaseLength)
		}
		b.of(float64(g.LeaseLeft), float64(h.LeaseLength))
		if g.LeaseLeft <= 0 {
			b.Says = "at its limit"
		}
		b.State = max(b.State, v.State)
		v.Lease = b
	}
	if h.SegmentSize > 0 {
		v.Left = &bar{Says: fmt.Sprintf("%s keys left; one fetch brings %s", count(value(h.SegmentLeft)), count(h.SegmentSize))}
		v.Left.of(float64(value(h.SegmentLeft)), float64(h.SegmentSize))
	}
	if !g.Assigner {
		v.Rate = keyRate(series, g.Name)
	}
	v.rows()
	return v
}

// of sets a bar's width.
func (b *bar) of(left, whole float64) {
	share := 1.0
	if whole > 0 {
		share = min(1, max(0, left/whole))
	}
	b.Width = float64(int(share*1000)) / 10
	switch {
	case left <= 0:
		b.State = failing
	case share < lowShare:
		b.State = warned
	}
}

// judge finds the state: what an operator has to know first.
func (v *generatorView) judge() {
	h := v.Health
	leased := !h.LeaseLimit.IsZero()
	switch {
	case h.Err != nil && leased && v.LeaseLeft > 0:
		v.State, v.Says = warned, fmt.Sprintf("keys stop in %s, at %s, unless the lease is renewed before: %v", seconds(v.LeaseLeft), clockTime(h.LeaseLimit), h.Err)
	case h.Err != nil && value(h.SegmentLeft) > 0:
		v.State, v.Says = warned, fmt.Sprintf("%s keys are left: %v", count(*h.SegmentLeft), h.Err)
	case leased && v.LeaseLeft <= 0 && h.Err != nil:
		v.State, v.Says = failing, fmt.Sprintf("no keys: the lease of worker id %s ended %s ago and could not be renewed: %v", v.Worker, seconds(-v.LeaseLeft), h.Err)
	case leased && v.LeaseLeft <= 0:
		v.State, v.Says = failing, fmt.Sprintf("no keys: the lease of worker id %s ended %s ago and has not been renewed", v.Worker, seconds(-v.LeaseLeft))
	case h.Err != nil:
		v.State, v.Says = failing, h.Err.Error()
	case h.WorkerID == nil && v.takesWorkerID() && h.LastError != nil:
		v.State, v.Says = failing, "no keys, as there is no worker id: "+h.LastError.Error()
	case len(h.Warnings) > 0:
		v.State, v.Says = warned, strings.Join(h.Warnings, "; ")
	case h.WorkerID == nil && v.takesWorkerID():
		v.Says = "no worker id yet: it takes one at the first key"
	default:
		v.Says = "well"
	}
}

// headline is what the generator says, and whom it concerns.
func (v *generatorView) headline() string {
	if len(v.Tables) == 0 {
		return v.Name + ": " + v.Says
	}
	return fmt.Sprintf("%s (%s): %s", v.Name, v.Fills(), v.Says)
}

// Fills names the tables that the generator fills, the first few of many.
func (v *generatorView) Fills() string {
	const few = 4
	if len(v.Tables) > few {
		return strings.Join(v.Tables[:few], ", ") + fmt.Sprintf(" and %s more tables", count(int64(len(v.Tables)-few)))
	}
	return strings.Join(v.Tables, ", ")
}

// keysOf are the keys that a generator has made: as it counts them, for all connectors
// that share it, or as this connector does where it does not count.
func keysOf(g driver.GeneratorStats, tables []driver.TableStats) int64 {
	if g.Health.Issued > 0 || g.Assigner {
		return g.Health.Issued
	}
	var n int64
	for _, t := range tables {
		if t.Generator == g.Name {
			n += t.Keys
		}
	}
	return n
}

// takesWorkerID reports whether the generator, or the assigner, is of a type that takes
// a worker id at its first key.
func (v *generatorView) takesWorkerID() bool {
	return v.Assigner || strings.HasPrefix(v.Type, "SNOWFLAKE")
}

// value returns a figure, or 0 for one that the generator doesn't have.
func value[T int64 | time.Duration](figure *T) T {
	if figure == nil {
		return 0
	}
	return *figure
}

// rows are the figures that apply.
func (v *generatorView) rows() {
	h := v.Health
	add := func(applies bool, name, value string) {
		if applies {
			v.Rows = append(v.Rows, figure{name, value})
		}
	}
	add(!v.Assigner, "Keys made", count(v.Keys))
	add(value(h.Waits) > 0, "Calls that waited", fmt.Sprintf("%s, %s in all", count(value(h.Waits)), seconds(h.Waited)))
	add(value(h.Borrowed) > 0, "Ahead of the clock", seconds(value(h.Borrowed)))
	add(value(h.ClockSteps) > 0, "Steps of the clock backwards", count(value(h.ClockSteps)))
	add(value(h.LeaseRenewals) > 0, "Renewals", count(value(h.LeaseRenewals)))
	add(value(h.LeasesLost) > 0, "Leases lost", count(value(h.LeasesLost)))
	add(h.SegmentSize == 0 && value(h.SegmentLeft) > 0, "Keys in memory", count(value(h.SegmentLeft)))
	add(value(h.Fetches) > 0, "Fetches", fmt.Sprintf("%s, the last in %s", count(value(h.Fetches)), seconds(h.FetchTime)))
	for _, kind := range sortedKeys(h.Errors) {
		add(true, "Errors: "+kind, count(h.Errors[kind]))
	}
	if h.LastError != nil {
		at := ""
		if !h.LastErrorTime.IsZero() {
			at = clockTime(h.LastErrorTime.Truncate(time.Second)) + ": "
		}
		add(true, "Last error", at+h.LastError.Error())
	}
}
