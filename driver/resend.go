package driver

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/outcome"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/sqlerr"
	"github.com/shardkey/shardkey/internal/sqltoken"
)

// followUp is what follows an execution of a plan, or its preparation.
type followUp uint8

const (
	done          followUp = iota // the result or the error is the caller's
	replan                        // plan again: the rule was replaced, or an upsert must not report the key of an existing row
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
		if p.reportsExisting() {
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
		p.stopReporting(ctx, err)
	}
	return next, err
}

// silence removes a plan that reports a key, and turns the reports of the connector off for a while.
func (p *plan) silence(ctx context.Context, s *session.Session, err error) {
	if s.Silence(unreportedFor) {
		p.rules.logger.WarnContext(ctx, "shardkey: INSERTs don't report their keys to the server", "error", err, "for", unreportedFor)
	}
	p.rules.plans.remove(p.key)
}

// failed returns what follows the server's refusal of the statement. A statement is sent again only if the
// server can't have executed any part of it.
func (p *plan) failed(ctx context.Context, x *call, sent *outcome.Sent, request *base.Request, err error) (r base.Reply, next followUp, _ error) {
	if isOtherWidth(err) && p.Insert.SelectKey != "" && request.Text != x.comments.around(p.key.text) {
		if err = p.unprepared(ctx, x, p.key.text, x.args, request); err == nil {
			r, err = p.do(ctx, x, request, sent) // the server refuses it: error 1136
		}
		if err == nil {
			return r, done, nil
		}
	}
	p.noteFailure(ctx, x, sent, err)
	explained := p.explainRefusal(ctx, x, err)
	next = p.remedy(err)
	switch {
	case explained != err:
		return r, done, explained
	case sqlerr.Is(err, sqlerr.FunctionRefused) && p.reports() && x.session.RefusesLastID(ctx):
		p.silence(ctx, &x.session, err)
		return r, replan, err
	case next == resend && p.count == "" && request.Stmt == nil && request.How.Caches() && p.runsAlone(ctx, &x.session):
		return r, resend, err
	case next == done || next == resend || !isRefused(ctx, &x.session, request, err):
		if next == replanColumns {
			p.columnsChanged(ctx, &x.session) // for the next execution
		}
		return r, done, p.explainKey(err)
	}
	next, err = p.refused(ctx, err)
	return r, next, err
}

// noteFailure updates the session after the server refused the statement.
func (p *plan) noteFailure(ctx context.Context, x *call, sent *outcome.Sent, err error) {
	x.session.FollowTransaction(p.key.text, err)
	p.conclude(ctx, x, sent, outcome.Report{Failed: true})
	p.reportDuplicate(ctx, &x.session, &sent.Keys, err)
}

// isRefused reports whether the server refused the statement before it executed it: it refuses in the
// same way to prepare it. Vitess doesn't check a statement that it prepares.
func isRefused(ctx context.Context, s *session.Session, request *base.Request, err error) bool {
	if s.IsVitess() {
		return strings.Contains(err.Error(), "VT12001") // an error of its planner
	}
	return s.Base.RefusesToPrepare(ctx, request.Text, err)
}

// runsAlone asks whether the statement executes no trigger and no stored function. The errors about
// prepared statements then precede its first row.
func (p *plan) runsAlone(ctx context.Context, s *session.Session) bool {
	in := p.filler.Insert
	known, err := s.AskFacts(ctx, in.Schema, in.Name)
	return err == nil && !known.Column(in.Table.Key).HasTriggers && !p.callsAny()
}

// callsAny reports whether the statement may call a stored function.
func (p *plan) callsAny() bool {
	_, text, found := strings.Cut(p.key.text, p.Insert.Name)
	if text = strings.TrimLeft(text, "`\" \t\r\n"); found && strings.HasPrefix(text, "(") {
		_, text, _ = strings.Cut(text, ")") // the column list
	}
	return !found || sqltoken.MayCallFunctions(text)
}

// reports reports whether the statement contains LAST_INSERT_ID(key).
func (p *plan) reports() bool {
	return p.Insert.ReportsFirstKey || p.Insert.ReportsExistingKey
}

// reportsExisting reports whether the statement is an upsert that reports the key of an existing row.
func (p *plan) reportsExisting() bool { return p.Insert != nil && p.Insert.ReportsExistingKey }

// errVersioned is why an upsert doesn't report existing keys: MariaDB would add a row to the table's history whenever
// the upsert matches a row, and count it, also if only columns without versioning change.
var errVersioned = errors.New("the table has system versioning, and the assignment of its key would be in its history")

// stopReporting removes the plan of an upsert that reports existing keys, and turns these reports off for
// its table for a while.
func (p *plan) stopReporting(ctx context.Context, err error) {
	if in := p.Insert; in.ReportsExistingKey && p.table.unreported.add(namedTable{in.Schema, in.Name}) {
		level := slog.LevelWarn
		if err == errVersioned {
			level = slog.LevelInfo
		}
		p.rules.logger.Log(ctx, level, "shardkey: upserts don't report the keys of existing rows", "table", p.filler.Name(),
			"error", err, "for", unreportedFor)
	}
	p.rules.plans.remove(p.key)
}

// unreportedFor is how long upserts of a table don't report existing keys after the server refused that.
const unreportedFor = time.Minute

// namedTable is a table's name in a statement.
type namedTable struct{ schema, name string }

// unreported are the tables whose upserts must not assign the key to itself. The zero value is empty. It
// is safe for concurrent use.
type unreported struct {
	mu    sync.Mutex
	until map[namedTable]time.Time
}

// add adds a table, and reports whether it is new.
func (u *unreported) add(t namedTable) (added bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.until == nil {
		u.until = map[namedTable]time.Time{}
	}
	now := time.Now()
	added = !now.Before(u.until[t])
	u.until[t] = now.Add(unreportedFor)
	return added
}

// of returns until when a table's upserts must not report existing keys; zero if they may.
func (u *unreported) of(t namedTable) (until time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if until = u.until[t]; !time.Now().Before(until) {
		delete(u.until, t)
		return time.Time{}
	}
	return until
}

// copyTo copies the tables.
func (u *unreported) copyTo(to *unreported) {
	u.mu.Lock()
	defer u.mu.Unlock()
	to.until = maps.Clone(u.until)
}
