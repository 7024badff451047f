package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// keyedTable is a sharded table, as one connector uses it.
type keyedTable struct {
	ints   spi.Int64KeyGenerator // the generator if its keys are int64, nil if they are text
	column spi.Column
	counts *tableCounts

	rule *rule.Table
	// unlisted is set for a table that isn't in the rule, but looks like one of this table's.
	unlisted *rule.UnlistedTableError

	warned    atomic.Bool // a warning about keys that aren't consecutive was logged
	unguarded unguarded   // actual tables
	// warnedKeys: a warning about keys that couldn't be found in the table was logged.
	warnedKeys atomic.Bool
	// warnedUpdate: a warning about an expression for a sharding column was logged.
	warnedUpdate atomic.Bool
	duplicates   logLimit // of lines about generated keys that exist already

	shardBits  *rule.ShardBits // the shard bits in keys; nil for none
	lock       searchLock      // shared by the tables of a generator
	shards     sync.Map        // *actualTable by schema and name
	shardCount atomic.Int64
}

func newTable(r *rule.Table, of *tableCounts, ofGenerator searchLock) *keyedTable {
	t := &keyedTable{rule: r, column: spi.Column{Table: r.Logical, Name: r.Column}, counts: of, lock: ofGenerator}
	if t.ints, _ = r.Generator.(spi.Int64KeyGenerator); t.ints != nil {
		t.shardBits = r.ShardBits // an ambiguous name has a generator that refuses all calls
	}
	return t
}

// plannedInsert is an INSERT of a plan, with its table.
type plannedInsert struct {
	table    *keyedTable
	steps    insertSteps
	rowCount int // the number of rows of values
	in       *rewrite.Insert
	shard    *actualTable // the actual table that the INSERT names; nil if it names none
	// bitsAt is the index of the shard bits' column among the columns whose values the plan knows.
	bitsAt int
	// callsFunctions: an upsert of several rows may call a stored function after its first row.
	callsFunctions bool
}

// insertSteps are the parts of an INSERT's execution that only some INSERTs have.
type insertSteps uint8

const (
	countsRows    insertSteps = 1 << iota // a row may have an explicit key
	guardsRows                            // shardGuard checks the rows
	searchesByRow                         // each row needs a key for its values
	addsShardBits                         // keys have shard bits of another column
	settlesRows                           // there may be several rows, or a clause affects the key
	reportsKey                            // the statement passes the first key to LAST_INSERT_ID()
)

// generate generates n keys of the table, independent of the rows' values. If n is 1, it uses the
// array one.
func (t *plannedInsert) generate(ctx context.Context, n int, one *[1]int64) (rewrite.Keys, error) {
	if t.shard != nil && t.shard.belongs != nil && t.table.ints != nil {
		return t.shard.generate(ctx, n, one)
	}
	return t.table.generate(ctx, n, one)
}

// accept counts the keys of one statement, and checks that the table can store them. column is what
// the execution knows of the key column; accept asks again before it refuses a key. plain is the result
// of isPlain. alone reports whether the caller sees only the first key.
func (t *plannedInsert) accept(
	ctx context.Context, rules *ruleVersion, s *session.Session, column **facts.Column, keys *rewrite.Keys, plain, alone bool,
) (err error) {
	n := keys.Len()
	if n > 1 && alone {
		if err := rules.checkConsecutive(ctx, t.table, keys); err != nil {
			t.table.counts.notInserted(n)
			return err
		}
	}
	t.table.counts.inserted(n)
	if !plain {
		if *column, err = t.table.checkKeys(ctx, s, t.in, *column, keys); err != nil {
			return err
		}
	}
	if rules.keyHook == nil {
		return nil
	}
	return rules.callKeyHook(ctx, t.table, n, keys)
}

// isPlain reports whether the insert has one row with a generated key that fits the column. It
// returns false if the statement or a trigger can change the key.
func (k *insertion) isPlain() bool {
	return k.steps&settlesRows == 0 && k.column.Plain && len(k.keys.Ints) == 1 && k.keys.Ints[0] >= 0
}

// generate generates n keys in one call. If n is 1, it uses the array one, which saves an
// allocation.
func (t *keyedTable) generate(ctx context.Context, n int, one *[1]int64) (keys rewrite.Keys, err error) {
	if t.unlisted != nil {
		return keys, t.refusal()
	}
	defer t.generated(t.counts.start(), &err)
	if t.ints == nil {
		keys.Values, err = t.makeValues(ctx, n)
		return keys, err
	}
	if keys.Ints = one[:]; n > 1 {
		keys.Ints = make([]int64, n)
	}
	return keys, t.makeInts(ctx, keys.Ints)
}

