package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/internal/rewrite"
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

// The sentinels of statements that are refused. Each is in the chain of a [*StatementError].
var (
	// ErrUnsupportedStatement is for an INSERT or REPLACE into a sharded table that
	// cannot be given its keys.
	ErrUnsupportedStatement = rewrite.ErrUnsupportedStatement
	// ErrWrongShard is for a row that does not belong to the actual table that its INSERT
	// names, and for an ON DUPLICATE KEY UPDATE that would change where the row belongs. A
	// [*WrongShardError] is in the chain too.
	ErrWrongShard = errors.New("shardkey: the row belongs to another table")
	// ErrNotConsecutive is for an INSERT into a table with batchKeys: consecutive whose keys
	// would not be consecutive: there are more than the generator's sequence holds, or the
	// generator counts by more than 1. An execution with [WithKeys] takes any keys.
	ErrNotConsecutive = errors.New("shardkey: keys of one statement are not consecutive")
	// ErrTooManyPlaceholders is for a statement that would have more placeholders with its
	// keys than the server accepts.
	ErrTooManyPlaceholders = base.ErrTooManyPlaceholders
)

// errNoKey is how the error for keys that could not be generated begins.
var errNoKey = errors.New("shardkey: no key was generated")

// The reasons for which statements are refused.
const (
	reasonUnsupported    = "unsupported"
	reasonUnlisted       = "unlisted"
	reasonUnverified     = "unverified"
	reasonWrongShard     = "wrong-shard"
	reasonNoFittingKey   = "no-fitting-key"
	reasonNotConsecutive = "not-consecutive"
	reasonPlaceholders   = "placeholders"
	reasonNarrowColumn   = "narrow-column"
	reasonNoGene         = "no-gene"
	reasonNoKey          = "no-key"
)

// ErrNoConnection is in the chain of the error of [Connector.Plan] for a statement that
// can't be planned without asking the server, for example an INSERT without a column list.
var ErrNoConnection = errors.New("shardkey: the statement is planned without a connection")

// errUndecided is returned for a row about which only an execution can decide.
var errUndecided = errors.New("shardkey: only an execution decides")

// sentinels has the error with which the errors of each reason begin.
var sentinels = map[string]error{
	reasonUnsupported:    ErrUnsupportedStatement,
	reasonUnlisted:       ErrUnsupportedStatement,
	reasonUnverified:     ErrUnsupportedStatement,
	reasonWrongShard:     ErrWrongShard,
	reasonNoFittingKey:   spi.ErrNoFittingKey,
	reasonNotConsecutive: ErrNotConsecutive,
	reasonPlaceholders:   ErrTooManyPlaceholders,
	reasonNarrowColumn:   ErrUnsupportedStatement,
	reasonNoGene:         ErrUnsupportedStatement,
	reasonNoKey:          errNoKey,
}

// StatementError is the error for an INSERT or REPLACE into a sharded table that the driver
// refuses, and for keys that [NextKeys] cannot return. No row was inserted. The chain has the
// sentinel of the reason and Err. The text has no value of a row.
type StatementError struct {
	// Reason is the word by which [Stats] counts refused statements: unsupported, unlisted,
	// unverified, wrong-shard, no-fitting-key, not-consecutive, placeholders, narrow-column,
	// no-gene or no-key.
	Reason string
	Table  string // as the statement names it, or the logical table; may be empty
	Row    int    // the row in its INSERT, from 1; 0 if it isn't about one row
	Column string // the table's column; empty if it isn't about one column
	// Line and Char are the place in the statement, in lines and in bytes of the line from 1;
	// 0 if there is none. Near is the statement there, with '…' in place of literals.
	Line, Char int
	Near       string
	// Message reports what is wrong and what to do; if it is empty, Err does.
	Message string
	// Err is the cause, for example a [*GeneratorError], a [*WrongShardError], a
	// [*rule.UnlistedTableError] or a [*rule.PlaceError]; it may be nil.
	Err error
}

