package driver

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/rewrite"
	"github.com/shardkey/shardkey/internal/sqltext"
)

// Plan is how a statement is handled; see [Connector.Plan].
type Plan struct {
	// Query is the statement as it is sent, with a placeholder for each generated key. It
	// is empty for an INSERT … SELECT whose rows are copied.
	Query string
	// Literal is set if the statement has no arguments, so that the keys are written in
	// place of the placeholders.
	Literal bool
	// Inserts are the INSERTs and REPLACEs into sharded tables. If there are none, the
	// statement is passed through unchanged.
	Inserts []PlannedInsert
	// Verified is "agrees" or "unknown", if the second parser doesn't know the statement;
	// it is empty if the statement isn't checked.
	Verified string
	// Assumes lists what was assumed about the server. If it is different there, the
	// statement may be handled in another way.
	Assumes []string
}

// PlannedInsert is an INSERT or REPLACE into a sharded table.
type PlannedInsert struct {
	Statement    int    // its place in a string of several statements, from 0
	Schema, Name string // the table as the statement names it
	Replace      bool
	Table        string // the logical table
	Column       string // its key column
	Generator    string // the generator's name in the rule
	Text         bool   // the keys are strings
	// Invalid is set if a row has the wrong number of values. The statement is sent for the
	// server's error.
	Invalid bool
	Rows    []PlannedRow
	// Select is the query of an INSERT … SELECT, whose rows are all handled as the only
	// element of Rows.
	Select string
	// Notes are the other steps: checks of the row's table, shard bits, what the server
	// reports.
	Notes []string
}

// PlannedRow is where a row's key comes from.
type PlannedRow struct {
	// Key is "generated"; "statement" for an explicit key; "argument", which is the key
	// unless it asks for one, for example nil; "query", the same for a query's row;
	// "expression", which is the key unless it is NULL or 0; or "server", which takes what
	// the statement has.
	Key string
	// Argument is the number of the argument that gives the key, from 1; otherwise 0.
	Argument int
}

// Plan returns how a statement is handled under the current rule. The error is the one
// with which executing the statement is refused. No connection is opened, no key is
// generated, and nothing is logged or counted.
//
// The statement is planned by the code that executes it. Arguments are unknown: rows that
// depend on one aren't refused. What the connector has asked its server so far is used. The
// rest is assumed to be as in a new server of MySQL, or of the kind in [Config].Server; see
// [Plan].Assumes. The columns are those of the statement's table in their order, for an
// INSERT without a column list. If they are unknown, the error has [ErrNoConnection] in
// its chain.
func (c *Connector) Plan(statement string, columns ...string) (*Plan, error) {
	live, err := c.use()
	if err != nil {
		return nil, err
	}
	defer live.generators.Release()
	if !rewrite.Classify(statement).MustParse() {
		return &Plan{Query: statement}, nil
	}
	ctx, rules := context.Background(), live.withoutEffect()
	s, a := c.assume(columns)
	s.ForInsert = statement
	p, err := rules.plan(ctx, s, statement)
	if err == nil && p.fills() {
		err = p.check(ctx, s)
	}
	if err != nil {
		return nil, refusal(err)
	}
	out := p.explain()
	out.Assumes = a.facts
	switch v := rules.verifier; {
	case v.agreed.Load() > 0:
		out.Verified = "agrees"
	case v.unknown.Load() > 0:
		out.Verified = "unknown"
	}
	return out, nil
}

// check returns the error with which all executions are refused, whatever the arguments.
func (p *plan) check(ctx context.Context, s *session.Session) error {
	args := make([]driver.NamedValue, p.Params())
	for i := range args {
		args[i].Value = unknownArg{}
	}
	if err := p.checkUpdates(ctx, s, args); err != nil {
		return err
	}
	if p.source() != nil {
		return p.checkSource(ctx, s)
	}
	e := execution{plan: p, session: s, user: args}
	if more := len(p.targets) - 1; more > 0 {
		e.more = make([]insertion, more)
	}
	for i := range p.targets {
		k := e.insert(i)
		if k.target = &p.targets[i]; k.in.Refused {
			continue
		}
		n, _, err := e.check(ctx, k)
		if err != nil {
			return err
		}
		if _, err := k.column.Learn(ctx, s); err != nil {
			return err
		}
		k.keys.Ints = make([]int64, n) // as if they were generated
	}
	if e.carry(); p.Statements == 1 {
		return nil
	}
	return e.checkLastIDRead()
}

