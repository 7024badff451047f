package main

import (
	"testing"

	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// start returns an error if a key is not the key of its row.
func TestStart(t *testing.T) {
	if testserver.Each(t, TestStart) {
		return
	}
	if err := start(t.Context(), testserver.Database(t)); err != nil {
		t.Error(err)
	}
}
