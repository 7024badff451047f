package driver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// refused counts and logs a statement that was refused before it was sent, and
// returns its error. What the base or the server says is none of ours.
func (c *Connector) refused(err error) error {
	if err == nil {
		return nil
	}
	if reason := refusal(err); reason != "" {
		c.counts.refuse(reason)
		c.refusals.log(c.host.Logger, reason, err)
	}
	return err
}

// refusal is the reason for which a statement was refused, empty when it was not.
func refusal(err error) string {
	var unlisted *rule.UnlistedTableError
	var narrow *NarrowColumnError
	var verified *verifiedError
	var generator *GeneratorError
	var gene *GeneError
	switch {
	case errors.As(err, &unlisted):
		return "unlisted"
	case errors.Is(err, ErrWrongShard):
		return "wrong-shard"
	case errors.Is(err, spi.ErrNoFittingKey):
		return "no-fitting-key"
	case errors.Is(err, ErrNotConsecutive):
		return "not-consecutive"
	case errors.Is(err, ErrTooManyPlaceholders):
		return "placeholders"
	case errors.As(err, &narrow):
		return "narrow-column"
	case errors.As(err, &verified):
		return "unverified"
	case errors.As(err, &gene):
		return "no-gene"
	case errors.As(err, &generator):
		return "no-key"
	case errors.Is(err, ErrUnsupportedStatement):
		return "unsupported"
	}
	return ""
}

// refusedTable is the table of a refused statement, empty when the error does not
// say it.
func refusedTable(err error) string {
	var unlisted *rule.UnlistedTableError
	var wrong *WrongShardError
	var narrow *NarrowColumnError
	var generator *GeneratorError
	var gene *GeneError
	var statement *rewrite.StatementError
	switch {
	case errors.As(err, &unlisted):
		return unlisted.Table
	case errors.As(err, &wrong):
		return wrong.Table
	case errors.As(err, &narrow):
		return narrow.Table
	case errors.As(err, &gene):
		return gene.Table
	case errors.As(err, &generator):
		return generator.Table
	case errors.As(err, &statement):
		return strings.ReplaceAll(statement.Table, "`", "")
	}
	return ""
}

// refusals logs refused statements, each reason of a table once a minute.
type refusals struct {
	mu   sync.Mutex
	seen map[refusedKey]*refusedLog
}

type refusedKey struct{ reason, table string }

type refusedLog struct {
	logged  time.Time
	leftOut int
}

const (
	refusedEvery = time.Minute
	// maxRefused bounds the tables that are told apart: names in texts may be
	// anybody's.
	maxRefused = 256
)

func (r *refusals) log(logger *slog.Logger, reason string, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return // the caller's doing
	}
	key := refusedKey{reason, refusedTable(err)}
	leftOut, due := r.due(key)
	if !due {
		return
	}
	attrs := []any{"reason", reason, "error_type", typeName(err)}
	if key.table != "" {
		attrs = append(attrs, "table", key.table)
	}
	var statement *rewrite.StatementError
	var generator *GeneratorError
	switch {
	case errors.As(err, &statement):
		attrs = append(attrs, "line", statement.Line, "column", statement.Column, "near", statement.Near)
	case errors.As(err, &generator):
		attrs = append(attrs, "generator", generator.Generator, "error", generator.Err)
	}
	if leftOut > 0 {
		attrs = append(attrs, "left_out", leftOut)
	}
	logger.Warn("shardkey: a statement was refused and not sent", attrs...)
}

// due reports whether a line is to be written, and how many like it were left out
// since the last one.
func (r *refusals) due(key refusedKey) (leftOut int, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[refusedKey]*refusedLog{}
	}
	last := r.seen[key]
	if last == nil {
		if len(r.seen) >= maxRefused {
			key.table = ""
			last = r.seen[key]
		}
		if last == nil {
			last = new(refusedLog)
			r.seen[key] = last
		}
	}
	now := time.Now()
	if !last.logged.IsZero() && now.Sub(last.logged) < refusedEvery {
		last.leftOut++
		return 0, false
	}
	leftOut, last.leftOut, last.logged = last.leftOut, 0, now
	return leftOut, true
}

// typeName is the type of an error of ours, or of what is in its chain.
func typeName(err error) string {
	switch err.(type) {
	case unlistedError:
		return "*rule.UnlistedTableError"
	case *verifiedError:
		return fmt.Sprintf("%T", errors.Unwrap(err))
	}
	name := fmt.Sprintf("%T", err)
	if !strings.HasPrefix(name, "*fmt.") {
		return name
	}
	switch { // it has no type of its own
	case errors.Is(err, ErrNotConsecutive):
		return "driver.ErrNotConsecutive"
	case errors.Is(err, ErrTooManyPlaceholders):
		return "driver.ErrTooManyPlaceholders"
	}
	return "driver.ErrUnsupportedStatement"
}
