package driver

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/rule"
)

type spanKey struct{}

func TestWithFilled_toldOfEachInsert(t *testing.T) {
	for _, c := range []struct {
		name, text string
		args       []any
		want       []Filled
	}{
		{"one row", "INSERT INTO t_user (name) VALUES (?)", []any{1}, []Filled{{"t_user", "id", "snowflake", "SNOWFLAKE", 1, nil}}},
		{"several rows", "INSERT INTO t_order (user_id) VALUES (?), (?), (?)", []any{1, 2, 3}, []Filled{{"t_order", "order_id", "snowflake", "SNOWFLAKE", 3, nil}}},
		{"some with a key", "INSERT INTO t_order (order_id, user_id) VALUES (NULL, ?), (?, ?)", []any{1, 5, 1}, []Filled{{"t_order", "order_id", "snowflake", "SNOWFLAKE", 1, nil}}},
		{"all with a key", "INSERT INTO t_order (order_id, user_id) VALUES (?, ?)", []any{5, 1}, nil},
		{"texts as keys", "INSERT INTO t_token (name) VALUES (?), (?)", []any{1, 2}, []Filled{{"t_token", "id", "uuid", "UUID", 2, nil}}},
		{"no INSERT", "UPDATE t_order SET user_id = ?", []any{1}, nil},
		{"another table", "INSERT INTO other (a) VALUES (?)", []any{1}, nil},
		{"refused", "INSERT INTO t_order_9 (user_id) VALUES (?)", []any{1}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var told []Filled
			var first []any
			base := &fakeBase{kind: "direct"}
			db := sql.OpenDB(offlineConnector(t, base, Config{Server: "other"}, WithFilled(func(ctx context.Context, f Filled) {
				if ctx.Value(spanKey{}) != "span" {
					t.Error("the context is another one")
				}
				first = append(first, f.FirstKey)
				f.FirstKey = nil
				told = append(told, f)
			})))
			defer db.Close()
			var keys Keys
			ctx := WithKeys(context.WithValue(t.Context(), spanKey{}, "span"), &keys)
			for range 2 { // the second one may go another way
				told, first = nil, nil
				_, _ = db.ExecContext(ctx, c.text, c.args...)
				if !slices.Equal(told, c.want) {
					t.Errorf("have: %+v\nwant: %+v", told, c.want)
				}
				if len(first) > 0 && first[0] != keys.Values()[0] {
					t.Errorf("first key\nhave: %v\nwant: %v", first[0], keys.Values()[0])
				}
			}
		})
	}
}

func TestWithFilled_panicIsAnError(t *testing.T) {
	for _, text := range []string{"INSERT INTO t_order (user_id) VALUES (?)", "INSERT INTO t_order (user_id) VALUES (?), (2)"} {
		base := &fakeBase{kind: "direct"}
		db := sql.OpenDB(offlineConnector(t, base, Config{Server: "other"}, WithFilled(func(context.Context, Filled) { panic("boom") })))
		for range 2 {
			var panicked *guard.PanicError
			if _, err := db.ExecContext(t.Context(), text, 1); !errors.As(err, &panicked) {
				t.Errorf("%s\nhave: %v\nwant: a PanicError", text, err)
			}
		}
		if strings.Contains(strings.Join(base.calls, " "), "INSERT") {
			t.Errorf("it was sent: %q", base.calls)
		}
		_ = db.Close()
	}
}

// Each way of an INSERT on a server, an INSERT … SELECT among them.
func TestWithFilled_onServers(t *testing.T) {
	if testserver.Each(t, TestWithFilled_onServers) {
		return
	}
	r := must(rule.Parse(t.Name(), []byte("rules:\n- !SHARDING\n  tables:\n    t_told: {keyGenerateStrategy: {column: id, keyGeneratorName: g}}\n"+
		"  keyGenerators: {g: {type: SNOWFLAKE, props: {worker-id: 3}}}\n")))(t)
	noError(t, RegisterRule(t.Name(), r))
	defer DeregisterRule(t.Name())
	var told []Filled
	db, _, err := Open(testserver.Database(t)+"?shardkeyRule="+url.QueryEscape(t.Name()), WithFilled(func(_ context.Context, f Filled) { told = append(told, f) }))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	mustExec(t, db, "CREATE TABLE t_told (id BIGINT PRIMARY KEY, a INT)")
	for _, text := range []string{
		"INSERT INTO t_told (a) VALUES (1)", "INSERT INTO t_told (a) VALUES (1), (2), (3)",
		"INSERT INTO t_told (a) SELECT a FROM t_told WHERE a > 1",
	} {
		told = nil
		var keys Keys
		must(db.ExecContext(WithKeys(t.Context(), &keys), text))(t)
		if values := keys.Values(); len(told) != 1 || told[0].Rows != len(values) || told[0].FirstKey != values[0] {
			t.Errorf("%s\nhave: %+v\nwant: %d rows, the first %v", text, told, len(values), values)
		}
	}
}