// refusal returns the error for a row without a key in a table that isn't in the rule.
func (t *keyedTable) refusal() error {
	return refuse(ReasonUnlisted, StatementError{Table: t.unlisted.Table, Err: t.unlisted})
}

// makeInts generates int64 keys.
func (t *keyedTable) makeInts(ctx context.Context, keys []int64) error {
	if err := t.ints.GenerateInt64Keys(ctx, t.column, keys); err != nil {
		return err
	}
	if i := slices.Index(keys, 0); i >= 0 {
		return fmt.Errorf("key %d of %d: expected an integer other than 0, found 0", i+1, len(keys))
	}
	return repeatedKey(len(keys), func(i int) int64 { return keys[i] })
}

// makeValues generates n text keys.
func (t *keyedTable) makeValues(ctx context.Context, n int) ([]any, error) {
	values, err := t.rule.Generator.GenerateKeys(ctx, t.column, n)
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
	return values, repeatedKey(n, func(i int) string { return session.Text(values[i]) })
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
func (t *keyedTable) generated(start time.Time, err *error) {
	if p := recover(); p != nil {
		*err = &guard.PanicError{What: "it", Value: p}
	}
	if *err != nil {
		*err = t.noKey(hideBadConn(*err))
		t.counts.errors.Add(1)
	}
	if !start.IsZero() {
		t.counts.generate.add(time.Since(start))
	}
}

// noKey returns the error for a failed generator.
func (t *keyedTable) noKey(err error) error {
	reason := ReasonNoKey
	if errors.Is(err, spi.ErrNoFittingKey) {
		reason = ReasonNoFittingKey
	}
	return refuse(reason, StatementError{
		Table: t.rule.Logical, Column: t.rule.Column,
		Err: &GeneratorError{t.rule.GeneratorName, t.rule.Logical, t.rule.Column, err},
	})
}

// setKeyColumn sets what a table's key column stores.
func setKeyColumn(t *rewrite.Table, column *facts.Column) error {
	if column.Unanswered {
		return fmt.Errorf("%w: the type of key column %s is needed to read the key, and the server didn't return it; "+
			"pass a positive integer or NULL", ErrUnsupportedStatement, t.Key)
	}
	t.InStrings, t.Unsigned = column.Kind()
	t.KeyColumnUnknown = false
	return nil
}

// checkKeys returns an error if generated keys don't fit in the key column. It asks again about a
// column that may have been altered, and returns what is known then.
func (t *keyedTable) checkKeys(
	ctx context.Context, s *session.Session, in *rewrite.Insert, column *facts.Column, keys *rewrite.Keys,
) (*facts.Column, error) {
	if column.Unfit(keys) < 0 {
		return column, nil
	}
	known, err := s.AskFacts(ctx, in.Schema, in.Name)
	if err != nil {
		return column, err
	}
	column = known.Column(in.Table.Key)
	i := column.Unfit(keys)
	if i < 0 {
		return column, nil
	}
	table, name := sqltoken.QuoteTable(in.Schema, in.Name), in.Table.Key
	return column, refuse(ReasonNarrowColumn, StatementError{
		Table: unquoted(table), Column: name,
		Message: fmt.Sprintf("column %s of type %s cannot store a key of generator %s; ALTER TABLE %s MODIFY %s %s",
			name, column.Text, t.rule.GeneratorName, table, sqltoken.QuoteIdentifier(name), typeFor(keys.At(i))),
	})
}

// checkConsecutive checks the keys of one statement for callers that add to LastInsertId, for
// example ORMs. For keys that aren't consecutive it returns an error if the rule requires
// consecutive keys. Otherwise it logs a warning once.
func (r *ruleVersion) checkConsecutive(ctx context.Context, t *keyedTable, keys *rewrite.Keys) error {
	if areConsecutive(keys) {
		return nil
	}
	if t.rule.Consecutive {
		return refuse(ReasonNotConsecutive, StatementError{
			Table: t.rule.Logical, Column: t.rule.Column,
			Message: fmt.Sprintf("the rule has batchKeys: consecutive for the %d keys of column %s; insert fewer rows at a time, "+
				"or read each row's key with WithKeys", keys.Len(), t.rule.Column),
		})
	}
	if !t.warned.Swap(true) {
		r.logger.WarnContext(ctx, "shardkey: keys of an INSERT are not consecutive, use WithKeys",
			"table", t.rule.Logical, "column", t.rule.Column, "keys", keys.Len())
	}
	return nil
}
