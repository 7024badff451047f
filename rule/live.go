package rule

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/internal/panics"
	"github.com/shardkey/shardkey/spi"
)

// Live is an open rule with the generators and worker-ID assigners of one connector. It may share
// them with other connectors of the process ([Rule.Open]). Its methods may be called by multiple
// goroutines at once.
type Live struct {
	rule       *Rule
	host       spi.Host
	tables     []atomic.Pointer[Table] // parallel to rule.tables; each is set when it is first looked up
	generators []*component            // parallel to the rule's
	pool       *pool
	// shared are the tables for names that occur in several schemas, by name in lower case. A
	// statement without a schema means the table in the connector's own database. If none is in
	// that database, the generator of the table returns an error.
	shared map[string]*Table

	// users is the number of running statements, plus 1 until the caller of Open closes l. Closing
	// adds ended.
	users   atomic.Int64
	closing sync.Once
	closed  error
}

// ended is so negative that users stays negative after closing.
const ended = math.MinInt64 / 4

// Open makes the rule's generators for one connector. It contacts no server: a generator connects
// when its first key is needed. The caller must close the result.
//
// Connectors of a process share generators and worker-ID assigners if they open the same rule with
// the same clock. The same rule is the same file ([Load]), or the same *Rule if it wasn't loaded
// from a file. They share one generator or assigner for each name and configuration. If its state
// is in the connector's own database, they share one for each database.
//
// A shared generator logs to the logger of the connector that opened it first. It is closed
// together with the last connector that uses it. If it is just being closed, Open waits for that.
//
// The error is an [*Error]. It wraps [ErrOwnDatabase] if several databases would generate the same
// keys.
func (r *Rule) Open(host spi.Host) (*Live, error) { return r.open(host, nil) }

// Replace opens another rule for the same connector. Generators and worker-ID assigners that both
// rules configure in the same way are shared, so they keep their worker ID and state. Afterwards
// both rules are open, and the caller must close each. The error is an [*Error].
func (l *Live) Replace(r *Rule) (*Live, error) {
	return r.open(l.host, l.pool.held(l))
}

func (r *Rule) open(host spi.Host, earlier map[componentKey]*component) (*Live, error) {
	if r == nil || len(r.tables) == 0 {
		return nil, &Error{File: "rule", Reason: "this rule is empty; make one with rule.Load, rule.Parse or rule.New"}
	}
	l, err := r.openGenerators(atWork, host, earlier)
	if err != nil {
		return nil, err
	}
	l.tables = make([]atomic.Pointer[Table], len(r.tables))
	l.share(databaseOf(host.DSN.Reveal()))
	return l, nil
}

// openGenerators opens the generators of the rule, but prepares no lookup of tables.
func (r *Rule) openGenerators(from *pool, host spi.Host, earlier map[componentKey]*component) (*Live, error) {
	l := &Live{rule: r, host: host, pool: from}
	l.users.Store(1)
	opened := false
	defer func() {
		if !opened { // an error, or a panic of a factory
			_ = l.Close()
		}
	}()
	for _, m := range r.generators.all {
		e, err := l.openGenerator(m, earlier)
		if err != nil {
			return nil, err
		}
		l.generators = append(l.generators, e)
	}
	opened = true
	return l, nil
}

// share sets shared for a connector whose own database is given.
func (l *Live) share(database string) {
	l.shared = map[string]*Table{}
	for name, owners := range l.of().index.inSchemas {
		if !slices.ContainsFunc(owners, func(o owner) bool { return o.table != owners[0].table }) {
			continue
		}
		if own, ok := l.of().index.one(database, name); ok && database != "" {
			l.shared[name] = l.table(own)
			continue
		}
		t := *l.table(slices.MaxFunc(owners, func(a, b owner) int { return int(a.table - b.table) }))
		t.Generator = ambiguousName(name)
		l.shared[name] = &t
	}
}

// of returns the rule. It returns an empty rule for a zero Live.
func (l *Live) of() *Rule {
	if l.rule == nil {
		return new(Rule)
	}
	return l.rule
}

// table returns the table of an owner, or nil if it has no key.
func (l *Live) table(o owner) *Table {
	if o.table == none {
		return nil
	}
	at := &l.tables[o.table]
	if t := at.Load(); t != nil {
		return t
	}
	t := l.of().tables[o.table].clone()
	t.Generator = l.Generator(t.GeneratorName)
	if !at.CompareAndSwap(nil, &t) {
		return at.Load() // return the stored pointer, so that a table always has the same one
	}
	return &t
}

