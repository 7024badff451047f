package spi

import (
	"context"
	"time"
)

// Column is the column that keys are generated for.
type Column struct {
	// Table is the logical table's name as written in the sharding rule.
	Table string
	// Name is the name of the table's key column.
	Name string
}

// KeyGenerator generates the keys of a table's key column.
//
// GenerateKeys returns n new keys, n ≥ 1, one for each row, in row order. A key is a string, a
// []byte, or a driver.Valuer of one of these. It isn't nil or empty, which request a key in an
// INSERT. The driver refuses other values, and a key that a call returns twice. A generator of
// integers is an [Int64KeyGenerator].
//
// If GenerateKeys has to wait, it returns soon after ctx ends, with ctx's error in its chain. If it
// can't generate all n keys, it returns an error and no keys.
//
// GenerateKeys is called by multiple goroutines at once. Connectors of the same rule share a
// generator within a process, and each process has its own. Keys must be unique among all
// processes, and after a restart.
type KeyGenerator interface {
	GenerateKeys(ctx context.Context, column Column, n int) ([]any, error)
}

// Int64KeyGenerator is a [KeyGenerator] whose keys are int64. The driver then calls
// GenerateInt64Keys instead of GenerateKeys, for which [KeysFromInts] is enough.
//
// GenerateInt64Keys sets all elements of keys. They aren't 0, which requests a key in an INSERT. The
// keys of one call ascend, and are consecutive where the generator's layout permits. After an error
// the contents of keys are undefined.
type Int64KeyGenerator interface {
	KeyGenerator
	GenerateInt64Keys(ctx context.Context, column Column, keys []int64) error
}

// KeysFromInts implements GenerateKeys for an [Int64KeyGenerator] by calling its GenerateInt64Keys. If
// n is negative, it returns no keys.
func KeysFromInts(ctx context.Context, g Int64KeyGenerator, column Column, n int) ([]any, error) {
	n = max(n, 0)
	ints := make([]int64, n)
	if err := g.GenerateInt64Keys(ctx, column, ints); err != nil {
		return nil, err
	}
	keys := make([]any, n)
	for i, k := range ints {
		keys[i] = k
	}
	return keys, nil
}

// KeyParts are the parts of an integer key.
type KeyParts struct {
	// Time is the key's time. Its precision is the tick of the layout.
	Time time.Time
	// WorkerID is the worker ID of the process that generated the key.
	WorkerID int64
	// Sequence is the number of the key within its tick and worker ID.
	Sequence int64
	// Layout is the number of bits for time, worker ID and sequence, for example "41-10-12".
	Layout string
}

// KeyDecoder decodes integer keys.
//
// DecodeKey returns an error for a key that the generator can't have generated, for example a
// negative one.
type KeyDecoder interface {
	DecodeKey(key int64) (KeyParts, error)
}

// KeyRanger returns the smallest and the largest key of a time interval, both inclusive: from ≤
// key's time < until. Use them in WHERE id BETWEEN ? AND ?. The error reports an interval outside
// the layout's times.
type KeyRanger interface {
	KeyRange(from, until time.Time) (first, last int64, err error)
}

// Describer describes an open generator or assigner in one line: its type, settings and worker ID.
// The description contains no secrets.
type Describer interface {
	Describe() string
}
