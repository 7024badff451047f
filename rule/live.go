package rule

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/spi"
)

// Live is a rule at work in one connector: its generators and worker-id
// assigners, which it may share with others of its process ([Rule.Open]). Its
// methods may be called by many goroutines at once.
type Live struct {
	rule       *Rule
	host       spi.Host
	tables     []atomic.Pointer[Table] // as the rule's, each made when it is looked up
	generators []spi.KeyGenerator      // as Rule.generators
	held       []*made                 // as well; nil for those that were given ready-made. Guarded by pool.mu
	pool       *pool
	// shared are the tables for names that several tables have in different
	// schemas, by name in lower case. A statement means the one in the
	// connector's own database; when that is none of them, it gets a table
	// whose generator refuses.
	shared map[string]*Table

	// users are the statements that run, and the caller of Open until it closes. From then
	// on ended is added.
	users   atomic.Int64
	closing sync.Once
	closed  error
}

// ended is so low that no user makes it positive.
const ended = math.MinInt64 / 4

// Open makes the rule's generators for one connector. No server is asked: a
// generator connects when its first key is wanted. The caller closes what it
// gets.
//
// Connectors of one process share generators and worker-ID assigners: those that
// open the same rule, which is the same file ([Load]) or, where it is from none, the
// same *Rule, with the same clock. There is one of each
// name and configuration, and one for each database where the state is kept in the
// connector's own. It logs where the connector that opened it first does, and is
// closed when the last one is; one that is being closed at this moment is waited
// for. Databases that would give the same keys are refused: [ErrOwnDatabase].
func (r *Rule) Open(host spi.Host) (*Live, error) { return r.open(atWork, host, nil) }

// Replace opens another rule in place of l, for the same connector. Generators
// and worker-ID assigners that are configured in the same way in both are the same
// ones: they keep their worker ID and their state. Both are open afterwards, and
// the caller closes each.
func (l *Live) Replace(r *Rule) (*Live, error) { return r.open(atWork, l.host, l.holds()) }

// holds returns the generators that keep l open, and then the assigners that they use.
func (l *Live) holds() (all []*made) {
	for _, e := range l.held {
		if e != nil {
			all = append(all, e)
		}
	}
	for _, e := range all {
		all = append(all, e.uses...)
	}
	return all
}

func (r *Rule) open(from *pool, host spi.Host, earlier []*made) (*Live, error) {
	if r == nil || len(r.tables) == 0 {
		return nil, &Error{File: "rule", Reason: "this rule is empty; make one with rule.Load, rule.Parse or rule.New"}
	}
	l, err := r.openGenerators(from, host, earlier)
	if err != nil {
		return nil, err
	}
	l.tables = make([]atomic.Pointer[Table], len(r.tables))
	l.share(databaseOf(host.DSN.Reveal()))
	return l, nil
}

// openGenerators is open without what finds a table.
func (r *Rule) openGenerators(from *pool, host spi.Host, earlier []*made) (*Live, error) {
	l := &Live{rule: r, host: host, pool: from,
		generators: make([]spi.KeyGenerator, len(r.generators)), held: make([]*made, len(r.generators))}
	l.users.Store(1)
	from.enter(l)
	opened := false
	defer func() {
		if !opened { // or a factory panicked
			_ = l.Close()
		}
	}()
	for i := range r.generators {
		if err := l.openGenerator(i, earlier); err != nil {
			return nil, err
		}
	}
	opened = true
	return l, nil
}

// share settles what the names mean that more than one table has.
func (l *Live) share(database string) {
	l.shared = map[string]*Table{}
	for name := range l.of().names.more {
		owners := l.of().names.all(name)
		if sameTable(owners) {
			continue
		}
		if own, ok := l.of().names.one(database, name); ok && database != "" {
			l.shared[name] = l.table(own)
			continue
		}
		t := *l.table(slices.MaxFunc(owners, func(a, b owner) int { return int(a.table - b.table) }))
		t.Generator = ambiguous(name)
		l.shared[name] = &t
	}
}

