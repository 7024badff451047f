package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// jsonLog takes what is logged, as JSON.
type jsonLog struct{ bytes.Buffer }

func (l *jsonLog) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

func (l *jsonLog) debugLogger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// take returns the lines since the last time.
func (l *jsonLog) take(t *testing.T) (all []map[string]any) {
	t.Helper()
	for text := range strings.Lines(l.String()) {
		var line map[string]any
		noError(t, json.Unmarshal([]byte(text), &line))
		all = append(all, line)
	}
	l.Reset()
	return all
}

func TestRefused_countedAndLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log jsonLog
		r := must(rule.Parse(t.Name(), []byte(watched("'ds.t_order_${0..1}'", 6))))(t)
		db, c := idleDB(t, r, WithLogger(log.logger()))
		refuse := func(query string, args ...any) {
			t.Helper()
			if _, err := db.ExecContext(t.Context(), query, args...); err == nil {
				t.Fatalf("%s\nhave: no error", query)
			}
		}
		for range 3 {
			refuse("INSERT INTO t_order_7 (a) VALUES ('secret')")
		}
		refuse("INSERT INTO t_order_1 (a) VALUES ('secret'")
		st, err := db.PrepareContext(t.Context(), "INSERT INTO t_order_8 (a) VALUES (?)")
		if err == nil {
			t.Fatalf("have: %v\nwant: an error", st)
		}
		have := log.take(t)
		want := []string{"unlisted t_order_7 <nil>", "unsupported t_order_1 1", "unlisted t_order_8 <nil>"}
		for i, line := range have {
			if i >= len(want) || line["level"] != "WARN" || fmt.Sprint(line["reason"], " ", line["table"], " ", line["line"]) != want[i] || strings.Contains(fmt.Sprint(line), "secret") {
				t.Errorf("line %d\nhave: %v\nwant: %q", i, line, want)
			}
		}
		if len(have) != len(want) {
			t.Errorf("have: %d lines\nwant: %d", len(have), len(want))
		}
		if n := c.Stats().Refused; n["unlisted"] != 4 || n["unsupported"] != 1 {
			t.Errorf("have: %v\nwant: 4 unlisted, 1 unsupported", n)
		}
		time.Sleep(time.Minute)
		refuse("INSERT INTO t_order_7 (a) VALUES ('secret')")
		if have := log.take(t); len(have) != 1 || have[0]["left_out"] != 2.0 {
			t.Errorf("have: %v\nwant: a line, and 2 left out before it", have)
		}
	})
}

// What another package refuses has the reason of its sentinel, and what no package refuses
// has none.
func TestRefused_byOtherPackages(t *testing.T) {
	c := &Connector{host: spi.Host{Logger: slog.New(slog.DiscardHandler)}}
	for _, of := range []struct {
		err      error
		reason   string
		sentinel error
	}{
		{errFake, "", errFake},
		{base.TooManyPlaceholders(1, 2), reasonPlaceholders, ErrTooManyPlaceholders},
		{fmt.Errorf("%w: %w", ErrUnsupportedStatement, errFake), reasonUnsupported, errFake},
		{&StatementError{Reason: reasonNoGene}, reasonNoGene, ErrUnsupportedStatement},
	} {
		err := c.refused(of.err)
		var e *StatementError
		have := ""
		if errors.As(err, &e) {
			have = e.Reason
		}
		if have != of.reason || !errors.Is(err, of.sentinel) || strings.Count(err.Error(), "shardkey") > 1 {
			t.Errorf("%v\nhave: %v, reason %q\nwant: %q and %v", of.err, err, have, of.reason, of.sentinel)
		}
	}
	want := map[string]int64{reasonPlaceholders: 1, reasonUnsupported: 1, reasonNoGene: 1}
	if have := c.counts.refusals(); !maps.Equal(have, want) {
		t.Errorf("have: %v\nwant: %v", have, want)
	}
}

