// Package doctor examines the databases of a rule: whether its tables exist, whether their key
// columns hold the keys that will be generated, whether the user may insert, and whether the state
// that generators keep in databases and stores is safe. It only reads, and uses up no key.
package doctor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// Severity is how much a finding matters.
type Severity string

// The severities, the least first.
const (
	OK      Severity = "ok"      // examined, and nothing is wrong
	Info    Severity = "info"    // worth knowing
	Warning Severity = "warning" // works now, and may fail later
	Error   Severity = "error"   // statements fail, or keys may repeat
)

// Report is the result of an examination.
type Report struct {
	// Findings has at least one finding of each database, table and store that was
	// examined: [OK] where nothing is wrong. The findings of one database stand together.
	Findings []Finding
}

// Problems returns the findings that need attention: the warnings and errors.
func (r Report) Problems() []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return !f.isProblem() })
}

// Finding is one result about one place. It holds no secrets and no values of rows but greatest keys.
type Finding struct {
	Severity Severity `json:"severity"`
	// Check is a word for the subject: reachable, open, server, sql-mode, read-only,
	// clock, table, unlisted, key-column, sharding-column, key-type, unique, auto-increment, foreign-key,
	// reference, trigger, max-key, rights, leases, segments, tickets, store, rule,
	// generator.
	Check string `json:"check"`
	// DataSource is the database's name in the rule, Table the logical table, Actual the
	// actual tables that have the finding, and Column the key column. Each is empty where
	// the finding is about something else.
	DataSource string   `json:"dataSource,omitempty"`
	Table      string   `json:"table,omitempty"`
	Actual     []string `json:"actualTables,omitempty"`
	Column     string   `json:"column,omitempty"`
	// What was found, and Why it matters; Why is empty for OK.
	What string `json:"what"`
	Why  string `json:"why,omitempty"`
	// Fix is the remedy: SQL statements, each on its line, or what to write in the rule.
	Fix string `json:"fix,omitempty"`
}

func (f Finding) isProblem() bool { return f.Severity == Warning || f.Severity == Error }

// String returns the check, the place and what was found, in one line.
func (f Finding) String() string {
	s := f.Check
	if f.DataSource != "" {
		s += " " + f.DataSource
	}
	if f.Table != "" {
		s += " " + f.Table
		if f.Column != "" {
			s += "." + f.Column
		}
	}
	switch n := len(f.Actual); {
	case n > 4:
		s += fmt.Sprintf(" (%s and %d more)", strings.Join(f.Actual[:3], ", "), n-3)
	case n > 1 || n == 1 && f.Actual[0] != f.Table:
		s += " (" + strings.Join(f.Actual, ", ") + ")"
	}
	return s + ": " + f.What
}

// Examine examines a database that stands for all data sources of the rule.
//
// What cannot be examined is a finding: a server that is unavailable or doesn't answer before ctx
// ends, and tables that the user has no right on. The error is for wrong arguments, such as a rule
// without tables.
//
// Generators may keep their state in the application's own database. It is examined through db.
// Only the number of free worker IDs in it needs a host: what the generators get from their connector,
// which is its DSN, as for go-sql-driver, and its clock.
func Examine(ctx context.Context, db *sql.DB, r *rule.Rule, host ...spi.Host) (Report, error) {
	hosts := map[string]spi.Host{}
	for _, h := range host {
		hosts[""] = h
	}
	return ExamineAll(ctx, map[string]*sql.DB{"": db}, r, hosts)
}

// ExamineAll is [Examine] for several databases, by the names of the rule's data sources. hosts has
// the host of each, and may be nil. It also compares the databases: their greatest keys are checked
// against shared state. Data sources without a database are reported.
func ExamineAll(ctx context.Context, dbs map[string]*sql.DB, r *rule.Rule, hosts map[string]spi.Host) (Report, error) {
	if r == nil || len(r.Tables()) == 0 {
		return Report{}, &rule.Error{File: "rule", Reason: "doctor needs a rule with tables"}
	}
	x := &examination{rule: r, newest: map[string]newestKey{}, absent: map[rule.Place]int{}}
	if _, unnamed := dbs[""]; len(dbs) == 0 || unnamed && len(dbs) > 1 {
		return Report{}, errors.New("shardkey: doctor needs one database, or several with the names of their data sources")
	}
	for _, name := range slices.Sorted(maps.Keys(dbs)) {
		if err := x.add(name, dbs[name], hosts[name]); err != nil {
			return Report{}, err
		}
	}
	return Report{x.run(ctx)}, nil
}

// examination is what the databases have in common.
type examination struct {
	rule      *rule.Rule
	databases []*database

	mu      sync.Mutex
	newest  map[string]newestKey // by generator
	absent  map[rule.Place]int   // tables of no data source: in how many databases they are not
	reached int                  // databases
}