// of returns the rule. That of a zero Live is empty.
func (l *Live) of() *Rule {
	if l.rule == nil {
		return new(Rule)
	}
	return l.rule
}

// table returns an owner's table; nil for one without key.
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
		return at.Load() // each has one, by which it is known
	}
	return &t
}

// Lookup finds the table that a statement names, by its logical name or that
// of an actual table; names are case-insensitive. schema is the qualifier in front of the
// name, empty when there is none. It returns nil for a table without a rule.
//
// A schema matters only for tables whose data nodes have one
// (dataSource.schema.table): they match no other. Where such tables share a
// name, a statement without schema means the one in the connector's own
// database; when that is none of them, the Table's generator refuses to make
// keys.
func (l *Live) Lookup(schema, table string) *Table {
	if schema == "" && len(l.shared) > 0 {
		if t, ok := l.shared[strings.ToLower(table)]; ok {
			return t
		}
	}
	o, ok := l.of().names.one(schema, table)
	if !ok {
		return nil
	}
	return l.table(o)
}

// UnlistedTableError is the error for an INSERT into a table that no rule lists
// although its name looks like that of one of a sharded table's.
type UnlistedTableError struct {
	Table string // as the statement names it
	Like  *Table // the sharded table
}

func (e *UnlistedTableError) Error() string {
	like := cmp.Or(e.Like, new(Table))
	known := like.Logical
	if names := slices.Concat(like.Actual, like.Patterns); len(names) > 0 {
		known = strings.Join(names[:min(3, len(names))], ", ")
	}
	if like.ActualCount > 3 {
		known += ", …"
	}
	return fmt.Sprintf("shardkey: table %q is not listed in the rule, but looks like one of table %q (%s): list it in "+
		"actualDataNodes, there with ${*} if such tables come at run time, or write unlisted: pass if it is none",
		e.Table, like.Logical, known)
}

// Unlisted returns an [*UnlistedTableError] for a table that [Live.Lookup] does
// not find although its name looks like that of an actual table of a ruled one:
// a sharded table's name followed by numbers or dates, or one that differs from an
// actual table's in its numbers only. It returns nil for every other table. What
// happens to the INSERT is the Unlisted of the error's Like, and where that is
// "" the connection's.
func (l *Live) Unlisted(schema, table string) *UnlistedTableError {
	o, ok := l.of().names.sibling(schema, table)
	if !ok || o.table == none || l.Lookup(schema, table) != nil {
		return nil
	}
	return &UnlistedTableError{Table: table, Like: l.table(o)}
}

// NamesBeyondASCII reports whether the name of a table or its schema has letters
// beyond ASCII: a statement's must then be read in the right character set.
func (l *Live) NamesBeyondASCII() bool { return l.of().names.beyondASCII }

func sameTable(owners []owner) bool {
	for _, o := range owners {
		if o.table != owners[0].table {
			return false
		}
	}
	return true
}

// Generator returns the live generator of that name, which is case-insensitive;
// nil when the rule has none.
func (l *Live) Generator(name string) spi.KeyGenerator {
	for i, spec := range l.of().generators {
		if strings.EqualFold(spec.name.text, name) {
			return l.generators[i]
		}
	}
	return nil
}

// WorkerIDAssigners returns the live worker-ID assigners that the rule's generators
// use, by name. They are closed with l.
func (l *Live) WorkerIDAssigners() map[string]spi.WorkerIDAssigner {
	assigners := map[string]spi.WorkerIDAssigner{}
	l.each(func(spec makeSpec, v any, assigner bool) {
		if assigner {
			assigners[spec.name.text] = v.(spi.WorkerIDAssigner)
		}
	})
	return assigners
}

