package fill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/internal/panics"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// Table is a sharded table, as one connector uses it. It is safe for concurrent use.
type Table struct {
	Rule   *rule.Table
	Counts *Counts
	// Unlisted is set for a table that isn't in the rule, but looks like one of this table's. Its rows
	// get no keys.
	Unlisted *rule.UnlistedTableError

	ints   spi.Int64KeyGenerator // the generator if its keys are int64, nil if they are text
	column spi.Column
	logger *slog.Logger

	warnedKeys   atomic.Bool // a warning about keys that aren't consecutive was logged
	warnedUpdate atomic.Bool // a warning about an expression for a sharding column was logged

	shardBits   *rule.ShardBits // the shard bits in keys; nil for none
	lock        Lock            // shared by the tables of a generator
	actual      sync.Map        // *ActualTable by schema and name
	actualCount atomic.Int64
}

// NewTable returns a table of a rule. The tables of one generator share a lock.
func NewTable(r *rule.Table, c *Counts, ofGenerator Lock, logger *slog.Logger) *Table {
	t := &Table{Rule: r, Counts: c, column: spi.Column{Table: r.Logical, Name: r.Column}, lock: ofGenerator, logger: logger}
	if t.ints, _ = r.Generator.(spi.Int64KeyGenerator); t.ints != nil {
		t.shardBits = r.ShardBits // an ambiguous name has a generator that refuses all calls
	}
	return t
}

// HasText reports whether keys are strings or bytes. Otherwise they are integers.
func (t *Table) HasText() bool { return t.ints == nil }

// ShardBits returns the shard bits in keys, nil for none.
func (t *Table) ShardBits() *rule.ShardBits { return t.shardBits }

// Refusal returns the error for a row without a key in a table that isn't in the rule.
func (t *Table) Refusal() error {
	return refuse(unlisted, rewrite.StatementError{Table: t.Unlisted.Table, Err: t.Unlisted})
}

// generate generates n keys in one call. If n is 1, it uses the array one, which saves an
// allocation.
func (t *Table) generate(ctx context.Context, n int, keys *rewrite.Keys, one *[1]int64) (err error) {
	if t.Unlisted != nil {
		return t.Refusal()
	}
	defer t.generated(t.Counts.start(), &err)
	if t.ints == nil {
		keys.Values, err = t.makeValues(ctx, n)
		return err
	}
	if keys.Ints = one[:]; n > 1 {
		keys.Ints = make([]int64, n)
	}
	return t.makeInts(ctx, keys.Ints)
}

// makeInts generates int64 keys.
func (t *Table) makeInts(ctx context.Context, keys []int64) error {
	clear(keys) // which may be a buffer with earlier keys
	if err := t.ints.GenerateInt64Keys(ctx, t.column, keys); err != nil {
		return err
	}
	if i := slices.Index(keys, 0); i >= 0 {
		return fmt.Errorf("key %d of %d: expected an integer other than 0, found 0", i+1, len(keys))
	}
	return repeatedKey(len(keys), func(i int) int64 { return keys[i] })
}

// makeValues generates n text keys.
func (t *Table) makeValues(ctx context.Context, n int) ([]any, error) {
	values, err := t.Rule.Generator.GenerateKeys(ctx, t.column, n)
	switch {
	case err != nil:
		return nil, err
	case len(values) != n:
		return nil, fmt.Errorf("expected %d keys, found %d", n, len(values))
	}
	for i, v := range values {
		values[i] = sqltoken.PlainValue(v)
		if found := notText(values[i]); found != "" {
			return nil, fmt.Errorf("key %d of %d: expected a string or []byte that isn't empty, found %s", i+1, n, found)
		}
	}
	return values, repeatedKey(n, func(i int) string { return base.Text(values[i]) })
}

// repeatedKey returns an error if two of n keys are equal: REPLACE, IGNORE and upserts would lose a
// row without an error. Ascending keys take no memory.
func repeatedKey[K cmp.Ordered](n int, key func(i int) K) error {
	i := 1
	for i < n && key(i-1) < key(i) {
		i++
	}
	if i >= n {
		return nil
	}
	seen := make(map[K]bool, n)
	for i := range n {
		if seen[key(i)] {
			return fmt.Errorf("key %d of %d is the same as an earlier one of the call", i+1, n)
		}
		seen[key(i)] = true
	}
	return nil
}

// generated finishes a call of the generator. Callers defer it.
func (t *Table) generated(start time.Time, err *error) {
	if p := recover(); p != nil {
		*err = &panics.Error{What: "it", Value: p}
	}
	if *err != nil {
		*err = t.noKey(HideBadConn(*err))
		t.Counts.errors.Add(1)
	}
	if !start.IsZero() {
		t.Counts.generate.add(time.Since(start))
	}
}

// noKey returns the error for a failed generator.
func (t *Table) noKey(err error) error {
	reason := noKey
	if errors.Is(err, spi.ErrNoFittingKey) {
		reason = noFittingKey
	}
	return refuse(reason, rewrite.StatementError{
		Table: t.Rule.Logical, Column: t.Rule.Column,
		Err: &rule.GeneratorError{Generator: t.Rule.GeneratorName, Table: t.Rule.Logical, Column: t.Rule.Column, Err: err},
	})
}

// checkConsecutive checks the first n keys of one statement for callers that add to LastInsertId, for
// example ORMs. For keys that aren't consecutive it returns an error if the rule requires
// consecutive keys. Otherwise it logs a warning once. Text keys have no order.
func (t *Table) checkConsecutive(ctx context.Context, keys *rewrite.Keys, n int) error {
	if keys.Ints == nil || areConsecutive(keys.Ints[:n]) {
		return nil
	}
	if t.Rule.Consecutive {
		return refuse(notConsecutive, rewrite.StatementError{
			Table: t.Rule.Logical, Column: t.Rule.Column,
			Message: fmt.Sprintf("the rule has batchKeys: consecutive for the %d keys of column %s; insert fewer rows at a time, "+
				"or read each row's key with WithKeys", n, t.Rule.Column),
		})
	}
	if !t.warnedKeys.Swap(true) {
		t.logger.WarnContext(ctx, "shardkey: keys of an INSERT are not consecutive, use WithKeys",
			"table", t.Rule.Logical, "column", t.Rule.Column, "keys", n)
	}
	return nil
}