func (p *plan) explain() *Plan {
	out := &Plan{Query: p.key.text}
	if !p.fills() {
		return out
	}
	for i := range p.Inserts {
		out.Inserts = append(out.Inserts, p.explainInsert(i))
	}
	if in := p.source(); in == nil {
		out.Query, out.Literal = p.BindText(), p.Fills() > 0 && p.Params() == 0
	} else if !in.KeepsSource() {
		out.Query = ""
	}
	return out
}

func (p *plan) explainInsert(i int) PlannedInsert {
	in, t := &p.Inserts[i], p.targets[i].table.rule
	out := PlannedInsert{
		Statement: in.Statement, Schema: in.Schema, Name: in.Name, Replace: in.Replace,
		Table: t.Logical, Column: t.Column, Generator: t.GeneratorName, Text: in.Table.Kind == rewrite.KindText,
		Invalid: in.Refused,
	}
	switch {
	case in.Refused:
		return out
	case in.Source != nil:
		key := "query"
		if in.KeepsSource() {
			key = "statement"
		} else if in.Source.KeyIndex < 0 {
			key = "generated"
		}
		out.Select, out.Rows = in.Source.Query, []PlannedRow{{Key: key}}
	default:
		out.Rows = make([]PlannedRow, in.Rows())
		for row := range out.Rows {
			out.Rows[row] = plannedRow(in, row)
		}
	}
	out.Notes = append(p.explainGenes(i), p.explainShard(i)...)
	if in.InText {
		out.Notes = append(out.Notes, "LAST_INSERT_ID(key) makes the server report the first key")
	}
	if in.Guarded {
		out.Notes = append(out.Notes, "ON DUPLICATE KEY UPDATE reports the key of a row that exists already")
	}
	return out
}

func plannedRow(in *rewrite.Insert, row int) PlannedRow {
	switch kind, param := in.Slot(row); kind {
	case rewrite.SlotFill:
		return PlannedRow{Key: "generated"}
	case rewrite.SlotKept:
		return PlannedRow{Key: "statement"}
	case rewrite.SlotExpression:
		return PlannedRow{Key: "expression"}
	case rewrite.SlotParam:
		if in.Table.KeepExplicit {
			return PlannedRow{Key: "statement", Argument: param + 1}
		}
		return PlannedRow{Key: "argument", Argument: param + 1}
	}
	return PlannedRow{Key: "server"}
}

// explainShard returns what the actual table that insert i names asks of its rows.
func (p *plan) explainShard(i int) (notes []string) {
	x, in := p.targets[i].shard, &p.Inserts[i]
	if x == nil {
		return nil
	}
	columns := strings.Join(x.Columns, ", ")
	if x.key >= 0 {
		notes = append(notes, fmt.Sprintf("generated keys belong to %s, by %s", in.Name, columns))
	}
	if !x.looks() || in.Source != nil {
		return notes
	}
	verb := "refused"
	if x.table.rule.ShardGuard == "warn" {
		verb = "logged"
	}
	return append(notes, fmt.Sprintf("a row that does not belong to %s, by %s, is %s", in.Name, columns, verb))
}

// explainGenes returns the shard bits of the keys of insert i. Adjacent rows with the same
// bits share a note.
func (p *plan) explainGenes(i int) (notes []string) {
	in, t := &p.Inserts[i], p.targets[i].table
	switch {
	case t.gene == nil:
		return nil
	case in.Source != nil:
		gene := t.rule.Gene
		return []string{fmt.Sprintf("the lowest %d bits of a generated key are %s, of its row", gene.Bits, gene)}
	}
	first := 0
	for row := range in.Rows() {
		bits := p.explainGene(i, row)
		if row+1 < in.Rows() && p.explainGene(i, row+1) == bits {
			continue
		}
		if bits != "" {
			rows := fmt.Sprintf("row %d", row+1)
			if first < row {
				rows = fmt.Sprintf("rows %d to %d", first+1, row+1)
			}
			notes = append(notes, fmt.Sprintf("%s: the lowest %d bits of a generated key are %s", rows, t.rule.Gene.Bits, bits))
		}
		first = row + 1
	}
	return notes
}

// explainGene returns the shard bits of a row's key, empty for a row without a generated key.
func (p *plan) explainGene(i, row int) string {
	in, gene := &p.Inserts[i], p.targets[i].table.rule.Gene
	switch kind, _ := in.Slot(row); kind {
	case rewrite.SlotFill, rewrite.SlotExpression, rewrite.SlotParam:
	default:
		return ""
	}
	kind, param, value := p.Given(in, p.targets[i].geneAt, row)
	if kind == rewrite.GivenParam {
		return fmt.Sprintf("%s, of argument %d", gene, param+1)
	}
	if text, ok := value.(string); ok && sqltext.ParseInteger(strings.TrimSpace(text), 10) != nil {
		return fmt.Sprintf("%s, of %q as the column holds it", gene, value)
	}
	if of, err := gene.Of(value); err == nil && kind == rewrite.GivenLiteral {
		return fmt.Sprintf("%d: %s", of, gene)
	}
	return ""
}