// Acquire keeps the generators open until [Live.Release], also when l is closed meanwhile. It
// returns false when l has been closed.
func (l *Live) Acquire() bool {
	if l.users.Add(1) > 0 {
		return true
	}
	_ = l.Release()
	return false
}

// Release ends the use that [Live.Acquire] began. The last one after [Live.Close] closes the
// generators, and returns their errors.
func (l *Live) Release() error {
	if users := l.users.Add(-1); users < 0 {
		return l.closeUnused(users)
	}
	return nil
}

// Close closes the generators and then the worker-ID assigners that they used, and
// returns their errors together. While l is in use ([Live.Acquire]), it leaves that to the
// last [Live.Release], and while another Live shares them ([Rule.Open]), to that one.
// Generators that were given ready-made ([GeneratorConfig]) stay open. Closing again does
// nothing more and returns the same.
func (l *Live) Close() error {
	l.closing.Do(func() { l.closed = l.closeUnused(l.users.Add(ended - 1)) })
	return l.closed
}

func (l *Live) closeUnused(users int64) error {
	if users != ended || !l.users.CompareAndSwap(ended, 2*ended) {
		return nil
	}
	return l.pool.leave(l)
}

// Status is a live generator or worker-ID assigner.
type Status struct {
	Name string // in the rule
	Type string // in upper case; empty for one built in Go
	// Assigner reports whether it is a worker-ID assigner.
	Assigner bool
	// Description is what [Live.Describe] says of it, in one line and without secrets.
	Description string
	// Health is zero when it reports none ([spi.HealthReporter]).
	Health spi.Health
}

// Status returns the generators, and then the worker-ID assigners that they use, in
// the rule's order.
func (l *Live) Status() (all []Status) {
	l.each(func(spec makeSpec, v any, assigner bool) {
		s := Status{Name: spec.name.text, Type: strings.ToUpper(spec.typ.text), Assigner: assigner,
			Description: describe(spec, v)}
		if h, ok := v.(spi.HealthReporter); ok {
			s.Health = guard.Value(h.Health, func(err error) spi.Health { return spi.Health{Err: err} })
		}
		all = append(all, s)
	})
	return all
}

// Describe describes the open rule for logs: one line for the rule, each
// generator, each worker-ID assigner in use and each table. It shows no
// property's value except what generators say about themselves
// ([spi.Describer]).
func (l *Live) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rule %s", l.of().file)
	l.each(func(spec makeSpec, v any, assigner bool) {
		kind := generatorKind
		if assigner {
			kind = assignerKind
		}
		fmt.Fprintf(&b, "\n  %s %s: %s", kind, spec.name.text, describe(spec, v))
	})
	l.of().describeTables(&b)
	return b.String()
}

// each calls do with each generator, and then with each worker-ID assigner in use, in the
// rule's order.
func (l *Live) each(do func(spec makeSpec, v any, assigner bool)) {
	for i, spec := range l.of().generators {
		do(spec, l.generators[i], false)
	}
	used := map[string]*made{}
	for _, e := range l.held {
		if e != nil {
			for _, a := range e.uses {
				used[strings.ToLower(a.spec.name.text)] = a
			}
		}
	}
	for _, spec := range l.of().assigners {
		if a := used[strings.ToLower(spec.name.text)]; a != nil {
			do(spec, a.value, true)
		}
	}
}

func describe(spec makeSpec, v any) string {
	if d, ok := v.(spi.Describer); ok {
		return guard.Value(d.Describe, error.Error)
	}
	if spec.ready != nil {
		return fmt.Sprintf("%T", v)
	}
	return strings.ToUpper(spec.typ.text)
}

func closeNamed(kind, name string, v any) error {
	c, ok := v.(io.Closer)
	if !ok {
		return nil
	}
	if err := guard.Call("its Close", c.Close); err != nil {
		return fmt.Errorf("shardkey: close %s %s: %w", kind, name, err)
	}
	return nil
}
