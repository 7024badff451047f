package redis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

//go:embed reserve.lua
var reserveSource string

var reserveScript = goredis.NewScript(reserveSource)

// request is what reserve.lua is asked; see there.
type request struct {
	key    string
	n      int
	floor  position
	reach  int64
	epoch  int64
	caller time.Time
	run    string
}

// reply is what reserve.lua says; see there.
type reply struct {
	kind  string        // ok, wait, clock, foreign
	first position      // of kind ok
	wait  time.Duration // of kind wait
	now   int64         // the server's clock, in milliseconds since 1970
	time  int64         // the time line's now
	lost  bool          // the caller knew more than the server
	field string        // of kind foreign
	value string
}

// send runs the script once.
func (r request) send(ctx context.Context, c goredis.Scripter) (reply, error) {
	raw, err := reserveScript.Run(ctx, c, []string{r.key}, r.n, int64(r.floor), r.reach, r.epoch, r.caller.UnixMilli(), r.run).Slice()
	if err != nil {
		return reply{}, err
	}
	return parseReply(raw)
}

func parseReply(raw []any) (reply, error) {
	kind, texts, numbers := "", [4]string{}, [4]int64{}
	for i, v := range raw {
		switch v := v.(type) {
		case string:
			if i == 0 {
				kind = v
			} else if i < 5 {
				texts[i-1] = v
			}
		case int64:
			if i > 0 && i < 5 {
				numbers[i-1] = v
			}
		}
	}
	r := reply{kind: kind}
	switch {
	case (kind == "ok" || kind == "wait") && len(raw) == 5:
		r.first, r.wait = position(numbers[0]), time.Duration(numbers[0])*time.Millisecond
		r.now, r.time, r.lost = numbers[1], numbers[2], numbers[3] == 1
	case kind == "clock" && len(raw) == 2:
		r.now = numbers[0]
	case kind == "foreign" && len(raw) == 3:
		r.field, r.value = texts[0], texts[1]
	default:
		return reply{}, fmt.Errorf("the server answered the script with %v", raw)
	}
	return r, nil
}

// runID names the server's process: INFO's run_id. Where INFO is not allowed,
// each connection counts as a process of its own, which is safe and costs a
// wait of some milliseconds.
func runID(ctx context.Context, c *goredis.Conn, now time.Time) (string, error) {
	info, err := c.Info(ctx, "server").Result()
	var refusal goredis.Error
	if errors.As(err, &refusal) && strings.HasPrefix(err.Error(), "NOPERM") {
		return "unknown-" + strconv.FormatInt(now.UnixNano(), 36), nil
	}
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(info) {
		if id, ok := strings.CutPrefix(line, "run_id:"); ok {
			return strings.TrimSpace(id), nil
		}
	}
	return "unknown-" + strconv.FormatInt(now.UnixNano(), 36), nil
}