// newestKey is the greatest key in the tables of a generator.
type newestKey struct {
	key             uint64
	source, table   string
	columnHoldsUpTo uint64
}

func (e *examination) add(name string, db *sql.DB, host spi.Host) error {
	isNamed := func(source string) bool { return strings.EqualFold(source, name) || isPattern(source) }
	sources := e.rule.DataSources()
	if name != "" && len(sources) > 0 && !slices.ContainsFunc(sources, isNamed) {
		return &rule.Error{File: e.rule.Name(), Word: name,
			Reason: fmt.Sprintf("has no data source %q; it has %s", name, strings.Join(sources, ", "))}
	}
	if db == nil {
		return errors.New("shardkey: doctor: the database is nil")
	}
	e.databases = append(e.databases, &database{examination: e, db: db, name: name, host: host})
	return nil
}

func isPattern(name string) bool { return strings.Contains(name, "${") }

// run connects to all databases, opens the rule for each in their order, so that the same one is
// refused each time, and examines them.
func (e *examination) run(ctx context.Context) []Finding {
	each(e.databases, func(d *database) { d.guarded(func() error { return d.connect(ctx) }) })
	for _, d := range e.databases {
		if d.open(); d.live != nil {
			defer d.live.Close() // nothing was used
		}
	}
	each(e.databases, func(d *database) {
		d.guarded(d.look)
		d.release()
	})
	found := append(e.ruleFindings(), e.notGiven()...)
	for _, d := range e.databases {
		found = append(found, merged(d.found)...)
	}
	found = append(found, e.nowhere()...)
	return append(found, e.states(ctx)...)
}

// each calls f for all at once, but for maxParallel at most at a time.
func each[T any](all []T, f func(T)) {
	const maxParallel = 8
	var running sync.WaitGroup
	slots := make(chan struct{}, maxParallel)
	for _, v := range all {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			f(v)
		})
	}
	running.Wait()
}

// ruleFindings returns what is known without a server.
func (e *examination) ruleFindings() (found []Finding) {
	for _, w := range e.rule.Warnings() {
		found = append(found, Finding{Severity: Warning, Check: "rule", What: trimPrefix(w)})
	}
	i := slices.IndexFunc(e.databases, func(d *database) bool { return d.live != nil })
	if i < 0 {
		return found
	}
	for _, w := range e.databases[i].live.Warnings() {
		found = append(found, Finding{Severity: Warning, Check: "generator", What: trimPrefix(w)})
	}
	return found
}

// notGiven reports the data sources that no database is given for.
func (e *examination) notGiven() (found []Finding) {
	for _, source := range e.rule.DataSources() {
		given := func(d *database) bool { return d.name == "" || strings.EqualFold(d.name, source) }
		if !slices.ContainsFunc(e.databases, given) && !isPattern(source) {
			found = append(found, Finding{Severity: Info, Check: "reachable", DataSource: source,
				What: "it was not examined: there is no database for it",
				Why:  "its tables may differ from the others",
				Fix:  "add its database: " + source + "=DSN"})
		}
	}
	return found
}

// nowhere reports the tables that the rule puts in no data source by name, and that no database has.
func (e *examination) nowhere() (found []Finding) {
	for _, t := range e.rule.Tables() {
		for p := range e.rule.Places(t.Logical) {
			if n := e.absent[p]; n > 0 && n == e.reached {
				found = append(found, missing(t.Logical, p))
			}
		}
	}
	return merged(found)
}

// merged joins findings that differ in the actual table only.
func merged(found []Finding) (all []Finding) {
	for _, f := range found {
		i := slices.IndexFunc(all, func(o Finding) bool {
			return o.Severity == f.Severity && o.Check == f.Check && o.Table == f.Table && o.Column == f.Column &&
				o.What == f.What && o.Why == f.Why && len(f.Actual) > 0 && len(o.Actual) > 0
		})
		if i < 0 {
			all = append(all, f)
			continue
		}
		o := &all[i]
		o.Actual = appendNew(o.Actual, f.Actual...)
		o.Fix = strings.Join(appendNew(lines(o.Fix), lines(f.Fix)...), "\n")
	}
	return all
}

// appendNew appends what is not in the list yet.
func appendNew(list []string, more ...string) []string {
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// joined returns names for output outside of quotes.
func joined(names []string) string {
	var shown []string
	for _, name := range names {
		shown = append(shown, sqltoken.Printable(name))
	}
	return strings.Join(shown, ", ")
}

func lines(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return line == "" })
}

// trimPrefix returns an error's message without the project's name.
func trimPrefix(err error) string { return strings.TrimPrefix(err.Error(), "shardkey: ") }
