package workerid

import (
	"strings"
	"testing"
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

func TestStartTime_nameWithParentheses(t *testing.T) {
	stat := "7870 (a) b (c) R 7862 7862 17991 0 -1 4194304 99 0 0 0 0 0 0 0 20 0 1 0 1282791 3133440 407"
	if have := startTime([]byte(stat)); have != "1282791" {
		t.Errorf("have: %s\nwant: 1282791", have)
	}
	if have := startTime([]byte("1 (x) R")); have != "" {
		t.Errorf("have: %s\nwant: nothing", have)
	}
}

func TestUptime_rises(t *testing.T) {
	first, ok := uptime()
	second, _ := uptime()
	if !ok || first <= 0 || second < first {
		t.Errorf("have: %v, then %v, %v\nwant: a time that does not fall", first, second, ok)
	}
}
