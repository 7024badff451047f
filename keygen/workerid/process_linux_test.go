package workerid

import (
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

func TestIdentity_staysAndHasTheStartTime(t *testing.T) {
	first := identity()
	if first == "" || first != identity() {
		t.Errorf("have: %q, then %q\nwant: one that stays", first, identity())
	}
	boot, start, _ := strings.Cut(first, " ")
	if len(boot) != 36 || start == "" || start == "0" {
		t.Errorf("have: %q\nwant: a boot id and a start time", first)
	}
}

func TestUptime_rises(t *testing.T) {
	first, ok := uptime()
	second, _ := uptime()
	if !ok || first <= 0 || second < first {
		t.Errorf("have: %v, then %v, %v\nwant: a time that does not fall", first, second, ok)
	}
}

// The fields of a process' stat file are counted after its name.
func TestStartTime_fields(t *testing.T) {
	const before = "1 (a b) c) S "
	nineteen := strings.Repeat("x ", 18)
	must.Equal(t, startTime([]byte(before+nineteen+"4711")), "4711", "the last field")
	must.Equal(t, startTime([]byte(before+nineteen)), "", "a field is missing")
}
