package nearest

import (
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

func TestDistance_countsEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"abc", "abc", 0},
		{"abc", "abd", 1}, {"abc", "acb", 1}, {"abc", "ab", 1}, {"abc", "xabc", 1},
		{"snowflake", "snowflak", 1}, {"snwoflake", "snowflake", 1}, {"uuid", "nanoid", 4},
		{strings.Repeat("a", 65), strings.Repeat("a", 65), maxWord},
	} {
		must.Equal(t, Distance(c.a, c.b), c.want, c.a, c.b)
		if there, back := Distance(c.a, c.b), Distance(c.b, c.a); there != back {
			t.Errorf("%q, %q\nhave: %d one way, %d the other\nwant: the same", c.a, c.b, there, back)
		}
	}
}

func TestWords_likeliestFirst(t *testing.T) {
	right := []string{"worker-id", "worker-id-assigner", "epoch", "clock-back", "max-vibration-offset"}
	for _, c := range []struct{ wrong, want string }{
		{"worker_id", "worker-id"},
		{"workerId", "worker-id"},
		{"wroker-id", "worker-id"},
		{"worker", "worker-id worker-id-assigner"},
		{"epcoh", "epoch"},
		{"clockback", "clock-back"},
		{"something", ""},
		{"", ""},
		{"--", ""},
	} {
		have := Words(c.wrong, right)
		must.EqualSlices(t, have, strings.Fields(c.want), c.wrong)
	}
}
