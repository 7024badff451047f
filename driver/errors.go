package driver

import (
	"errors"
	"fmt"
	"strings"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// ErrNoRule is in the chain of the error for a connector without a sharding rule. Either the DSN
// has no shardkeyRule parameter, or a nil rule was passed.
var ErrNoRule = errors.New("shardkey: no sharding rule")

// DSNError is the error for an invalid data source name or [Config]. It never contains the password or a string
// that could be part of the password.
type DSNError struct {
	// Param is the wrong parameter, or the wrong field, such as Config.Server. It is empty if another
	// part is wrong.
	Param string
	// Reason describes the mistake and the fix.
	Reason string
	// Nearest is a known parameter or value that looks similar; empty if there is none.
	Nearest string
	// Err is the cause, for example the error of a rule that can't be loaded. It may be nil.
	Err error
}

func (e *DSNError) Error() string {
	var b strings.Builder
	switch {
	case strings.HasPrefix(e.Param, configPrefix):
		fmt.Fprintf(&b, "shardkey: %s: ", e.Param)
	case e.Param != "":
		fmt.Fprintf(&b, "shardkey: DSN: parameter %s: ", e.Param)
	default:
		b.WriteString("shardkey: DSN: ")
	}
	b.WriteString(e.Reason)
	if e.Nearest != "" {
		fmt.Fprintf(&b, "; did you mean %s?", e.Nearest)
	}
	if e.Err != nil && e.Err != ErrNoRule { // the reason already contains that
		b.WriteString(": " + plainText(e.Err))
	}
	return b.String()
}

func (e *DSNError) Unwrap() error { return e.Err }

// errRuleClosed is the error for a plan whose rule was replaced. Only a caller that uses a closed
// connection sees it, since the statement is planned again.
var errRuleClosed = fmt.Errorf("%w: the rule is no longer in use", spi.ErrClosed)

// The sentinels of refused statements. Each is in the chain of a [*StatementError].
var (
	// ErrUnsupportedStatement is for an INSERT or REPLACE into a sharded table that shardkey can't
	// add keys to.
	ErrUnsupportedStatement = rewrite.ErrUnsupportedStatement
	// ErrWrongShard is for a row that doesn't belong in the actual table of its INSERT. It is also
	// for an ON DUPLICATE KEY UPDATE that would change the row's table. A [*WrongShardError] is in
	// the chain too.
	ErrWrongShard = errors.New("shardkey: the row belongs in another table")
	// ErrNotConsecutive is for an INSERT whose keys would not be consecutive, if the rule has
	// batchKeys: consecutive. Either the INSERT has more rows than the generator's sequence, or the
	// generator's increment isn't 1. An execution with [WithKeys] accepts any keys.
	ErrNotConsecutive = errors.New("shardkey: keys of one statement are not consecutive")
	// ErrTooManyPlaceholders is for a statement that would have more placeholders with its keys
	// than the server accepts.
	ErrTooManyPlaceholders = base.ErrTooManyPlaceholders
)

// errNoKey begins the error for keys that could not be generated.
var errNoKey = errors.New("shardkey: no key generated")

// The values of [StatementError].Reason, by which [Stats] counts refused statements.
const (
	// ReasonUnsupported is for a form of INSERT that shardkey can't add keys to. Write it as the error's
	// message says.
	ReasonUnsupported = "unsupported"
	// ReasonUnlisted is for a row without a key in a table that looks like one of the rule's tables but
	// isn't in the rule. List it in actualDataNodes, or set unlisted: pass.
	ReasonUnlisted = "unlisted"
	// ReasonUnverified is for a statement about which the second parser disagrees. Report it, and set
	// shardkeyVerify=off or write the statement in another way meanwhile.
	ReasonUnverified = "unverified"
	// ReasonWrongShard is for a row that doesn't belong in the actual table of its INSERT. Insert it into
	// the table that the error names; see [ErrWrongShard].
	ReasonWrongShard = "wrong-shard"
	// ReasonNoFittingKey is for a row whose actual table is decided by the key, if the generator made no
	// key for that table. Change the generator or its properties as the error says.
	ReasonNoFittingKey = "no-fitting-key"
	// ReasonNotConsecutive is for keys that aren't consecutive, with batchKeys: consecutive. Insert fewer
	// rows at a time, or use [WithKeys]; see [ErrNotConsecutive].
	ReasonNotConsecutive = "not-consecutive"
	// ReasonPlaceholders is for a prepared statement with more than 65,535 placeholders. Insert fewer rows
	// at a time; see [ErrTooManyPlaceholders].
	ReasonPlaceholders = "placeholders"
	// ReasonNarrowColumn is for a key column that can't store the generated keys. Widen it by the ALTER
	// TABLE in the error's message.
	ReasonNarrowColumn = "narrow-column"
	// ReasonNoShardBits is for a row without a value for the column of its shard bits. Give it the column
	// in VALUES.
	ReasonNoShardBits = "no-shard-bits"
	// ReasonNoKey is for a generator that failed. The error has a [*GeneratorError] in its chain, whose Err
	// is for example a [*spi.StoreError], which says what to do.
	ReasonNoKey = "no-key"
)

// ErrNoConnection is in the chain of the error of [Connector.Plan] for a statement that can't be
// planned without querying the server. An example is an INSERT without a column list.
var ErrNoConnection = errors.New("shardkey: planning the statement needs a connection")

// sentinels has the sentinel error of each reason.
var sentinels = map[string]error{
	ReasonUnsupported:    ErrUnsupportedStatement,
	ReasonUnlisted:       ErrUnsupportedStatement,
	ReasonUnverified:     ErrUnsupportedStatement,
	ReasonWrongShard:     ErrWrongShard,
	ReasonNoFittingKey:   spi.ErrNoFittingKey,
	ReasonNotConsecutive: ErrNotConsecutive,
	ReasonPlaceholders:   ErrTooManyPlaceholders,
	ReasonNarrowColumn:   ErrUnsupportedStatement,
	ReasonNoShardBits:    ErrUnsupportedStatement,
	ReasonNoKey:          errNoKey,
}

// StatementError is the error for an INSERT or REPLACE into a sharded table that the driver refuses,
// and for a failed [NextKeys]. Its Reason is [ReasonUnsupported] or another Reason. Its cause, Err, is
// for example a [*GeneratorError], a [*WrongShardError], a [*rule.UnlistedTableError] or a
// [*rule.PlaceError].
type StatementError = rewrite.StatementError

// refuse completes an error by the reason and its sentinel.
func refuse(reason string, e StatementError) *StatementError {
	e.Reason, e.Sentinel = reason, sentinels[reason]
	return &e
}

// plainText returns an error's message without "shardkey: ", for use after another message.
func plainText(err error) string { return strings.TrimPrefix(err.Error(), "shardkey: ") }

// refusal returns the [*StatementError] for a statement that another package refuses, with its sentinel.
// It returns other errors unchanged.
func refusal(err error) error {
	if e, ok := errors.AsType[*StatementError](err); ok {
		e.Sentinel = sentinels[e.Reason]
		return err
	}
	switch {
	case errors.Is(err, ErrTooManyPlaceholders):
		return refuse(ReasonPlaceholders, StatementError{Err: err})
	case errors.Is(err, ErrUnsupportedStatement):
		return refuse(ReasonUnsupported, StatementError{Err: err})
	}
	return err
}

// GeneratorError is the cause of a [*StatementError] if a generator failed, and the error of
// [Connector.Ready].
type GeneratorError = rule.GeneratorError

// WrongShardError is the cause of the [*StatementError] for a row that doesn't belong in the actual
// table of its INSERT.
type WrongShardError = rule.WrongShardError