// Lookup returns the table that a statement names, by its logical name or the name of an actual
// table. schema is the qualifier of the name, or "" if there is none. Names are case-insensitive.
// Lookup returns nil if the rule doesn't generate keys for the table.
//
// A schema matters only for tables whose data nodes have one (dataSource.schema.table). Such a
// table doesn't match another schema. If several of them share a name, a statement without a schema
// means the table in the connector's own database. If none is in that database, the Generator of
// the returned Table refuses to generate keys.
func (l *Live) Lookup(schema, table string) *Table {
	if schema == "" && len(l.shared) > 0 {
		if t, ok := l.shared[strings.ToLower(table)]; ok {
			return t
		}
	}
	o, ok := l.of().index.one(schema, table)
	if !ok {
		return nil
	}
	return l.table(o)
}

// UnlistedTableError is the error for an INSERT into a table that isn't in the rule, but whose name
// looks like a sharded table's.
type UnlistedTableError struct {
	Table string // as the statement spells it
	Like  *Table // the sharded table that has a similar name
}

func (ue *UnlistedTableError) Error() string {
	like := cmp.Or(ue.Like, new(Table))
	known := like.Logical
	if names := slices.Concat(like.Actual, like.Patterns); len(names) > 0 {
		known = strings.Join(names[:min(3, len(names))], ", ")
	}
	if like.ActualCount > 3 {
		known += ", …"
	}
	fix := "add it to actualDataNodes, with ${*} for tables created at run time"
	if len(like.Patterns) > 0 {
		fix = "correct the name, which no pattern matches, or add it to actualDataNodes"
	}
	return fmt.Sprintf("shardkey: table %q isn't in the rule, but its name is similar to the actual tables of %q (%s); %s; "+
		"write unlisted: pass only if it is unrelated", ue.Table, like.Logical, known, fix)
}

// Unlisted returns an [*UnlistedTableError] for a table that [Live.Lookup] doesn't find, but whose
// name looks like an actual table of a sharded table. The name is the sharded table's name followed
// by numbers or dates, or differs from an actual table's name only in its numbers. If the sharded table
// has one actual table, the numbers have to follow _ or -. For other tables Unlisted returns nil.
//
// The field Like.Unlisted of the error specifies how to handle the INSERT.
func (l *Live) Unlisted(schema, table string) *UnlistedTableError {
	o, ok := l.of().index.sibling(schema, table)
	if !ok || o.table == none || l.Lookup(schema, table) != nil {
		return nil
	}
	return &UnlistedTableError{Table: table, Like: l.table(o)}
}

// NamesBeyondASCII reports whether the name of a table or schema in the rule has characters beyond
// ASCII. Statements must then be read in the right character set.
func (l *Live) NamesBeyondASCII() bool { return l.of().index.beyondASCII }

// Generator returns the generator with this name, or nil if the rule has none. Names are
// case-insensitive.
func (l *Live) Generator(name string) spi.KeyGenerator {
	if i, ok := l.of().generators.find(name); ok {
		return l.generators[i].value.(spi.KeyGenerator)
	}
	return nil
}

// Acquire keeps the generators open until [Live.Release], even if l is closed in the meantime. It
// returns false if l is already closed.
func (l *Live) Acquire() bool {
	if l.users.Add(1) > 0 {
		return true
	}
	_ = l.Release()
	return false
}

// Release undoes one [Live.Acquire]. The last Release after [Live.Close] closes the generators and
// returns their errors.
func (l *Live) Release() error {
	if users := l.users.Add(-1); users < 0 {
		return l.closeUnused(users)
	}
	return nil
}

// Close closes the generators and then the worker-ID assigners that they use, and returns their
// errors joined. If l is in use ([Live.Acquire]), the last [Live.Release] closes them instead.
// Generators that another Live shares stay open until that Live is closed too, and generators built
// in Go always stay open ([GeneratorConfig]). Further calls do nothing and return the same error.
func (l *Live) Close() error {
	l.closing.Do(func() { l.closed = l.closeUnused(l.users.Add(ended - 1)) })
	return l.closed
}

func (l *Live) closeUnused(users int64) error {
	if users != ended || !l.users.CompareAndSwap(ended, 2*ended) {
		return nil
	}
	var errs []error
	for _, e := range l.generators {
		errs = append(errs, l.pool.release(e))
	}
	return errors.Join(errs...)
}

