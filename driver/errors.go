package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/internal/rewrite"
	"github.com/shardkey/shardkey/internal/sqltext"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// ErrNoRule is in the chain of the error for a connector without a sharding
// rule: the shardkeyRule parameter is missing, or a nil rule was given.
var ErrNoRule = errors.New("shardkey: no sharding rule")

// DSNError is the error for a data source name that cannot be used. It never
// holds the password, nor text that could be a part of it.
type DSNError struct {
	// Param is the wrong parameter; empty when it is another part.
	Param string
	// Reason says what is wrong and what to write instead.
	Reason string
	// Nearest is the parameter that was probably meant, empty when none is near.
	Nearest string
	// Err is the cause, as the error of a rule that does not load; it may be nil.
	Err error
}

func (e *DSNError) Error() string {
	var b strings.Builder
	b.WriteString("shardkey: DSN: ")
	if e.Param != "" {
		fmt.Fprintf(&b, "parameter %s: ", e.Param)
	}
	b.WriteString(e.Reason)
	if e.Nearest != "" {
		fmt.Fprintf(&b, "; did you mean %s?", e.Nearest)
	}
	if e.Err != nil && e.Err != ErrNoRule { // the reason already says that
		b.WriteString(": " + strings.TrimPrefix(e.Err.Error(), "shardkey: "))
	}
	return b.String()
}

func (e *DSNError) Unwrap() error { return e.Err }

// errReplan is what run returns when nothing was executed and the statement is to
// be planned again: the rule that it was planned with has been replaced, or the
// server refused what was added to it. It is seen only by uses of a connection after its Close.
var errReplan = fmt.Errorf("%w: the rule is no longer in use", spi.ErrClosed)

// ErrUnsupportedStatement is in the chain of the error for an INSERT or REPLACE
// into a ruled table that cannot be filled; it was not sent. The error is a
// [*rewrite.StatementError] where it has a place in the text.
var ErrUnsupportedStatement = rewrite.ErrUnsupportedStatement

// ErrNotConsecutive is in the chain of the error for an INSERT into a table with
// batchKeys: consecutive whose keys would not be consecutive: more than the
// generator's sequence holds, or of a generator that counts by more than 1. It
// was not sent. An execution with [WithKeys] takes any keys.
var ErrNotConsecutive = errors.New("shardkey: keys of one statement are not consecutive")

// ErrTooManyPlaceholders is in the chain of the error for a statement that
// would have more placeholders with its keys than the server takes.
var ErrTooManyPlaceholders = base.ErrTooManyPlaceholders

// ErrNoConnection is in the chain of the error of [Connector.Plan] for a statement that
// can't be planned without asking the server, for example an INSERT without a column list.
var ErrNoConnection = errors.New("shardkey: the statement is planned without a connection")

// errUndecided is returned for a row about which only an execution can decide.
var errUndecided = errors.New("shardkey: only an execution decides")

// NextKeysError is the error for arguments of [NextKeys] that no keys can be made
// for.
type NextKeysError struct {
	Table   string // as it was given; empty when it is not about the table
	Reason  string // what is wrong and what to give instead
	Nearest string // the table that was probably meant, empty when none is near
	// Err is a [*rule.UnlistedTableError] for a table that looks like an actual table of the
	// rule, a [*rule.PlaceError] for a value without a shard, otherwise nil.
	Err error
}

func (e *NextKeysError) Error() string {
	s := "shardkey: next keys: "
	if e.Table != "" {
		s += fmt.Sprintf("table %q: ", e.Table)
	}
	s += e.Reason
	if e.Nearest != "" {
		s += fmt.Sprintf("; did you mean %q?", e.Nearest)
	}
	if e.Err != nil {
		s += ": " + strings.TrimPrefix(e.Err.Error(), "shardkey: ")
	}
	return s
}

func (e *NextKeysError) Unwrap() error { return e.Err }

