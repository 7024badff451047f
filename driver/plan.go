package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/driver/internal/fill"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/sqlerr"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// plan is the parsed form of a statement that inserts into a sharded table. It is made once for each
// statement, and many connections use it concurrently.
type plan struct {
	*rewrite.Plan
	rules *ruleVersion
	key   planKey
	added int      // the number of placeholders for keys in the statement to bind
	count string   // see [rewrite.Plan.Count]
	how   base.How // how the statement with placeholders for keys is sent
	// prefersPrepared: a connection that interpolates prepares the statement if it is repeated; see
	// [base.Request].
	prefersPrepared bool
	returnsRows     bool // the server returns rows to a caller that reads them

	// zero for a statement that is passed through
	table  *keyedTable
	filler *fill.Filler
	// single: there is one row, whose key is generated and which no clause affects.
	single bool
	// callsFunctions: an upsert of several rows may call a stored function after its first row.
	callsFunctions bool
	hasTail        bool // a comment follows the statement's semicolon

	// lasting: the plan may be used again. It isn't if a row didn't match the columns, or if the key's
	// type decided about a value.
	lasting bool
	// expires is when an upsert that doesn't report existing keys is planned again; zero for never.
	expires time.Time
	// columns are the columns of the tables, as far as the plan depends on them.
	columns map[session.Table][]string

	givenOnce   sync.Once
	givenValues session.Given // for a statement that is passed through
}

// fills reports whether the statement needs generated keys. Otherwise it is passed through. p may
// be nil.
func (p *plan) fills() bool { return p != nil && p.Insert != nil }

// mayBeSeveral reports whether other statements may follow. p may be nil.
func (p *plan) mayBeSeveral() bool { return p != nil && p.hasTail }

// isInvalid reports whether the server will refuse the statement.
func (p *plan) isInvalid() bool { return p.Insert != nil && p.Insert.Invalid }

// isCurrent reports whether a plan is valid in the connection's session under the current rule. If it
// returns false, the plan may still be valid; see holds.
func (p *plan) isCurrent(c *conn) bool {
	if p.rules != c.connector.rules.Load() || len(p.columns) > 0 || p.isExpired() {
		return false
	}
	if mode, charset, known := c.session.KnownMode(); known {
		return p.key.mode == mode && p.key.charset == charset
	}
	return p.InAnySession()
}

func (p *plan) isExpired() bool { return !p.expires.IsZero() && !time.Now().Before(p.expires) }

// sameIn reports whether the plan is the same for another sql_mode.
func (p *plan) sameIn(mode sqltoken.Mode) bool {
	return p.SameIn(mode.String(), p.key.charset.String())
}

// holds asks whether a plan for this key is valid in the session. An unqualified table name depends on
// the current database.
func (p *plan) holds(ctx context.Context, s *session.Session) (bool, error) {
	if p.isExpired() {
		return false, nil
	}
	for t := range p.columns {
		if named, err := s.Names(ctx, t); !named || err != nil {
			return false, err
		}
	}
	return p.columnsHold(ctx, s)
}

// isSameAgain reports whether planning the same key with the same rules always returns this plan.
// No part of it depends on the server.
func (p *plan) isSameAgain() bool {
	return len(p.columns) == 0 && (p.Insert == nil || !p.Insert.OnDuplicate)
}

// size returns the approximate size of a plan in bytes, without its key.
func (p *plan) size() int {
	n := 1000
	if in := p.Insert; in != nil {
		n += 1000 + len(in.Rows)*(int(unsafe.Sizeof(rewrite.Row{}))+8*(1+len(in.Table.Recorded)))
	}
	if p.NumArgs > 0 {
		n += len(p.key.text)
	}
	return n
}

// explainKey adds what to do to an error of the server about the key.
func (p *plan) explainKey(err error) error {
	if in := p.Insert; in != nil && sqlerr.Is(err, sqlerr.OutOfRange) && strings.Contains(err.Error(), "~") {
		isExpression := func(r rewrite.Row) bool { return r.Key == rewrite.Expression }
		if in.SelectKey == rewrite.Expression || slices.ContainsFunc(in.Rows, isExpression) {
			return fmt.Errorf("shardkey: table %s: the expression for key column %s may be NULL or 0; to generate a key, "+
				"leave the column out: %w", p.filler.Name(), in.Table.Key, err)
		}
	}
	if in := p.Insert; in != nil {
		err = p.rules.explainUnrouted(p.table.Rule, in.Name, err)
	}
	return p.explainColumn(err)
}

// explainColumn adds to the server's error about an unknown column that the rule names the column,
// unless the program does.
func (p *plan) explainColumn(err error) error {
	var my *mysql.MySQLError
	if !errors.As(err, &my) || my.Number != sqlerr.UnknownColumn {
		return err
	}
	if in := p.Insert; in != nil {
		if column := in.Table.Key; facts.ContainsName(my.Message, column+"'") && !facts.ContainsName(p.key.text, column) {
			return fmt.Errorf("shardkey: table %s lacks column %s, which the rule names as its key column; "+
				"correct the rule or the table: %w", p.filler.Name(), column, err)
		}
	}
	return err
}

// columnsChanged reads the columns of a plan's tables again and reports whether they have changed.
// If so, it removes the plan.
func (p *plan) columnsChanged(ctx context.Context, s *session.Session) bool {
	for t := range p.columns {
		s.ForgetColumns(t)
	}
	hold, err := p.columnsHold(ctx, s)
	if !hold {
		p.rules.plans.remove(p.key)
	}
	return !hold && err == nil
}

// columnsHold reports whether the tables still have the columns that a plan depends on.
func (p *plan) columnsHold(ctx context.Context, s *session.Session) (bool, error) {
	for t, old := range p.columns {
		columns, _, err := s.Columns(ctx, t)
		if err != nil || !slices.Equal(columns, old) {
			return false, err
		}
	}
	return true, nil
}

// in returns the plan for a statement that was prepared in a database that isn't the current one.
// Its tables are qualified by the database.
func (p *plan) in(database string) *plan {
	return &plan{Plan: p.Plan, rules: p.rules, key: p.key, added: p.added, count: p.count, how: p.how, prefersPrepared: p.prefersPrepared, returnsRows: p.returnsRows,
		table: p.table, filler: p.filler.In(database),
		single: p.single, callsFunctions: p.callsFunctions, hasTail: p.hasTail, lasting: p.lasting, columns: p.columns}
}

// given returns the explicit values of the statement's rows; nil if p is nil.
func (p *plan) given() *session.Given {
	if p == nil {
		return nil
	}
	p.givenOnce.Do(func() { p.givenValues.Numbers, p.givenValues.Plain = p.ExplicitNumbers() })
	return &p.givenValues
}