// assumed is the connection of a session without a server. It answers a question as a new
// server of MySQL does, if the answer can be assumed. To any other question it returns
// [ErrNoConnection], and the session treats that as it treats a server that doesn't know
// the question.
type assumed struct {
	mode     string
	database string
	columns  []string // of the statement's table; nil: unknown
	facts    []string // the answers that were assumed
}

// stockMode is the sql_mode of a new server of MySQL.
const stockMode = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE," +
	"ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"

// assume returns a session without a server. It knows what the connector's connections
// have asked so far, and the variables in the DSN.
func (c *Connector) assume(columns []string) (*session.Session, *assumed) {
	known := c.known.Assume()
	a := &assumed{mode: stockMode, columns: columns, database: known.Database()}
	if cfg, err := parseBase(c.host.DSN.Reveal()); err == nil {
		if cfg.DBName != "" {
			a.database = cfg.DBName
		}
		if mode, ok := cfg.Params["sql_mode"]; ok {
			a.mode = strings.Trim(mode, `'"`)
		}
	}
	conn := base.New(a, nil)
	s := session.New(&conn, known)
	return &s, a
}

// QueryContext answers a question of the session.
func (a *assumed) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	switch {
	case strings.HasPrefix(query, "SELECT VERSION()"):
		a.note("the server is MySQL")
		return &assumedRows{row: []driver.Value{"", session.ServerMySQL}}, nil
	case strings.HasPrefix(query, "SELECT @@sql_mode"):
		a.note(fmt.Sprintf("sql_mode is %q, and the character set is utf8mb4", a.mode))
		return &assumedRows{row: []driver.Value{a.mode, "utf8mb4"}}, nil
	case strings.HasPrefix(query, "SELECT DATABASE()"):
		return &assumedRows{row: []driver.Value{a.database}}, nil
	case strings.HasPrefix(query, "SELECT * FROM ") && a.columns != nil:
		return &assumedRows{columns: a.columns}, nil
	}
	if table, ok := strings.CutPrefix(query, "SHOW FULL COLUMNS FROM "); ok {
		table, column, _ := strings.Cut(table, " WHERE Field = ")
		column, _, _ = strings.Cut(column, " OR ")
		a.note("column " + strings.Trim(column, "'") + " of " + table + " stores values as they are written")
	}
	return nil, ErrNoConnection
}

func (a *assumed) note(fact string) {
	if !slices.Contains(a.facts, fact) {
		a.facts = append(a.facts, fact)
	}
}

func (a *assumed) Prepare(string) (driver.Stmt, error) { return nil, ErrNoConnection }
func (a *assumed) Begin() (driver.Tx, error)           { return nil, ErrNoConnection }
func (a *assumed) Close() error                        { return nil }

// assumedRows is a result of one row, or of no row and these columns.
type assumedRows struct {
	columns []string
	row     []driver.Value
}

func (r *assumedRows) Columns() []string {
	if r.columns == nil {
		return make([]string, len(r.row))
	}
	return r.columns
}

func (r *assumedRows) Close() error { return nil }

func (r *assumedRows) Next(to []driver.Value) error {
	if r.row == nil {
		return io.EOF
	}
	copy(to, r.row)
	r.row = nil
	return nil
}

// withoutEffect returns the rules to plan with and not to execute: nothing is counted, logged
// or cached in r, and no key is generated.
func (r *ruleSet) withoutEffect() *ruleSet {
	unused, quiet := new(counts), slog.New(slog.DiscardHandler)
	return &ruleSet{
		rule: r.rule, generators: r.generators, plans: newPlanCache(unused), inUse: r.plans, counts: unused, logger: quiet,
		verifier: &verifier{read: r.verifier.read},
		unlisted: &unlisted{policy: r.unlisted.policy, logger: quiet},
	}
}

// assume sets what the connector has learned about a table by executing statements. A
// generator whose keys are still unknown is assumed to generate strings.
func (t *table) assume(inUse *planCache) {
	if known, ok := inUse.tables.Load(t.rule); ok {
		t.unguarded.Store(known.(*table).unguarded.Load())
		t.setKind(known.(*table).kind())
	}
	if t.kind() == rewrite.KindUnknown {
		t.setKind(rewrite.KindText)
	}
}

// unknownArg is an argument whose value is unknown.
type unknownArg struct{}
