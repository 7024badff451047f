package main

import (
	"os/exec"
	"testing"
)

func TestExitCode(t *testing.T) {
	for _, test := range []struct {
		script string
		want   int
	}{
		{"exit 0", 0},
		{"exit 7", 7},
		{"kill -TERM $$", 128 + 15},
	} {
		have, err := exitCode(exec.Command("sh", "-c", test.script).Run())
		if have != test.want || err != nil {
			t.Errorf("%s\nhave: %d, %v\nwant: %d", test.script, have, err, test.want)
		}
	}
	if have, err := exitCode(exec.Command("/no/such/program").Run()); have != 1 || err == nil {
		t.Errorf("no such program\nhave: %d, %v\nwant: 1 and an error", have, err)
	}
}
