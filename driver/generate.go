package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/spi"
)

// check counts the rows that need a key, and refuses rows that can't be inserted. If the keys have
// shard bits, genes are the rows that need a key.
func (e *execution) check(ctx context.Context, k *insertion) (n int, genes *geneRows, err error) {
	if n = len(k.in.Rows); !k.in.AllGenerated {
		if n, err = e.countRowsToFill(ctx, k); err != nil {
			return n, nil, err
		}
	}
	if err := e.guard(ctx, k); err != nil {
		return n, nil, err
	}
	if n > 0 && k.geneColumn != nil {
		genes, err = e.geneRows(ctx, k, n)
	}
	return n, genes, err
}

// generate generates the keys of an insert's rows and checks them.
func (e *execution) generate(ctx context.Context, k *insertion) error {
	n, genes, err := e.check(ctx, k)
	if err != nil {
		return err
	}
	if n == 0 {
		_, err = k.column.Learn(ctx, e.session)
		return err
	}
	switch {
	case k.geneColumn != nil:
		k.keys, err = genes.make(ctx, k.table, k.one)
	case k.drawsByRow():
		k.keys, err = e.fitting(ctx, k, n)
	default:
		k.keys, err = k.plannedInsert.generate(ctx, n, k.one)
	}
	if err != nil {
		return err
	}
	err = k.accept(ctx, e.plan.rules, e.session, &k.keys, e.out == nil)
	k.plain = k.isPlain(&k.keys)
	return err
}