// Status describes an open generator or worker-ID assigner.
type Status struct {
	Name string `json:"name"`           // name in the rule
	Type string `json:"type,omitempty"` // type in upper case; empty for a generator built in Go
	// Assigner reports whether this is a worker-ID assigner.
	Assigner bool `json:"assigner,omitempty"`
	// Description is a line without secrets that the generator or assigner returns
	// ([spi.Describer]).
	Description string `json:"description,omitempty"`
	// Health is zero if the generator or assigner reports no health ([spi.HealthReporter]).
	Health spi.Health `json:"health"`
	// WorkerIDs reads the worker IDs in the generator's store. It is nil for a generator without them.
	WorkerIDs spi.WorkerIDLister `json:"-"`
}

// Status returns the status of the generators, and then of the worker-ID assigners that they use,
// in the rule's order.
func (l *Live) Status() (all []Status) {
	l.each(func(spec componentSpec, v any) {
		s := Status{Name: spec.name.text, Type: strings.ToUpper(spec.typ.text), Assigner: spec.kind == assignerKind,
			Description: describe(spec, v), Health: l.withLeaseLeft(healthOf(v))}
		s.WorkerIDs, _ = v.(spi.WorkerIDLister)
		all = append(all, s)
	})
	return all
}

// withLeaseLeft sets [spi.LeaseHealth.Left].
func (l *Live) withLeaseLeft(h spi.Health) spi.Health {
	if h.Lease == nil || h.Lease.Limit.IsZero() {
		return h
	}
	now := time.Now()
	if l.host.Clock != nil {
		now = l.host.Clock.Now()
	}
	h.Lease = new(*h.Lease) // the generator may still use its own
	h.Lease.Left = h.Lease.Limit.Sub(now)
	return h
}

// Warnings returns the risks that the open generators and worker-ID assigners report
// ([spi.Health]), each with the place of the generator or assigner in the rule.
func (l *Live) Warnings() (all []*Error) {
	l.each(func(spec componentSpec, v any) {
		for _, w := range healthOf(v).Warnings {
			all = append(all, errorAt(l.of().file, spec.name, spec.name.text+": "+strings.TrimPrefix(w, "shardkey: ")))
		}
	})
	return all
}

// healthOf returns the health of a generator or assigner. It is zero if v reports none.
func healthOf(v any) spi.Health {
	h, ok := v.(spi.HealthReporter)
	if !ok {
		return spi.Health{}
	}
	return panics.Value(h.Health, func(err error) spi.Health { return spi.Health{Err: err} })
}

// Describe describes the open rule for logs. There is one line for the rule, each generator, each
// worker-ID assigner in use, and each table. It contains no values of properties, except those that
// generators include in their own description ([spi.Describer]).
func (l *Live) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rule %s", l.of().file)
	l.each(func(spec componentSpec, v any) {
		fmt.Fprintf(&b, "\n  %s %s: %s", spec.kind, spec.name.text, describe(spec, v))
	})
	l.of().describeTables(&b)
	return b.String()
}

// each calls do for each generator, and then for each worker-ID assigner in use, in the rule's
// order.
func (l *Live) each(do func(spec componentSpec, v any)) {
	for i, spec := range l.of().generators.all {
		do(spec, l.generators[i].value)
	}
	used := map[string]*component{}
	for _, e := range l.generators {
		for _, a := range e.uses {
			used[strings.ToLower(a.spec.name.text)] = a
		}
	}
	for _, spec := range l.of().assigners.all {
		if a := used[strings.ToLower(spec.name.text)]; a != nil {
			do(spec, a.value)
		}
	}
}

func describe(spec componentSpec, v any) string {
	if d, ok := v.(spi.Describer); ok {
		return panics.Value(d.Describe, error.Error)
	}
	if spec.ready != nil {
		return fmt.Sprintf("%T", v)
	}
	return strings.ToUpper(spec.typ.text)
}

// close closes a generator or an assigner.
func (m componentSpec) close(v any) error {
	c, ok := v.(io.Closer)
	if !ok {
		return nil
	}
	if err := panics.Call("its Close", c.Close); err != nil {
		return fmt.Errorf("shardkey: close %s %s: %w", m.kind, m.name.text, err)
	}
	return nil
}