// GeneratorError is the error for keys that a generator could not make. The
// statement was not sent.
type GeneratorError struct {
	Generator string // the generator's name in the rule
	Table     string // the logical table
	Column    string // its key column
	Err       error  // the generator's error, in whose chain driver.ErrBadConn is hidden
}

func (e *GeneratorError) Error() string {
	return fmt.Sprintf("shardkey: generator %s for %s.%s: %v", e.Generator, e.Table, e.Column, e.Err)
}

func (e *GeneratorError) Unwrap() error { return e.Err }

// NotReadyError says that a generator cannot make a key now.
type NotReadyError struct {
	Generator string   // its name in the rule
	Tables    []string // the logical tables that get no keys, in the rule's order
	Err       error    // the generator's error, as an INSERT's
}

func (e *NotReadyError) Error() string {
	const shown = 3
	tables := strings.Join(e.Tables[:min(shown, len(e.Tables))], ", ")
	if more := len(e.Tables) - shown; more > 0 {
		tables += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("shardkey: not ready: generator %s makes no keys for %s: %s", e.Generator, tables,
		strings.TrimPrefix(fmt.Sprint(e.Err), "shardkey: "))
}

func (e *NotReadyError) Unwrap() error { return e.Err }

// NarrowColumnError is the error for a generated key that the key column cannot
// hold, an INT the keys of SNOWFLAKE for one. The statement was not sent.
// [ErrUnsupportedStatement] is in its chain.
type NarrowColumnError struct {
	Table     string // quoted, as the statement names it
	Column    string
	Type      string // the column's, as the server shows it
	Generator string // the generator's name in the rule
	Key       any    // the first that does not fit
}

func (e *NarrowColumnError) Error() string {
	key, _ := sqltext.AppendLiteral(nil, e.Key)
	return fmt.Sprintf("%v: generator %s made the key %s, which column %s of %s, %s, cannot hold; ALTER TABLE %s MODIFY %s %s",
		ErrUnsupportedStatement, e.Generator, key, e.Column, e.Table, e.Type, e.Table, sqltext.QuoteIdentifier(e.Column), e.wanted())
}

func (e *NarrowColumnError) Unwrap() error { return ErrUnsupportedStatement }

// wanted is a type that holds the key.
func (e *NarrowColumnError) wanted() string {
	const uuid = 36
	switch key := e.Key.(type) {
	case string:
		return "VARCHAR(" + strconv.Itoa(max(uuid, utf8.RuneCountInString(key))) + ") NOT NULL"
	case []byte:
		return "VARBINARY(" + strconv.Itoa(len(key)) + ") NOT NULL"
	case uint64:
		if key > math.MaxInt64 {
			return "BIGINT UNSIGNED NOT NULL"
		}
	}
	return "BIGINT NOT NULL"
}

// hideBadConn returns an error that did not come from the connection without
// driver.ErrBadConn in its chain: database/sql closes the connection for it, and
// executes the statement again.
func hideBadConn(err error) error {
	if errors.Is(err, driver.ErrBadConn) {
		return goodConnError{err}
	}
	return err
}

// goodConnError is an error with all that is in its chain but driver.ErrBadConn.
type goodConnError struct{ err error }

func (e goodConnError) Error() string { return e.err.Error() }

func (e goodConnError) Is(target error) bool {
	return target != driver.ErrBadConn && errors.Is(e.err, target)
}

func (e goodConnError) As(target any) bool { return errors.As(e.err, target) }

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

// InsertSelectError is the error for an INSERT … SELECT into a sharded table whose rows cannot be
// copied. No row was inserted. [ErrUnsupportedStatement] is in its chain.
type InsertSelectError struct {
	Table  string // the target, quoted
	Reason string // why not, and the remedy
	Err    error  // the cause; may be nil
}

func (e *InsertSelectError) Error() string {
	text := fmt.Sprintf("%v: INSERT … SELECT into %s: %s", ErrUnsupportedStatement, e.Table, e.Reason)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *InsertSelectError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrUnsupportedStatement}
	}
	return []error{ErrUnsupportedStatement, e.Err}
}
