package driver

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/shardkey/shardkey/internal/sqltext"
	"github.com/shardkey/shardkey/rewrite"
)

// plainKey makes of a key what database/sql would make of an argument: int64 of
// other integers and of named ones, a driver.Valuer's value. A key that takes
// the base's own conversion stays as it is. A nil []byte is nil.
func plainKey(key any) any {
	switch k := key.(type) {
	case int64, string, uint64:
		return key
	case uint:
		return uint64(k)
	case []byte:
		if k == nil {
			return nil
		}
		return key
	}
	if v, err := driver.DefaultParameterConverter.ConvertValue(key); err == nil {
		return v
	}
	return key
}

func kindOf(key any) rewrite.Kind {
	switch key.(type) {
	case int64, uint64:
		return rewrite.KindInteger
	}
	return rewrite.KindText
}

// checkConsecutive is for the keys of one statement whose caller reads
// LastInsertId and counts on from there, as ORMs do. Where the rule demands it,
// keys that are not consecutive are an error; else they are logged once.
func (r *ruleSet) checkConsecutive(ctx context.Context, t *table, keys *rewrite.Keys) error {
	if areConsecutive(keys) {
		return nil
	}
	if t.rule.Consecutive {
		return fmt.Errorf("%w: the %d keys of %s.%s, which batchKeys: consecutive demands; insert fewer rows at a time, or take each row's key from WithKeys",
			ErrNotConsecutive, keys.Len(), t.rule.Logical, t.rule.Column)
	}
	if !t.warned.Swap(true) {
		r.logger.WarnContext(ctx, "shardkey: the keys of one INSERT are not consecutive: LastInsertId is the first, and the others cannot be counted from it; see WithKeys and batchKeys",
			"table", t.rule.Logical, "column", t.rule.Column, "keys", keys.Len())
	}
	return nil
}

// areConsecutive reports whether keys are n, n+1, …; those that are no integers
// are as they should be.
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

// learnKind finds out the kind of a generator's keys by one that is not used.
// It is needed only where a statement gives 0 or an empty string, or has ON
// DUPLICATE KEY UPDATE, before any key was made.
func (t *table) learnKind(ctx context.Context) error {
	var one [1]int64
	_, err := t.generate(ctx, 1, &one)
	return err
}

// isMissing reports whether a bound key asks for a generated one: nil does, 0
// does for integer keys (unless the session's sql_mode keeps it), "" for text (and
// where sql_mode takes it for nil).
func (s *session) isMissing(ctx context.Context, t *table, bound driver.Value) (bool, error) {
	if b, ok := bound.([]byte); bound == nil || ok && b == nil {
		return true, nil
	}
	empty, zero := isEmpty(bound), isZero(bound)
	if !empty && !zero {
		return false, nil
	}
	if t.kind() == rewrite.KindUnknown {
		if err := t.learnKind(ctx); err != nil {
			return false, err
		}
	}
	if t.kind() == rewrite.KindText {
		return empty, nil
	}
	mode, err := s.sqlMode(ctx)
	if zero {
		return mode&rewrite.NoAutoValueOnZero == 0, err
	}
	return mode&rewrite.EmptyStringIsNull != 0, err
}

func isEmpty(bound driver.Value) bool {
	switch v := bound.(type) {
	case string:
		return v == ""
	case []byte:
		return len(v) == 0
	}
	return false
}

func isZero(bound driver.Value) bool {
	switch v := bound.(type) {
	case int64:
		return v == 0
	case uint64:
		return v == 0
	case float64:
		return v > -0.5 && v < 0.5 // the servers round
	case bool:
		return !v
	case float32:
		return v > -0.5 && v < 0.5
	case string:
		return rewrite.IsZero(v)
	case []byte:
		return rewrite.IsZero(string(v))
	}
	return false
}

// boundKey is a bound key as it stands in the table, nil when only the server
// knows.
func boundKey(kind rewrite.Kind, bound driver.Value) any {
	switch v := bound.(type) {
	case int64, uint64:
		return v
	case string:
		if kind == rewrite.KindInteger {
			return sqltext.ParseInteger(v, 10)
		}
		return v
	case []byte:
		if kind == rewrite.KindInteger {
			return sqltext.ParseInteger(string(v), 10)
		}
		return append([]byte(nil), v...)
	}
	return nil
}

func toInt64(key any) int64 {
	switch key := key.(type) {
	case int64:
		return key
	case uint64:
		return int64(key) // as the base does with the server's
	}
	return 0
}
