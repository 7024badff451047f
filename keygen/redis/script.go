package redis

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

//go:embed reserve.lua
var reserveSource string

var reserveScript = goredis.NewScript(reserveSource)

// reply is the result of reserve.lua, which documents it.
type reply struct {
	kind  string        // ok, wait, clock, foreign
	first position      // for ok
	wait  time.Duration // for wait
	now   int64         // the server's clock, in milliseconds since 1970
	time  int64         // the current time of the time line
	lost  bool          // the caller knew a later position than the server
	field string        // for foreign
	value string
}

func parseReply(raw []any) (reply, error) {
	number := func(i int) int64 { n, _ := raw[i].(int64); return n }
	text := func(i int) string { s, _ := raw[i].(string); return s }
	lengths := map[string]int{"ok": 5, "wait": 5, "clock": 2, "foreign": 3}
	if len(raw) == 0 || lengths[text(0)] != len(raw) {
		return reply{}, fmt.Errorf("expected a reply of reserve.lua, found %v", raw)
	}
	r := reply{kind: text(0)}
	switch r.kind {
	case "ok", "wait":
		r.first, r.wait = position(number(1)), time.Duration(number(1))*time.Millisecond
		r.now, r.time, r.lost = number(2), number(3), number(4) == 1
	case "clock":
		r.now = number(1)
	case "foreign":
		r.field, r.value = text(1), text(2)
	}
	return r, nil
}

// runID returns the run_id of INFO, which identifies the server's process. If INFO isn't permitted,
// each connection counts as another process. That is safe, and costs a wait of some milliseconds.
func runID(ctx context.Context, c *goredis.Conn, now time.Time) (string, error) {
	info, err := c.Info(ctx, "server").Result()
	if err != nil && !goredis.HasErrorPrefix(err, "NOPERM") {
		return "", err
	}
	for line := range strings.Lines(info) {
		if id, ok := strings.CutPrefix(line, "run_id:"); ok {
			return strings.TrimSpace(id), nil
		}
	}
	return "unknown-" + strconv.FormatInt(now.UnixNano(), 36), nil
}
