package spi

import (
	"context"
	"time"
)

// Column is the column that keys are made for.
type Column struct {
	// Table is the logical table's name as written in the sharding rule.
	Table string
	// Name is the name of the table's generate-key column.
	Name string
}

// KeyGenerator makes the keys of a table's generate-key column.
//
// GenerateKeys returns n new keys, n ≥ 1, one for each row, in row order. The keys
// of one call come from one reservation; integer keys ascend, and are contiguous
// where the generator's layout allows. A key is an int64, uint64, string, []byte
// or any other type that database/sql accepts as an argument; nil is not a key.
// All keys of one generator and column have the same type.
//
// A call that must wait returns soon after ctx ends, with ctx's error in its
// chain. A generator that cannot make all n keys returns an error and no keys.
//
// GenerateKeys is called by many goroutines at once. The connectors
// of one rule in one process share a generator, and each process has its own:
// keys must be unique among all of them, and after a restart.
type KeyGenerator interface {
	GenerateKeys(ctx context.Context, column Column, n int) ([]any, error)
}

// Int64KeyGenerator is a [KeyGenerator] whose keys are int64. The driver then
// calls GenerateInt64Keys, which does not allocate an interface value for each
// key.
//
// GenerateInt64Keys fills all of keys, as GenerateKeys would with n = len(keys).
// After an error the contents of keys are undefined.
type Int64KeyGenerator interface {
	KeyGenerator
	GenerateInt64Keys(ctx context.Context, column Column, keys []int64) error
}

// BoxedKeys implements the GenerateKeys of an [Int64KeyGenerator] with its
// GenerateInt64Keys. A negative n is 0.
func BoxedKeys(ctx context.Context, g Int64KeyGenerator, column Column, n int) ([]any, error) {
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
	// Time is the key's time, to the tick of its layout.
	Time time.Time
	// WorkerID is the worker (node, shard) that made the key.
	WorkerID int64
	// Sequence is the key's number within its tick and worker.
	Sequence int64
	// Layout names the bits, as "41-10-12": time, worker, sequence.
	Layout string
}

// KeyDecoder takes integer keys apart.
//
// DecodeKey returns an error for a key that the generator could not have made,
// such as a negative one.
type KeyDecoder interface {
	DecodeKey(key int64) (KeyParts, error)
}

// KeyRanger returns the smallest and the largest key of a time interval, both
// inclusive: from ≤ key's time < until. Use it in WHERE id BETWEEN ? AND ?.
type KeyRanger interface {
	KeyRange(from, until time.Time) (first, last int64, err error)
}

// Describer describes a live generator or assigner in one line: its type and
// settings, its worker ID, never a secret.
type Describer interface {
	Describe() string
}
