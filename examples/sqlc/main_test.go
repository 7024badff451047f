package main

import (
	"io"
	"testing"

	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// run returns an error if a key is not the key of its row.
func TestRun(t *testing.T) {
	if testserver.Each(t, TestRun) {
		return
	}
	if err := run(t.Context(), io.Discard, testserver.Database(t)); err != nil {
		t.Error(err)
	}
}