// accept counts the keys of one statement, and checks that the table can store them. alone reports
// whether the caller sees only the first key.
func (t *plannedInsert) accept(ctx context.Context, rules *ruleVersion, s *session.Session, keys *rewrite.Keys, alone bool) error {
	n := keys.Len()
	if n > 1 && alone {
		if err := rules.checkConsecutive(ctx, t.table, keys); err != nil {
			return err
		}
	}
	t.table.counts.filled(n)
	if !t.isPlain(keys) {
		if err := t.table.checkKeys(ctx, s, t.column, keys); err != nil {
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
func (t *plannedInsert) isPlain(keys *rewrite.Keys) bool {
	facts := t.column.Known()
	return t.single && facts != nil && facts.Plain && len(keys.Ints) == 1 && keys.Ints[0] >= 0
}

// countRowsToFill counts the rows that need a key. For bound keys it checks whether the key is missing.
func (e *execution) countRowsToFill(ctx context.Context, k *insertion) (n int, err error) {
	for i := range k.in.Rows {
		switch r := k.in.Rows[i]; r.Key {
		case rewrite.Generated, rewrite.Expression:
			n++
		case rewrite.Argument:
			if k.generated == nil {
				k.generated = make([]bool, len(k.in.Rows))
			}
			if k.in.Table.KeepExplicit {
				continue
			}
			if k.generated[i], err = k.table.isMissing(ctx, e.session, e.user[r.Arg].Value, k.in, i); err != nil {
				return 0, err
			}
			if k.generated[i] {
				n++
			}
		}
	}
	return n, nil
}

// isGenerated reports whether row i's key was generated.
func (k *insertion) isGenerated(i int) bool {
	switch k.in.Rows[i].Key {
	case rewrite.Generated, rewrite.Expression:
		return true
	case rewrite.Argument:
		return k.generated[i]
	}
	return false
}

// generate generates n keys in one call and counts them. If n is 1, it uses the array one, which
// saves an allocation.
func (t *keyedTable) generate(ctx context.Context, n int, one *[1]int64) (keys rewrite.Keys, err error) {
	start := t.counts.start()
	defer t.generated(start, n, &err)
	if t.ints == nil {
		keys.Values, err = t.makeValues(ctx, n)
		return keys, err
	}
	if keys.Ints = one[:]; n > 1 {
		keys.Ints = make([]int64, n)
	}
	return keys, t.makeInts(ctx, keys.Ints)
}

// makeInts generates int64 keys.
func (t *keyedTable) makeInts(ctx context.Context, keys []int64) error {
	if err := t.ints.GenerateInt64Keys(ctx, t.column(), keys); err != nil {
		return err
	}
	if i := slices.Index(keys, 0); i >= 0 {
		return notAKey(i, len(keys), "0")
	}
	return nil
}

// notAKey returns the error for a value that requests a key or isn't one.
func notAKey(i, n int, found string) error {
	return fmt.Errorf("key %d of %d: expected an integer other than 0, or a string or []byte that isn't empty, found %s", i+1, n, found)
}

// makeValues generates n keys of another type than int64.
func (t *keyedTable) makeValues(ctx context.Context, n int) ([]any, error) {
	values, err := t.rule.Generator.GenerateKeys(ctx, t.column(), n)
	switch {
	case err != nil:
		return nil, err
	case len(values) != n:
		return nil, fmt.Errorf("expected %d keys, found %d", n, len(values))
	}
	kind := kindUnknown
	for i, v := range values {
		var found string
		if values[i] = rewrite.PlainKey(v); values[i] == nil {
			return nil, notAKey(i, n, "nil")
		}
		if kind, found = kindOf(values[i]); found != "" {
			return nil, notAKey(i, n, found)
		}
	}
	t.setKind(kind)
	return values, nil
}

// kindOf returns the kind of a key. If the value isn't one, found describes it.
func kindOf(key any) (kind keyKind, found string) {
	switch k := key.(type) {
	case int64, uint64:
		if k == int64(0) || k == uint64(0) {
			found = "0"
		}
		return kindInteger, found
	case string, []byte:
		if text, _ := textOf(k); text == "" {
			found = "an empty one"
		}
		return kindText, found
	}
	return kindUnknown, fmt.Sprintf("a %T", key)
}

// generated finishes a call of the generator for n keys. Callers defer it.
func (t *keyedTable) generated(start time.Time, n int, err *error) {
	if p := recover(); p != nil {
		*err = &guard.PanicError{What: "it", Value: p}
	}
	if *err != nil {
		*err = t.noKey(hideBadConn(*err))
	}
	t.counts.made(start, n, *err)
}

// noKey returns the error for a failed generator.
func (t *keyedTable) noKey(err error) error {
	reason := reasonNoKey
	if errors.Is(err, spi.ErrNoFittingKey) {
		reason = reasonNoFittingKey
	}
	return refuse(reason, StatementError{
		Table: t.rule.Logical, Column: t.rule.Column,
		Err: &GeneratorError{t.rule.GeneratorName, t.rule.Logical, t.rule.Column, err},
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
		return refuse(reasonNotConsecutive, StatementError{
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

// areConsecutive reports whether integer keys are n, n+1, …. It returns true for other keys.
func areConsecutive(keys *rewrite.Keys) bool {
	for i, key := range keys.Ints {
		if key != keys.Ints[0]+int64(i) {
			return false
		}
	}
	for i, key := range keys.Values {
		first, ok := keys.Values[0].(int64)
		if ok && key != first+int64(i) {
			return false
		}
	}
	return true
}

// isMissing reports whether the bound key of a row requests a generated key; see
// [rewrite.Insert.AsksForKey]. The error wraps [ErrUnsupportedStatement] if this is uncertain.
func (t *keyedTable) isMissing(
	ctx context.Context, s *session.Session, bound driver.Value, in *rewrite.Insert, row int,
) (bool, error) {
	mode := func() (string, error) { mode, _, err := s.Mode(ctx); return mode.String(), err }
	column := func() (strings, unsigned bool, err error) { return s.KeyColumn(in).Kind(ctx, s) }
	asks, err := in.AsksForKey(bound, row, mode, column)
	if refused, ok := err.(*StatementError); ok {
		refused.Table = t.rule.Logical
	}
	return asks, err
}

// checkKeys returns an error if generated keys don't fit in the key column.
func (t *keyedTable) checkKeys(ctx context.Context, s *session.Session, column *session.Column, keys *rewrite.Keys) error {
	i, known, err := column.Unfit(ctx, s, keys)
	if i < 0 || err != nil {
		return err
	}
	table, name := column.Table(), column.Name()
	return refuse(reasonNarrowColumn, StatementError{
		Table: unquoted(table), Column: name,
		Message: fmt.Sprintf("column %s of type %s cannot store a key of generator %s; ALTER TABLE %s MODIFY %s %s",
			name, known.Text, t.rule.GeneratorName, table, sqltoken.QuoteIdentifier(name), typeFor(keys.At(i))),
	})
}

// typeFor returns a column type that can store the key.
func typeFor(key any) string {
	const uuid = 36
	switch key := key.(type) {
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

// textOf returns a bound string, and reports whether the value is one.
func textOf(bound any) (text string, ok bool) {
	switch v := bound.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	}
	return "", false
}

// boundKey returns a bound key as the table stores it, nil if only the server knows it.
func boundKey(kind keyKind, bound driver.Value) any {
	switch v := bound.(type) {
	case int64, uint64:
		return v
	case []byte:
		if kind != kindInteger {
			return append([]byte(nil), v...)
		}
	}
	text, ok := textOf(bound)
	switch {
	case !ok:
		return nil
	case kind == kindInteger:
		return sqltoken.ParseInteger(text, 10)
	}
	return text
}

// boundInteger returns a bound key as an integer column stores it, nil if only the server knows it.
func boundInteger(bound driver.Value) any {
	const exact = 1 << 53
	switch v := bound.(type) {
	case bool:
		if v {
			return int64(1)
		}
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < exact {
			return int64(v)
		}
	}
	text, ok := textOf(bound)
	if !ok {
		return boundKey(kindInteger, bound)
	}
	whole, fraction, _ := strings.Cut(strings.Trim(text, " \t\n\v\f\r"), ".")
	if strings.Trim(fraction, "0") != "" {
		return nil
	}
	return sqltoken.ParseInteger(whole, 10)
}

func toInt64(key any) int64 {
	switch key := key.(type) {
	case int64:
		return key
	case uint64:
		return int64(key) // as the underlying driver converts the server's ID
	}
	return 0
}