// Each reason has an error that its errors begin with and have in their chain.
func TestStatementError_sentinels(t *testing.T) {
	for reason, sentinel := range sentinels {
		for _, e := range []*StatementError{
			{Reason: reason}, {Reason: reason, Err: errFake}, {Reason: reason, Err: fmt.Errorf("%w: %w", sentinel, errFake)},
			{Reason: reason, Table: "t", Row: 3, Message: "it is wrong", Err: errFake},
		} {
			begins := strings.HasPrefix(e.Error(), sentinel.Error()) && strings.Count(e.Error(), sentinel.Error()) == 1
			if !begins || !errors.Is(e, sentinel) || errors.Is(e, errFake) != (e.Err != nil) {
				t.Errorf("%+v\nhave: %v\nwant: %v", e, e, sentinel)
			}
		}
	}
	e := &StatementError{Reason: reasonUnsupported, Table: "t", Row: 3, Line: 2, Char: 7, Near: "«x»", Message: "it is wrong"}
	if have, want := e.Error(), "table t: row 3: it is wrong, at line 2 column 7 near «x»"; !strings.HasSuffix(have, want) {
		t.Errorf("have: %s\nwant: %s", have, want)
	}
}

func TestRefused_canceledIsNotLogged(t *testing.T) {
	var log jsonLog
	var r refusals
	r.log(log.logger(), &StatementError{Reason: reasonNoKey, Err: &GeneratorError{"g", "t", "id", context.Canceled}})
	if log.Len() > 0 {
		t.Errorf("have: %s\nwant: nothing of a call that its caller gave up", log.String())
	}
}

// Names in texts may be anybody's: not all are kept.
func TestRefused_boundedTables(t *testing.T) {
	var r refusals
	written := 0
	for i := range 10 * maxRefused {
		if _, due := r.due(refusedKey{"unlisted", fmt.Sprint("t_", i)}); due {
			written++
		}
	}
	if len(r.seen) > maxRefused+1 || written > maxRefused+1 {
		t.Errorf("have: %d tables, %d lines\nwant: at most %d", len(r.seen), written, maxRefused+1)
	}
}

func TestLog_asSentWithoutValues(t *testing.T) {
	var log jsonLog
	r := benchRule(t)
	db, c := idleDB(t, r, WithLogger(log.debugLogger()))
	mustExec(t, db, "INSERT INTO t_order (a) VALUES (?)", "secret")
	mustExec(t, db, "INSERT INTO t_order (a) VALUES (?)", "secret")
	mustExec(t, db, "INSERT INTO t_order (a, b) VALUES ('secret', 5), ('secret', 6) # secret")
	mustExec(t, db, "INSERT INTO t_plain (a) VALUES ('secret')")
	st := must(db.Prepare("INSERT INTO t_order (a) VALUES (?), (7)"))(t)
	must(st.Exec("secret"))(t)
	want := []string{
		"INSERT INTO t_order (a, `order_id`) VALUES (?, ?) 2 1",
		"INSERT INTO t_order (a, `order_id`) VALUES (?, ?) 2 1",
		"INSERT INTO t_order (a, b, `order_id`) VALUES (?, ?, ?), (?, ?, ?) 0 2",
		"INSERT INTO t_order (a, `order_id`) VALUES (?, ?), (?, ?) 3 2",
	}
	have := log.take(t)
	for i, line := range have {
		if text := fmt.Sprint(line["statement"], " ", line["args"], " ", line["keys"]); i >= len(want) || text != want[i] || line["level"] != "DEBUG" ||
			fmt.Sprint(line["generators"]) != "[snowflake]" || strings.Contains(fmt.Sprint(line), "secret") {
			t.Errorf("line %d\nhave: %v\nwant: %q", i, line, want)
		}
	}
	if len(have) != len(want) {
		t.Errorf("have: %d lines\nwant: %d", len(have), len(want))
	}
	if s := c.Stats().Tables[0]; s.Keys != 6 {
		t.Errorf("have: %+v\nwant: 6 keys", s)
	}
}
