package main

import (
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "8 orders, 8 keys") {
		t.Errorf("have: %s\nwant: 8 orders, 8 keys", out.String())
	}
}
