package main

import (
	"context"
	"sync/atomic"

	"github.com/shardkey/shardkey/spi"
)

// All that a key generator needs: a method, and a line that registers it.

type ticktock struct{ n atomic.Int64 }

func (g *ticktock) GenerateKeys(_ context.Context, _ spi.Column, n int) ([]any, error) {
	last := g.n.Add(int64(n)) // one reservation, however many keys
	keys := make([]any, n)
	for i := range keys {
		keys[i] = last - int64(n-1-i)
	}
	return keys, nil
}

func init() {
	spi.RegisterKeyGenerator("TICKTOCK", func(spi.Props) (spi.KeyGenerator, error) { return new(ticktock), nil })
}
