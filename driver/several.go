package driver

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// results are the results of a string of several statements.
type results struct {
	affected, ids []int64
	keys          Keys
}

var _ mysql.Result = (*results)(nil)

// LastInsertId returns the insert ID of the last statement, as go-sql-driver does.
func (rs *results) LastInsertId() (int64, error) { return last(rs.ids), nil }

// RowsAffected returns the affected rows of the last statement.
func (rs *results) RowsAffected() (int64, error) { return last(rs.affected), nil }

func (rs *results) AllLastInsertIds() []int64 { return rs.ids }
func (rs *results) AllRowsAffected() []int64  { return rs.affected }

func last(all []int64) int64 {
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1]
}

// add adds the result of one statement, and its keys.
func (rs *results) add(one driver.Result, keys Keys) {
	rs.keys = rs.keys.with(keys)
	if all, ok := one.(mysql.Result); ok {
		rs.affected, rs.ids = append(rs.affected, all.AllRowsAffected()...), append(rs.ids, all.AllLastInsertIds()...)
	} else if one != nil {
		affected, _ := one.RowsAffected()
		id, _ := one.LastInsertId()
		rs.affected, rs.ids = append(rs.affected, affected), append(rs.ids, id)
	}
}

// runEach executes the statements of a string one after the other, each as if it had been sent alone.
// The rest of the string is read only after a statement ran, under the sql_mode and character set that
// the statement left. The first error ends it.
//
// For a caller that reads rows, the first statement that returns rows is sent together with those
// behind it, as go-sql-driver sends them. If one of those needs a key, they are refused.
func (c *conn) runEach(
	ctx context.Context, query string, args []driver.NamedValue, out *keysList, rows bool,
) (base.Reply, error) {
	if n := c.countParams(query); n != len(args) && len(args) > 0 {
		return base.Reply{}, base.ArgCountError(n, len(args))
	}
	var all results
	for rest := query; rest != ""; {
		from := rest
		one, own, err := "", args, ctx.Err()
		if err == nil {
			one, rest, err = c.split(ctx, from)
		}
		if err == nil {
			own = c.deal(one, args)
		}
		before := query[:len(query)-len(from)]
		switch {
		case err != nil:
			return base.Reply{}, afterOthers(c.refused(ctx, err), before)
		case rows && (rest == "" || c.mayReturnRows(one)):
			r, err := c.runRows(ctx, from, args, out.after(all.keys))
			return r, afterOthers(err, before)
		}
		var keys Keys
		r, err := c.runOne(ctx, one, own, &keysList{keys: &keys}, false, true)
		if err != nil {
			return base.Reply{}, afterOthers(err, before)
		}
		if all.add(r.Result, keys); c.rollsBack(one) {
			clear(all.keys.values) // of rows that it may have removed
		}
		args = args[len(own):]
	}
	out.set(all.keys)
	return base.Reply{Result: &all}, nil
}

// afterOthers returns the error of a statement as one of the string, in which others come before it.
// database/sql would send those again after driver.ErrBadConn.
func afterOthers(err error, before string) error {
	if before != "" && errors.Is(err, driver.ErrBadConn) {
		return mysql.ErrInvalidConn
	}
	if failed, ok := errors.AsType[*StatementError](err); ok && failed.Line > 0 {
		if failed.Line == 1 {
			failed.Char += len(before) - 1 - strings.LastIndexByte(before, '\n')
		}
		failed.Line += strings.Count(before, "\n")
	}
	return err
}

// split returns the first statement of a string, in the session as it is now.
func (c *conn) split(ctx context.Context, query string) (statement, rest string, err error) {
	key := planKey{text: query}
	if key.mode, key.charset, err = c.session.Mode(ctx); err != nil {
		return "", "", err
	}
	g := planner{session: &c.session, rules: c.connector.rules.Load()}
	return rewrite.Split(query, g.options(ctx, key))
}

// deal returns a statement's part of the arguments of a string. Without arguments the server reports
// the placeholders.
func (c *conn) deal(statement string, args []driver.NamedValue) []driver.NamedValue {
	if len(args) == 0 {
		return nil
	}
	own := slices.Clone(args[:min(c.countParams(statement), len(args))])
	for i := range own {
		own[i].Ordinal = i + 1
	}
	return own
}

func (c *conn) countParams(query string) int {
	mode, charset, _ := c.session.KnownMode()
	return sqltoken.CountParams(query, mode, charset)
}

// runRows executes the rest of a string, whose first statement may return rows.
func (c *conn) runRows(ctx context.Context, query string, args []driver.NamedValue, out *keysList) (base.Reply, error) {
	out.set(Keys{}) // those of the statements before
	r, err := c.runOne(ctx, query, args, out, true, true)
	if err != nil {
		out.reset()
	}
	if failed, ok := errors.AsType[*StatementError](err); ok && errors.Is(err, rewrite.ErrSeveralStatements) {
		failed.Message = "a statement that may return rows comes before one that needs a key; " +
			"execute the string instead of querying it, or send the statements one by one"
	}
	return r, err
}

// rollsBack reports whether a statement is a ROLLBACK, also to a savepoint.
func (c *conn) rollsBack(statement string) bool {
	mode, charset, _ := c.session.KnownMode()
	lx := sqltoken.NewLexer(statement, mode, charset)
	return lx.Is(lx.Next(), "ROLLBACK")
}

// mayReturnRows reports whether a statement may return rows.
func (c *conn) mayReturnRows(statement string) bool {
	mode, charset, _ := c.session.KnownMode()
	lx := sqltoken.NewLexer(statement, mode, charset)
	verb := lx.Next()
	switch {
	case verb.Kind == sqltoken.EOF:
		return false
	case lx.Is(verb, "INSERT", "REPLACE", "DELETE", "UPDATE"):
		return sqltoken.Contains(statement, "RETURNING")
	case lx.Is(verb, "SET"):
		return lx.Is(lx.Peek(), "STATEMENT")
	case lx.Is(verb, "BEGIN"):
		return !lx.EndsStatement(lx.Peek()) && !lx.Is(lx.Peek(), "WORK")
	}
	return !lx.Is(verb, "CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE", "USE", "DO", "LOAD", "START", "COMMIT", "ROLLBACK",
		"SAVEPOINT", "RELEASE", "LOCK", "UNLOCK", "PREPARE", "DEALLOCATE", "GRANT", "REVOKE", "FLUSH")
}

// with returns keys followed by others.
func (k Keys) with(other Keys) Keys {
	return Keys{append(k.values, other.values...), cmp.Or(k.column, other.column)}
}
