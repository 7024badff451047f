package driver

import (
	"context"
	"errors"
	"fmt"

	"github.com/shardkey/shardkey/internal/doctor"
	"github.com/shardkey/shardkey/spi"
)

// Report is what [Connector.Doctor] found.
type Report struct {
	// Findings are in the order of what was looked at; those of severity ok are among
	// them.
	Findings []Finding `json:"findings"`
}

// Finding is one thing that a [Report] has. It holds no secrets.
type Finding struct {
	// Severity is "ok", for what is as it must be, "info", for a remark, "warning"
	// or "error".
	Severity string `json:"severity"`
	// Check is a word for what was looked at: reachable, server, sql-mode, read-only,
	// clock, table, unlisted, key-column, key-type, unique, auto-increment, foreign-key,
	// reference, trigger, max-key, rights, leases, segments, tickets, store, rule,
	// generator.
	Check string `json:"check"`
	// DataSource is the database's name in the rule, empty where that is not known,
	// Table the logical table, Actual the actual tables that the finding is of, and
	// Column the key column.
	DataSource string   `json:"dataSource,omitempty"`
	Table      string   `json:"table,omitempty"`
	Actual     []string `json:"actualTables,omitempty"`
	Column     string   `json:"column,omitempty"`
	// What was found, and Why it matters, in a sentence; Why is empty for what is ok.
	What string `json:"what"`
	Why  string `json:"why,omitempty"`
	// Fix is what to do: statements, each on its line, or what to write in the rule.
	Fix string `json:"fix,omitempty"`
}

// ErrUnfit is in the chain of [Report.Err].
var ErrUnfit = errors.New("shardkey: the database is not fit for the rule")

// Err returns an error that names the first finding of severity error, for a
// program that does not start then; nil when there is none. [ErrUnfit] is in its chain.
func (r Report) Err() error {
	count := 0
	var first doctor.Finding
	for _, f := range r.Findings {
		if f.Severity == doctor.Error {
			if count == 0 {
				first = doctor.Finding(f)
			}
			count++
		}
	}
	if count == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d errors, the first being: %s", ErrUnfit, count, first)
}

// String returns what is not ok, for people: each finding with why it matters and what
// to do, and at the end how many there are.
func (r Report) String() string {
	found := make([]doctor.Finding, len(r.Findings))
	for i, f := range r.Findings {
		found[i] = doctor.Finding(f)
	}
	return doctor.Text(found, doctor.Info)
}

// Doctor holds the rule against the connector's database: whether its tables are
// there, their columns hold the keys that will be made and new keys come after those
// that the rows have, what the user may do, and whether what the generators and
// worker-id assigners keep in SQL databases is safe; "shardkey doctor" does the same for
// all databases of a rule. It is meant for the start of a program, and takes some
// questions a table.
//
// It only reads, on a connection of its own that is closed afterwards, and uses up no
// key and no worker id. Where the rule has several data sources, the database is taken
// for the one whose tables are there. It ends with ctx: what could not be asked is a
// finding, never an error.
func (c *Connector) Doctor(ctx context.Context) Report {
	rules, err := c.use()
	if err != nil {
		return Report{[]Finding{{Severity: doctor.Error, Check: "open", What: err.Error()}}}
	}
	defer func() { _ = rules.generators.Release() }() // its error is that of closing
	return c.examine(ctx, rules)
}

func (c *Connector) examine(ctx context.Context, rules *ruleSet) (r Report) {
	clock := c.host.Clock
	if clock == nil {
		clock = spi.SystemClock
	}
	for _, f := range doctor.Examine(ctx, doctor.Subject{
		Rule: rules.rule, Now: clock.Now, Guess: true,
		Databases: []doctor.Database{{Connector: c.base, Live: rules.generators}},
	}) {
		r.Findings = append(r.Findings, Finding(f))
	}
	return r
}
