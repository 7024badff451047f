package driver

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// refused counts and logs a refused statement, and returns its error.
func (connector *Connector) refused(err error) error {
	err = refusal(err)
	if e, ok := errors.AsType[*StatementError](err); ok {
		connector.refusals.add(connector.logger, e)
	}
	return err
}

// refusals counts refused statements and logs them, at most once a minute for each reason and
// table.
type refusals struct {
	mu       sync.Mutex
	byReason map[string]int64
	seen     map[refusedKey]*logLimit
}

type refusedKey struct{ reason, table string }

const (
	// loggedEvery is how often a log line about the same problem is written.
	loggedEvery = time.Minute
	// maxRefused limits the number of entries, since table names in statements are arbitrary.
	maxRefused = 256
)

// counts returns the number of statements for each reason.
func (rf *refusals) counts() map[string]int64 {
	all := map[string]int64{}
	for reason := range sentinels {
		all[reason] = 0
	}
	rf.mu.Lock()
	defer rf.mu.Unlock()
	maps.Copy(all, rf.byReason)
	return all
}

func (rf *refusals) add(logger *slog.Logger, e *StatementError) {
	ended := errors.Is(e, context.Canceled) || errors.Is(e, context.DeadlineExceeded) // by the caller
	suppressed, due := rf.due(refusedKey{e.Reason, e.Table}, ended)
	if !due {
		return
	}
	attrs := []any{"reason", e.Reason}
	if e.Table != "" {
		attrs = append(attrs, "table", e.Table)
	}
	if e.Row > 0 {
		attrs = append(attrs, "row", e.Row)
	}
	if e.Column != "" {
		attrs = append(attrs, "column", e.Column)
	}
	if e.Line > 0 {
		attrs = append(attrs, "line", e.Line, "char", e.Char, "near", strings.Trim(e.Near, `"`)) // handlers quote it
	}
	if failed, ok := errors.AsType[*GeneratorError](e); ok {
		attrs = append(attrs, "generator", failed.Generator)
	}
	if why := remedyOf(e); why != "" {
		attrs = append(attrs, "error", why)
	}
	if suppressed > 0 {
		attrs = append(attrs, "suppressed", suppressed)
	}
	logger.Warn("shardkey: statement refused", attrs...)
}

// remedyOf returns what is wrong with a statement and what to do, for its log line. The errors of stores
// of worker IDs are in a line of their own, so that line has only the beginning.
func remedyOf(e *StatementError) string {
	const most = 200
	failed, isGenerator := errors.AsType[*GeneratorError](e)
	switch {
	case e.Message != "":
		return e.Message
	case e.Err == nil:
		return ""
	case !isGenerator:
		return plainText(e.Err)
	}
	why := plainText(failed.Err)
	if len(why) > most && (errors.Is(e, spi.ErrStore) || errors.Is(e, spi.ErrNoWorkerID)) {
		why = strings.ToValidUTF8(why[:most], "") + "…"
	}
	return why
}

// due counts a statement. It reports whether to log a line now, and how many lines were suppressed
// since the last one. A statement whose caller ended it is not logged.
func (rf *refusals) due(key refusedKey, ended bool) (suppressed int, due bool) {
	rf.mu.Lock()
	defer rf.mu.Unlock()
	if rf.seen == nil {
		rf.seen, rf.byReason = map[refusedKey]*logLimit{}, map[string]int64{}
	}
	rf.byReason[key.reason]++
	if ended {
		return 0, false
	}
	if rf.seen[key] == nil && len(rf.seen) >= maxRefused {
		key.table = ""
	}
	if rf.seen[key] == nil {
		rf.seen[key] = new(logLimit)
	}
	return rf.seen[key].due()
}

// logLimit limits the log lines about one problem to one in each minute. The zero value is ready to
// use. It is safe for concurrent use.
type logLimit struct {
	mu         sync.Mutex
	logged     time.Time
	suppressed int
}

// due reports whether to log a line now, and how many lines were suppressed since the last one.
func (l *logLimit) due() (suppressed int, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if !l.logged.IsZero() && now.Sub(l.logged) < loggedEvery {
		l.suppressed++
		return 0, false
	}
	suppressed, l.suppressed, l.logged = l.suppressed, 0, now
	return suppressed, true
}
