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
	"github.com/shardkey/shardkey/rewrite"
)

// assumed is the connection of a session without a server. It answers a query as a new MySQL server
// does. To a query without a likely answer it returns [ErrNoConnection], which the session treats
// like an unsupported query.
type assumed struct {
	mode     string
	database string
	columns  []string // the columns of the statement's table; nil if unknown
	facts    []string // the assumptions so far
}

// assume returns a session without a server. It uses the facts that the connector's connections
// have learned, and the variables in the DSN.
func (c *Connector) assume(columns []string) (*session.Session, *assumed) {
	known := c.known.Assume()
	a := &assumed{mode: rewrite.DefaultSQLMode, columns: columns, database: known.Database()}
	if cfg := configOf(c.host.DSN.Reveal()); cfg != nil {
		if cfg.DBName != "" {
			a.database = cfg.DBName
		}
		if mode, ok := cfg.Params["sql_mode"]; ok {
			a.mode = strings.Trim(mode, `'"`)
		}
	}
	conn, _ := base.New(a, nil) // it has all methods
	s := session.New(&conn, known)
	return &s, a
}

// QueryContext answers a metadata query of the session.
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
		a.note("the columns of " + table + " store values as they are written")
	}
	return nil, ErrNoConnection
}

func (a *assumed) note(fact string) {
	if !slices.Contains(a.facts, fact) {
		a.facts = append(a.facts, fact)
	}
}

// ExecContext and the other methods answer nothing.
func (a *assumed) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return nil, ErrNoConnection
}

func (a *assumed) PrepareContext(context.Context, string) (driver.Stmt, error) {
	return nil, ErrNoConnection
}

func (a *assumed) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	return nil, ErrNoConnection
}

func (a *assumed) Prepare(string) (driver.Stmt, error) { return nil, ErrNoConnection }
func (a *assumed) Begin() (driver.Tx, error)           { return nil, ErrNoConnection }
func (a *assumed) Close() error                        { return nil }

// assumedRows is a result of one row, or a result of these columns without rows.
type assumedRows struct {
	base.NoRows
	columns []string
	row     []driver.Value
}

func (r *assumedRows) Columns() []string {
	if r.columns == nil {
		return make([]string, len(r.row))
	}
	return r.columns
}

func (r *assumedRows) Next(to []driver.Value) error {
	if r.row == nil {
		return io.EOF
	}
	copy(to, r.row)
	r.row = nil
	return nil
}

// withoutEffect returns a ruleVersion for planning. It doesn't count, log or cache in r, and generates
// no key.
func (r *ruleVersion) withoutEffect() *ruleVersion {
	unused, quiet := new(counts), slog.New(slog.DiscardHandler)
	return &ruleVersion{
		rule: r.rule, generators: r.generators, plans: newPlanCache(unused), inUse: r.plans, counts: unused, logger: quiet,
		verifier: &verifier{read: r.verifier.read},
		unlisted: &unlisted{logger: quiet},
	}
}

// assume copies the facts that executions have learned about a table.
func (t *keyedTable) assume(inUse *planCache) {
	if known, ok := inUse.tables.Load(t.rule); ok {
		known.(*keyedTable).unguarded.copyTo(&t.unguarded)
		t.setKind(known.(*keyedTable).kind())
	}
}

// unknownArg is an argument whose value is unknown.
type unknownArg struct{}
