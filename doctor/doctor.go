// Package doctor holds a rule against the databases that it is for: whether its
// tables are there, whether their columns hold the keys that will be made, whether
// the user may insert, and whether what the generators keep in databases is safe. It
// only reads.
package doctor

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shardkey/shardkey/rule"
)

// The severities of findings, the least first.
const (
	OK      = "ok"
	Info    = "info"
	Warning = "warning"
	Error   = "error"
)

// Finding is one thing that was found. It holds no secrets.
type Finding struct {
	Severity string `json:"severity"` // OK, Info, Warning or Error
	// Check is a word for the subject: reachable, server, sql-mode, read-only,
	// clock, table, unlisted, key-column, key-type, unique, auto-increment, foreign-key,
	// reference, trigger, max-key, rights, leases, segments, tickets, store, rule,
	// generator.
	Check string `json:"check"`
	// DataSource is the database's name in the rule, empty if it is not known,
	// Table the logical table, Actual its actual tables that have the finding, and
	// Column the key column.
	DataSource string   `json:"dataSource,omitempty"`
	Table      string   `json:"table,omitempty"`
	Actual     []string `json:"actualTables,omitempty"`
	Column     string   `json:"column,omitempty"`
	// What was found, and Why it matters, in a sentence; Why is empty for OK.
	What string `json:"what"`
	Why  string `json:"why,omitempty"`
	// Fix is what to do: statements, each on its line, or what to write in the rule.
	Fix string `json:"fix,omitempty"`
}

// IsProblem reports whether a severity is more than a remark.
func IsProblem(severity string) bool { return severity == Warning || severity == Error }

// Database is one to be looked at.
type Database struct {
	// Name is the data source's in the rule. Empty stands for all of them.
	Name      string
	Connector driver.Connector
	// Live is the rule as it is open for this database.
	Live *rule.Live
	// Err is why it could not be opened at all.
	Err error
}

// Subject is what is looked at.
type Subject struct {
	Rule      *rule.Rule
	Databases []Database
	Now       func() time.Time
}

// maxParallel bounds the databases that are looked at at a time.
const maxParallel = 8

// Examine looks at everything. It ends with ctx: what could not be asked by then is a
// finding. Those of one database stand together, in the order of the databases.
func Examine(ctx context.Context, s Subject) []Finding {
	x := &examination{Subject: s, newest: map[string]newestKey{}, absent: map[rule.Place]int{}}
	found := make([][]Finding, len(s.Databases))
	var running sync.WaitGroup
	slots := make(chan struct{}, maxParallel)
	for i := range s.Databases {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			d := &database{examination: x, Database: s.Databases[i]}
			d.examine(ctx)
			found[i] = merged(d.found)
		})
	}
	running.Wait()
	all := append(x.rule(), slices.Concat(found...)...)
	all = append(all, x.nowhere()...)
	return append(all, x.states(ctx)...)
}

// examination is what the databases have in common.
type examination struct {
	Subject

	mu      sync.Mutex
	newest  map[string]newestKey // by generator
	absent  map[rule.Place]int   // tables of no data source: in how many databases they are not
	reached int                  // databases
}

// newestKey is the greatest key that the rows of a generator's tables have.
type newestKey struct {
	key             uint64
	source, table   string
	columnHoldsUpTo uint64
}

// rule returns what is known without a server.
func (x *examination) rule() (found []Finding) {
	for _, w := range x.Rule.Warnings() {
		found = append(found, Finding{Severity: Warning, Check: "rule", What: plain(w)})
	}
	if live := x.live(); live != nil {
		health := live.Health()
		for _, name := range sortedKeys(health) {
			for _, w := range health[name].Warnings {
				found = append(found, Finding{Severity: Warning, Check: "generator", What: name + ": " + strings.TrimPrefix(w, "shardkey: ")})
			}
		}
	}
	return found
}

// live is the rule as it is open for the first database for which it is.
func (x *examination) live() *rule.Live {
	for _, d := range x.Databases {
		if d.Live != nil {
			return d.Live
		}
	}
	return nil
}

// nowhere are the tables that stand in no data source by name, and that no database
// has.
func (x *examination) nowhere() (found []Finding) {
	for _, t := range x.Rule.Tables() {
		for p := range x.Rule.Places(t.Logical) {
			if n := x.absent[p]; n > 0 && n == x.reached {
				found = append(found, missing(t.Logical, p, "", ""))
			}
		}
	}
	return merged(found)
}

// open opens one connection, which close ends: that of the base stays.
func open(ctx context.Context, c driver.Connector) (conn *sql.Conn, closeAll func(), err error) {
	db := sql.OpenDB(onlyConnects{c})
	db.SetMaxOpenConns(1)
	conn, err = db.Conn(ctx)
	if err != nil {
		_ = db.Close()
		return nil, nil, err
	}
	return conn, func() { _ = conn.Close(); _ = db.Close() }, nil
}

// onlyConnects hides a connector's Close, which a sql.DB would call.
type onlyConnects struct{ driver.Connector }

// merged joins findings that differ in the actual table only.
func merged(found []Finding) (all []Finding) {
	for _, f := range found {
		i := slices.IndexFunc(all, func(o Finding) bool {
			return o.Severity == f.Severity && o.Check == f.Check && o.DataSource == f.DataSource && o.Table == f.Table &&
				o.Column == f.Column && o.What == f.What && o.Why == f.Why && len(f.Actual) > 0 && len(o.Actual) > 0
		})
		if i < 0 {
			all = append(all, f)
			continue
		}
		o := &all[i]
		for _, name := range f.Actual {
			if !slices.Contains(o.Actual, name) {
				o.Actual = append(o.Actual, name)
			}
		}
		o.Fix = joinFix(o.Fix, f.Fix)
	}
	return all
}

// joinFix appends statements that are not there yet.
func joinFix(fix, more string) string {
	for statement := range strings.SplitSeq(more, "\n") {
		if statement != "" && !slices.Contains(strings.Split(fix, "\n"), statement) {
			fix = strings.TrimPrefix(fix+"\n"+statement, "\n")
		}
	}
	return fix
}
