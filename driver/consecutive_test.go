package driver

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/spi"
)

// everySecond is a script of 2, 4, 6, …
func everySecond() script {
	next := int64(0)
	return func(_ context.Context, _ spi.Column, n int) ([]any, error) {
		keys := make([]any, n)
		for i := range keys {
			next += 2
			keys[i] = next
		}
		return keys, nil
	}
}

// Keys that cannot be counted from LastInsertId are an error where the rule says
// so, and a line in the log elsewhere; with WithKeys any keys are taken.
func TestConsecutive_isHeldBeforeSending(t *testing.T) {
	for _, c := range []struct {
		batchKeys string
		query     string
		withKeys  bool
		refused   bool
		logged    int
	}{
		{"any", "INSERT INTO ruled (a) VALUES (1)", false, false, 0},
		{"any", "INSERT INTO ruled (a) VALUES (1), (2)", false, false, 1},
		{"any", "INSERT INTO ruled (a) VALUES (1), (2)", true, false, 0},
		{"consecutive", "INSERT INTO ruled (a) VALUES (1)", false, false, 0},
		{"consecutive", "INSERT INTO ruled (a) VALUES (1), (2)", false, true, 0},
		{"consecutive", "INSERT INTO ruled (a) VALUES (1), (2)", true, false, 0},
	} {
		var log bytes.Buffer
		base := &fakeBase{kind: "direct"}
		connector := must(NewConnector(base, scriptRule(t, everySecond(), "ruled.id batchKeys: "+c.batchKeys), Config{Server: "other"},
			WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))(t)
		opened, err := connector.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		if c.withKeys {
			ctx = WithKeys(ctx, new(Keys))
		}
		for range 2 {
			before := len(base.calls)
			_, err = opened.(*conn).ExecContext(ctx, c.query, nil)
			sent := slices.ContainsFunc(base.calls[before:], func(call string) bool { return strings.Contains(call, "INSERT") })
			if errors.Is(err, ErrNotConsecutive) != c.refused || sent == c.refused {
				t.Errorf("batchKeys: %s, %s, with keys: %v\nhave: %v, sent %v\nwant: refused %v", c.batchKeys, c.query, c.withKeys, err, sent, c.refused)
			}
		}
		if have := strings.Count(log.String(), "not consecutive"); have != c.logged {
			t.Errorf("batchKeys: %s, %s\nhave: logged %d times\nwant: %d\n%s", c.batchKeys, c.query, have, c.logged, &log)
		}
		_ = opened.Close()
		_ = connector.Close()
	}
}
