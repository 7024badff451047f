package driver

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/shardkey/shardkey/driver/internal/outcome"
	"github.com/shardkey/shardkey/internal/sqlerr"
	"github.com/shardkey/shardkey/internal/sqltoken"
)

// followUp is what follows an execution of a plan, or its preparation.
type followUp uint8

const (
	done          followUp = iota // the result or the error is the caller's
	passed                        // so is this error, which is about a statement that is passed through
	replan                        // plan again: the rule was replaced, or the server refused an upsert's guard
	replanColumns                 // plan again if the columns have changed, which may have caused the error
	resend                        // send it again: the server refused the prepared statement, not the query
)

// remedy returns what may follow a server error. The number doesn't show that the server executed
// nothing: a trigger may raise any number, by SIGNAL or by one of its statements.
func (p *plan) remedy(err error) followUp {
	switch {
	case err == nil:
	case sqlerr.Is(err, sqlerr.ColumnNotNull, sqlerr.UnknownDatabase, sqlerr.UnknownColumn, sqlerr.ColumnCount, sqlerr.UnknownTable, sqlerr.NoDefault):
		if len(p.columns) > 0 {
			return replanColumns
		}
	case sqlerr.Is(err, sqlerr.ColumnDenied, sqlerr.NotUpdatable, sqlerr.NotInsertableTo, sqlerr.NotSupported):
		if p.isGuarded() {
			return replan
		}
	case sqlerr.Is(err, sqlerr.UnknownStatement, sqlerr.NeedReprepare, sqlerr.NotInCharset):
		return resend
	}
	return done
}

// refused returns what follows the server's refusal to prepare a statement.
func (p *plan) refused(ctx context.Context, err error) (followUp, error) {
	next := p.remedy(err)
	switch next {
	case done, resend:
		return done, p.explainKey(err)
	case replan:
		p.unguard(ctx, err)
	}
	return next, err
}

// silence removes a plan that reports a key, and turns the reports of the connector off for a while.
func (e *execution) silence(ctx context.Context, err error) (followUp, error) {
	if e.session.Silence(unguardedFor) {
		e.plan.rules.logger.WarnContext(ctx, "shardkey: INSERTs don't report their keys to the server", "error", err, "for", unguardedFor)
	}
	e.plan.rules.plans.remove(e.plan.key)
	return replan, err
}

// failed updates the session after the server refused the statement, and returns what follows. A
// statement is sent again only if the server can't have executed any part of it.
func (e *execution) failed(ctx context.Context, err error) (followUp, error) {
	e.session.FollowTransaction(e.plan.key.text, err)
	e.conclude(ctx, &outcome.Sent{Insert: e.plan.Insert}, outcome.Report{Failed: true})
	e.first.reportDuplicate(ctx, e.plan.rules, e.session, &e.first.keys, err)
	next := e.plan.remedy(err)
	if sqlerr.Is(err, sqlerr.FunctionRefused) && e.plan.reports() && e.session.RefusesLastID(ctx) {
		return e.silence(ctx, err)
	}
	if next == resend && e.sent.Stmt == nil && e.sent.How.Caches() && e.runsAlone(ctx) {
		return resend, err
	}
	if next == done || next == resend || !e.isRefused(ctx, err) {
		if next == replanColumns {
			e.plan.columnsChanged(ctx, e.session) // for the next execution
		}
		return done, e.plan.explainKey(err)
	}
	return e.plan.refused(ctx, err)
}

// isRefused reports whether the server refused the statement before it executed it: it refuses in the
// same way to prepare it. Vitess doesn't check a statement that it prepares.
func (e *execution) isRefused(ctx context.Context, err error) bool {
	if e.session.IsVitess() {
		return strings.Contains(err.Error(), "VT12001") // an error of its planner
	}
	text := e.sent.Text
	if e.sent.Stmt != nil {
		text = e.plan.Query()
	}
	return e.session.Base.RefusesToPrepare(ctx, text, err)
}

// runsAlone asks whether the statement executes no trigger and no stored function. The errors about
// prepared statements then precede its first row.
func (e *execution) runsAlone(ctx context.Context) bool {
	in := e.first.Insert
	known, err := e.session.AskFacts(ctx, in.Schema, in.Name)
	return err == nil && !known.Column(in.Table.Key).HasTriggers && !e.callsFunctions()
}

// callsFunctions reports whether the statement may call a stored function.
func (e *execution) callsFunctions() bool {
	in := e.first.Insert
	_, text, found := strings.Cut(e.plan.key.text, in.Name)
	if text = strings.TrimLeft(text, "`\" \t\r\n"); found && strings.HasPrefix(text, "(") {
		_, text, _ = strings.Cut(text, ")") // the column list
	}
	return !found || sqltoken.MayCallFunctions(text)
}

// reports reports whether the statement contains LAST_INSERT_ID(key).
func (p *plan) reports() bool {
	return p.Insert.ReportsFirstKey || p.Insert.ReportsExistingKey
}

// isGuarded reports whether the statement is a guarded upsert.
func (p *plan) isGuarded() bool { return p.Insert != nil && p.Insert.ReportsExistingKey }

// errVersioned is why an upsert isn't guarded: MariaDB would add a row to the table's history whenever
// the upsert matches a row, and count it, also if only columns without versioning change.
var errVersioned = errors.New("the table has system versioning, and the assignment of its key would be in its history")

// unguard removes the plan of a guarded upsert, and turns the guard off for its table for a while.
func (p *plan) unguard(ctx context.Context, err error) {
	if in := p.Insert; in.ReportsExistingKey && p.target.table.unguarded.add(namedTable{in.Schema, in.Name}) {
		level := slog.LevelWarn
		if err == errVersioned {
			level = slog.LevelInfo
		}
		p.rules.logger.Log(ctx, level, "shardkey: upserts don't report the keys of existing rows", "table", p.target.Name(),
			"error", err, "for", unguardedFor)
	}
	p.rules.plans.remove(p.key)
}

// unguardedFor is how long upserts of a table aren't guarded after the server refused the guard.
const unguardedFor = time.Minute

// namedTable is a table's name in a statement.
type namedTable struct{ schema, name string }

// unguarded are the tables whose upserts must not assign the key to itself. The zero value is empty. It
// is safe for concurrent use.
type unguarded struct {
	mu    sync.Mutex
	until map[namedTable]time.Time
}

// add adds a table, and reports whether it is new.
func (u *unguarded) add(t namedTable) (added bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.until == nil {
		u.until = map[namedTable]time.Time{}
	}
	now := time.Now()
	added = !now.Before(u.until[t])
	u.until[t] = now.Add(unguardedFor)
	return added
}

// of returns until when a table's upserts must not be guarded; zero if they may.
func (u *unguarded) of(t namedTable) (until time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if until = u.until[t]; !time.Now().Before(until) {
		delete(u.until, t)
		return time.Time{}
	}
	return until
}

// copyTo copies the tables.
func (u *unguarded) copyTo(to *unguarded) {
	u.mu.Lock()
	defer u.mu.Unlock()
	to.until = maps.Clone(u.until)
}
