package driver

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/shardkey/shardkey/rewrite"
)

// GeneratorError is the error for keys that a generator could not make. The
// statement was not sent.
type GeneratorError struct {
	Generator string // the generator's name in the rule
	Table     string // the logical table
	Column    string // its key column
	Err       error  // the generator's error
}

func (e *GeneratorError) Error() string {
	return fmt.Sprintf("shardkey: generator %s for %s.%s: %v", e.Generator, e.Table, e.Column, e.Err)
}

func (e *GeneratorError) Unwrap() error { return e.Err }

// generate makes n keys in one call. One key goes into one, which spares an
// allocation.
func (t *table) generate(ctx context.Context, n int, one *[1]int64) (keys rewrite.Keys, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
		if err != nil {
			keys, err = rewrite.Keys{}, &GeneratorError{t.rule.GeneratorName, t.rule.Logical, t.rule.Column, err}
		}
	}()
	if t.ints != nil {
		ints := one[:]
		if n > 1 {
			ints = make([]int64, n)
		}
		return rewrite.Keys{Ints: ints}, t.ints.GenerateInt64Keys(ctx, t.column(), ints)
	}
	values, err := t.rule.Generator.GenerateKeys(ctx, t.column(), n)
	switch {
	case err != nil:
		return rewrite.Keys{}, err
	case len(values) != n:
		return rewrite.Keys{}, fmt.Errorf("it made %d keys where %d were asked for", len(values), n)
	}
	for i, v := range values {
		if values[i] = plainKey(v); values[i] == nil {
			return rewrite.Keys{}, fmt.Errorf("key %d of %d is nil", i+1, n)
		}
	}
	if t.kind() == rewrite.UnknownKind {
		t.setKind(kindOf(values[0]))
	}
	return rewrite.Keys{Values: values}, nil
}

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
		return rewrite.Integer
	}
	return rewrite.Text
}

// learnKind finds out the kind of a generator's keys by one that is not used.
// It is needed only where a statement gives 0 or an empty string, or has ON
// DUPLICATE KEY UPDATE, before any key was made.
func (t *table) learnKind(ctx context.Context) error {
	var one [1]int64
	_, err := t.generate(ctx, 1, &one)
	return err
}