func (e *StatementError) Error() string {
	begin := "shardkey: the statement was refused"
	if sentinel := sentinels[e.Reason]; sentinel != nil {
		begin = sentinel.Error()
	}
	switch {
	case e.Message == "" && e.Err == nil:
		return begin
	case e.Message == "":
		return begin + ": " + plainText(e.Err, begin+": ")
	}
	var b strings.Builder
	b.WriteString(begin)
	if e.Table != "" {
		b.WriteString(": table " + e.Table)
	}
	if e.Row > 0 {
		fmt.Fprintf(&b, ": row %d", e.Row)
	}
	b.WriteString(": " + e.Message)
	if e.Line > 0 {
		fmt.Fprintf(&b, ", at line %d column %d near %s", e.Line, e.Char, e.Near)
	}
	return b.String()
}

func (e *StatementError) Unwrap() []error {
	var chain []error
	if sentinel := sentinels[e.Reason]; sentinel != nil {
		chain = append(chain, sentinel)
	}
	if e.Err != nil {
		chain = append(chain, e.Err)
	}
	return chain
}

// unquoted returns a table as errors name it.
func unquoted(table string) string { return strings.ReplaceAll(table, "`", "") }

// plainText returns the text of an error that stands behind another text: without the
// beginning that this one has.
func plainText(err error, begin string) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), begin), "shardkey: ")
}

// refusal returns the [*StatementError] for a statement that another package refuses. Other
// errors are returned as they are.
func refusal(err error) error {
	switch {
	case errors.As(err, new(*StatementError)):
		return err
	case errors.Is(err, ErrTooManyPlaceholders):
		return &StatementError{Reason: reasonPlaceholders, Err: err}
	case errors.Is(err, ErrUnsupportedStatement):
		return refusalAt(reasonUnsupported, err)
	}
	return err
}

// refusalAt returns the error for a statement that a parser refuses, with its place if err has one.
func refusalAt(reason string, err error) error {
	e := &StatementError{Reason: reason, Err: err}
	var at *rewrite.StatementError
	if errors.As(err, &at) {
		e.Table, e.Message = unquoted(at.Table), at.Reason
		e.Line, e.Char, e.Near = at.Line, at.Column, at.Near
	}
	return e
}

// GeneratorError is the cause of the [*StatementError] for keys that a generator could not make.
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

// hideBadConn returns an error that did not come from the connection without driver.ErrBadConn in
// its chain: database/sql closes the connection for it, and executes the statement again.
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

// refused counts and logs a statement that was refused, and returns its error.
func (c *Connector) refused(err error) error {
	err = refusal(err)
	var e *StatementError
	if errors.As(err, &e) {
		c.counts.refuse(e.Reason)
		c.refusals.log(c.host.Logger, e)
	}
	return err
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
	// maxRefused bounds the tables that are told apart: names in texts may be anybody's.
	maxRefused = 256
)

func (r *refusals) log(logger *slog.Logger, e *StatementError) {
	if errors.Is(e, context.Canceled) || errors.Is(e, context.DeadlineExceeded) {
		return // the caller's doing
	}
	leftOut, due := r.due(refusedKey{e.Reason, e.Table})
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
		attrs = append(attrs, "line", e.Line, "char", e.Char, "near", e.Near)
	}
	var failed *GeneratorError
	if errors.As(e, &failed) {
		attrs = append(attrs, "generator", failed.Generator, "error", failed.Err)
	}
	if leftOut > 0 {
		attrs = append(attrs, "suppressed", leftOut)
	}
	logger.Warn("shardkey: statement refused", attrs...)
}

// due reports whether a line is to be written, and how many like it were left out
// since the last one.
func (r *refusals) due(key refusedKey) (leftOut int, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[refusedKey]*refusedLog{}
	}
	if r.seen[key] == nil && len(r.seen) >= maxRefused {
		key.table = ""
	}
	last := r.seen[key]
	if last == nil {
		last = new(refusedLog)
		r.seen[key] = last
	}
	now := time.Now()
	if !last.logged.IsZero() && now.Sub(last.logged) < refusedEvery {
		last.leftOut++
		return 0, false
	}
	leftOut, last.leftOut, last.logged = last.leftOut, 0, now
	return leftOut, true
}
