package driver

import (
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/rule"
)

// expression is what wrongUpsert returns for an assignment that only the server evaluates.
const expression = "expression"

// wrongUpsert returns the table that an error names for a row, "" for no error.
func wrongUpsert(err error) string {
	var at *StatementError
	var wrong *WrongShardError
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &at) || !errors.As(err, &wrong) || !errors.Is(err, ErrWrongShard) || at.Row != 0:
		return err.Error()
	case wrong.Values == nil:
		return expression
	case wrong.Err != nil:
		return "nowhere"
	}
	return wrong.Meant.String()
}

func TestUpsertGuard_refuses(t *testing.T) {
	const user = "INSERT INTO t_user_3 (id, user_id) VALUES (1, 7) ON DUPLICATE KEY UPDATE "
	for _, tt := range []struct {
		query string
		args  []any
		want  string // the table that is meant; "" if the statement is sent
	}{
		{user + "user_id = VALUES(user_id)", nil, ""},
		{user + "a = user_id + 1", nil, ""},
		{user + "user_id = user_id", nil, ""},
		{user + "user_id = ?", []any{8}, "ds.t_user_0"},
		{user + "user_id = ?", []any{uint64(8)}, "ds.t_user_0"},
		{user + "user_id = ?", []any{sql.NullInt64{Int64: 8, Valid: true}}, "ds.t_user_0"},
		{user + "user_id = ?", []any{11}, ""},
		{user + "user_id = ?", []any{"11"}, ""},
		{user + "user_id = ?", []any{[]byte("8")}, ""}, // only the server knows its value
		{user + "user_id = 0x08", nil, ""},
		{user + "user_id = NULL", nil, "nowhere"},
		{user + "user_id = ?", []any{nil}, "nowhere"},
		{user + "user_id = user_id + 4", nil, expression},
		{"INSERT INTO t_user_3 (id, user_id) VALUES (?, ?) ON DUPLICATE KEY UPDATE `user_id`=VALUES(`user_id`),`a`=VALUES(`a`)", []any{1, 7}, ""},
		{"INSERT INTO t_user_3 SET id = 1, user_id = 7 ON DUPLICATE KEY UPDATE user_id = 8", nil, "ds.t_user_0"},
		{"INSERT INTO t_order_3 (order_id) VALUES (7) ON DUPLICATE KEY UPDATE order_id = LAST_INSERT_ID(order_id)", nil, ""},
		{"INSERT INTO t_order_3 (order_id) VALUES (7) ON DUPLICATE KEY UPDATE user_id = 8", nil, ""}, // it decides on the data source alone
		{"INSERT INTO ds_0.t_order_3 (order_id, user_id) VALUES (3, 1) ON DUPLICATE KEY UPDATE order_id = 3, user_id = 2", nil, "ds_1.t_order_3"},
	} {
		db, base := openShards(t, shardedRule(t, ""))
		base.columns = [][2]string{{"id", "bigint"}, {"order_id", "bigint"}, {"user_id", "bigint"}}
		ways := map[string]func() error{
			"Exec": func() error { _, err := db.Exec(tt.query, tt.args...); return err },
			"Query": func() error {
				rows, err := db.Query(tt.query, tt.args...)
				if err == nil {
					rows.Close()
				}
				return err
			},
			"Prepare": func() error {
				stmt, err := db.Prepare(tt.query)
				if err != nil {
					return err
				}
				defer stmt.Close()
				_, err = stmt.Exec(tt.args...)
				return err
			},
		}
		for name, do := range ways {
			equal(t, wrongUpsert(do()), tt.want, name, tt.query, tt.args)
		}
		sent := 0
		for _, call := range base.sentInserts() {
			if !strings.HasPrefix(call, "prepare") {
				sent++
			}
		}
		if (sent > 0) != (tt.want == "") {
			t.Errorf("%s\nhave: %q\nwant: nothing sent if it is refused", tt.query, base.calls)
		}
	}
}

func TestUpsertGuard_warnAndOff(t *testing.T) {
	for _, tt := range []struct {
		settings string
		warnings int
	}{{", shardGuard: warn", 2}, {", shardGuard: off", 0}} {
		var log strings.Builder
		db, base := openShards(t, shardedRule(t, tt.settings), WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		for range 2 {
			for _, set := range []string{"user_id = 8", "user_id = user_id + 1"} {
				mustExec(t, db, "INSERT INTO t_user_3 (id, user_id) VALUES (1, 7) ON DUPLICATE KEY UPDATE "+set)
			}
		}
		if n := strings.Count(log.String(), "does not belong"); n != tt.warnings || len(base.sentInserts()) < 4 {
			t.Errorf("%s\nhave: %d warnings: %s %q\nwant: %d", tt.settings, n, log.String(), base.calls, tt.warnings)
		}
	}
}

// An UPDATE is sent unchanged, whatever it sets.
func TestShardGuard_leavesUpdates(t *testing.T) {
	for _, query := range []string{
		"UPDATE t_user_3 SET user_id = 8",
		"UPDATE t_user_3 SET user_id = user_id + 1 WHERE id = 5",
		"UPDATE x JOIN t_user_3 u ON u.id = x.id SET u.user_id = x.n",
		"WITH n AS (SELECT 1 AS id) UPDATE t_user_3 u JOIN n USING (id) SET u.user_id = 8",
	} {
		db, base := openShards(t, shardedRule(t, ""))
		if _, err := db.Exec(query); err != nil {
			t.Errorf("%s\nhave: %v", query, err)
		}
		if last := base.calls[len(base.calls)-1]; len(base.calls) != 2 || !strings.Contains(last, query) {
			t.Errorf("%s\nhave: %q\nwant: connect, and the statement unchanged", query, base.calls)
		}
	}
}

func mustParseRule(t testing.TB, text string) *rule.Rule {
	t.Helper()
	r := must(rule.Parse(t.Name(), []byte(text)))(t)
	return r
}
