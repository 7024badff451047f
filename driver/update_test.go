package driver

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/rule"
)

// expression is what wrongUpdate says of an assignment that only the server knows.
const expression = "expression"

// wrongUpdate is the table that an error says a row belongs into, "" for no error.
func wrongUpdate(err error) string {
	var wrong *WrongShardError
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &wrong) || !errors.Is(err, ErrWrongShard):
		return err.Error()
	case wrong.Values == nil:
		return expression
	case wrong.Err != nil:
		return "nowhere"
	}
	return wrong.Meant.String()
}

func TestUpdateGuard_refuses(t *testing.T) {
	feb := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	for _, tt := range []struct {
		query string
		args  []any
		want  string // the table that is meant; "" when it is sent; "nowhere"; "expression"
	}{
		// The new value belongs into the table that is named, as in what ORMs send that
		// write all columns of a row.
		{"UPDATE t_user_3 SET user_id = ?, a = ? WHERE id = ?", []any{7, 1, 2}, ""},
		{"UPDATE `t_user_3` SET `user_id`=?,`a`=? WHERE `id` = ?", []any{8, 1, 2}, "ds.t_user_0"},
		{"UPDATE t_user_3 SET user_id = 8", nil, "ds.t_user_0"},
		{"UPDATE t_user_3 SET user_id = 7", nil, ""},
		{"UPDATE t_user_3 SET a = 8 WHERE user_id = 8", nil, ""},
		{"UPDATE app.T_USER_3 u SET u.user_id = ? WHERE u.id = 1", []any{8}, "ds.t_user_0"},
		{"UPDATE t_user_3 SET user_id = user_id", nil, ""},
		{"UPDATE t_user_3 SET user_id = user_id + 4", nil, expression},
		{"UPDATE t_user_3 SET user_id = NULL", nil, "nowhere"},
		{"UPDATE t_user_3 SET user_id = ?", []any{nil}, "nowhere"},
		{"UPDATE t_user_3 SET user_id = ?", []any{"7"}, ""},
		{"UPDATE t_user_3 SET user_id = ?", []any{[]byte("8")}, ""}, // only the server knows
		{"UPDATE t_user_3 SET user_id = 0x08", nil, ""},
		{"UPDATE t_user_3 SET user_id = ?", []any{uint64(8)}, "ds.t_user_0"},
		{"UPDATE t_user_3 SET user_id = ?", []any{sql.NullInt64{Int64: 8, Valid: true}}, "ds.t_user_0"},
		{"UPDATE t_order_3 SET order_id = order_id, user_id = ?", []any{9}, ""}, // user_id decides on the data source alone
		{"UPDATE t_order_3 SET order_id = LAST_INSERT_ID(order_id)", nil, ""},
		{"UPDATE t_order_3 SET order_id = ?", []any{8}, "t_order_0"},
		{"UPDATE t_order_3 SET user_id = user_id + 1", nil, expression},
		{"UPDATE ds_0.t_order_3 SET order_id = 3, user_id = 2", nil, "ds_1.t_order_3"},
		{"UPDATE ds_0.t_order_3 SET order_id = 3, user_id = 1", nil, ""},
		{"UPDATE t_both_0_1 SET id = ?", []any{1}, ""}, // user_id has a say
		{"UPDATE t_both_0_1 SET id = ?, user_id = ?", []any{4, 3}, ""},
		{"UPDATE t_both_0_1 SET id = ?, user_id = ?", []any{4, 4}, "ds.t_both_0_0"},
		{"UPDATE t_log_202602 SET made = ?", []any{feb}, ""},
		{"UPDATE t_log_202601 SET made = ?", []any{feb}, "ds.t_log_202602"},
		{"UPDATE t_log_202601 SET made = NOW()", nil, expression},
		// The logical table: where the row is, is not known.
		{"UPDATE t_user SET user_id = ? WHERE id = ?", []any{8, 1}, ""},
		{"UPDATE t_user SET user_id = user_id + 1", nil, expression},
		// Tables that the rule does not have, does not understand, or does not shard.
		{"UPDATE x SET user_id = 8", nil, ""},
		{"UPDATE t_user_9 SET user_id = 8", nil, ""},
		{"UPDATE t_class_0 SET user_id = user_id + 1", nil, ""},
		// Several tables and statements.
		{"UPDATE x JOIN t_user_3 u ON u.id = x.id SET u.user_id = x.n", nil, expression},
		{"UPDATE x JOIN t_user_3 u ON u.id = ? SET x.user_id = ?, u.user_id = ?", []any{1, 2, 8}, "ds.t_user_0"},
		{"UPDATE t_user_3, t_user_1 SET t_user_3.user_id = 7, t_user_1.user_id = 2", nil, "ds.t_user_2"},
		{"SELECT 1; UPDATE t_user_3 SET user_id = ?", []any{8}, "ds.t_user_0"},
		{"INSERT INTO x VALUES (?); UPDATE t_user_3 SET user_id = ?", []any{7, 8}, "ds.t_user_0"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?); UPDATE t_user_3 SET user_id = ?", []any{7, 8}, "ds.t_user_0"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?); UPDATE t_user_3 SET user_id = ?", []any{7, 11}, ""},
		{"WITH n AS (SELECT 1 AS id) UPDATE t_user_3 u JOIN n USING (id) SET u.user_id = 8", nil, "ds.t_user_0"},
		// Upserts.
		{"INSERT INTO t_user_3 (id, user_id) VALUES (1, 7) ON DUPLICATE KEY UPDATE user_id = VALUES(user_id)", nil, ""},
		{"INSERT INTO t_user_3 (id, user_id) VALUES (?, ?) ON DUPLICATE KEY UPDATE `user_id`=VALUES(`user_id`),`a`=VALUES(`a`)", []any{1, 7}, ""},
		{"INSERT INTO t_user_3 (id, user_id) VALUES (1, 7) ON DUPLICATE KEY UPDATE user_id = ?", []any{8}, "ds.t_user_0"},
		{"INSERT INTO t_user_3 (id, user_id) VALUES (1, 7) ON DUPLICATE KEY UPDATE user_id = ?", []any{11}, ""},
		{"INSERT INTO t_user_3 (id, user_id) VALUES (1, 7) ON DUPLICATE KEY UPDATE user_id = user_id + 1", nil, expression},
		{"INSERT INTO t_user_3 SET id = 1, user_id = 7 ON DUPLICATE KEY UPDATE user_id = 8", nil, "ds.t_user_0"},
		{"INSERT INTO t_order_3 (order_id) VALUES (7) ON DUPLICATE KEY UPDATE order_id = LAST_INSERT_ID(order_id)", nil, ""},
	} {
		db, base := openShards(t, shardedRule(t, ""))
		if strings.Contains(tt.query, "t_user") {
			base.columns = [][2]string{{"id", "bigint(20)"}, {"user_id", "bigint(20)"}}
		}
		ways := map[string]func() error{
			"Exec":  func() error { _, err := db.Exec(tt.query, tt.args...); return err },
			"again": func() error { _, err := db.Exec(tt.query, tt.args...); return err },
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
			if have := wrongUpdate(do()); have != tt.want {
				t.Errorf("%s: %s %v\nhave: %s\nwant: %s", name, tt.query, tt.args, have, tt.want)
			}
		}
		sent := 0
		for _, call := range base.calls {
			if strings.Contains(call, "UPDATE") && !strings.HasPrefix(call, "prepare") {
				sent++
			}
		}
		if (sent > 0) != (tt.want == "") {
			t.Errorf("%s\nhave: %q\nwant: nothing sent where it is refused", tt.query, base.calls)
		}
	}
}

func TestUpdateGuard_error(t *testing.T) {
	db, _ := openShards(t, shardedRule(t, ""))
	for query, want := range map[string]string{
		"UPDATE app.t_user_3 SET user_id = 8":         "a row of the UPDATE with user_id = 8 belongs into ds.t_user_0, and the UPDATE names app.t_user_3; delete the row",
		"UPDATE t_user_3 SET user_id = user_id + ?":   "a row of the UPDATE with user_id changed in t_user_3: it is an expression, and the row stays where it is; delete the row",
		"UPDATE t_log_202601 SET made = '1999-01-01'": "with made = \"1999-01-01\" is not one of t_log_202601: a row of table \"t_log\" belongs nowhere",
	} {
		args := make([]any, strings.Count(query, "?"))
		if _, err := db.Exec(query, args...); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "shardGuard") {
			t.Errorf("%s\nhave: %v\nwant: %s", query, err, want)
		}
	}
}

func TestUpdateGuard_warnAndOff(t *testing.T) {
	for _, tt := range []struct {
		settings string
		warnings int
	}{{", shardGuard: warn", 2}, {", shardGuard: off", 0}} {
		var log strings.Builder
		db, base := openShards(t, shardedRule(t, tt.settings), WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		for range 2 {
			for _, query := range []string{"UPDATE t_user_3 SET user_id = 8", "UPDATE t_user_3 SET user_id = user_id + 1"} {
				if _, err := db.Exec(query); err != nil {
					t.Error(err)
				}
			}
		}
		if n := strings.Count(log.String(), "does not belong"); n != tt.warnings || len(base.calls) < 4 {
			t.Errorf("%s\nhave: %d warnings: %s %q\nwant: %d", tt.settings, n, log.String(), base.calls, tt.warnings)
		}
	}
}

// A prepared statement, and a text that passed, are held against a rule that comes
// later.
func TestUpdateGuard_newRule(t *testing.T) {
	db, _ := openShards(t, shardedRule(t, ", shardGuard: off"))
	const query = "UPDATE t_user_3 SET user_id = 8"
	stmt, err := db.Prepare(query)
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	run := func(want string) {
		t.Helper()
		_, err := stmt.Exec()
		_, err2 := db.Exec(query)
		if wrongUpdate(err) != want || wrongUpdate(err2) != want {
			t.Errorf("have: %v, %v\nwant: %q", err, err2, want)
		}
	}
	run("")
	if err := ConnectorOf(db).SetRule(shardedRule(t, "")); err != nil {
		t.Fatal(err)
	}
	run("ds.t_user_0")
	if err := ConnectorOf(db).SetRule(shardedRule(t, ", shardGuard: off")); err != nil {
		t.Fatal(err)
	}
	run("")
}

// Random UPDATEs of random tables are refused just when their value belongs
// elsewhere.
func TestUpdateGuard_random(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 5))
	db, _ := openShards(t, shardedRule(t, ""))
	heads := []string{"UPDATE %s SET", "update `%s` set", "UPDATE app.%s AS x SET", "/* c */ UPDATE IGNORE %s SET", "UPDATE y, %s SET"}
	for range 4000 {
		user, table := r.Int64N(1<<40)-1<<39, r.IntN(4)
		sets, args := []string{"a = ?", "b = 'user_id = 3'"}, []any{1}
		value := fmt.Sprint(user)
		if r.IntN(2) == 0 {
			value, args = "?", []any{1, user}
		}
		sets = append(sets[:1+r.IntN(2)], "user_id = "+value)
		if r.IntN(2) == 0 && value != "?" {
			sets[0], sets[len(sets)-1] = sets[len(sets)-1], sets[0]
		}
		query := fmt.Sprintf(heads[r.IntN(len(heads))], fmt.Sprint("t_user_", table)) + " " + strings.Join(sets, ", ") + " WHERE id = 1"
		hash := int64(int32(uint64(user) ^ uint64(user)>>32))
		want := ""
		if meant := max(hash, -hash) % 4; meant != int64(table) {
			want = fmt.Sprint("ds.t_user_", meant)
		}
		if _, err := db.Exec(query, args...); wrongUpdate(err) != want {
			t.Fatalf("%s %v\nhave: %v\nwant: %q", query, args, err, want)
		}
	}
}

// A rule without sharding leaves UPDATEs alone.
func TestUpdateGuard_ruleWithoutSharding(t *testing.T) {
	db, base := openShards(t, mustParseRule(t, "rules:\n- !SHARDING\n  tables:\n    t_user: {keyGenerateStrategy: {column: id, keyGeneratorName: k}}\n  keyGenerators: {k: {type: SHARD_COUNTER}}\n"))
	for range 2 {
		if _, err := db.Exec("UPDATE t_user SET id = id + 1"); err != nil {
			t.Error(err)
		}
	}
	if len(base.calls) != 3 {
		t.Errorf("have: %q\nwant: connect and two UPDATEs", base.calls)
	}
}

func mustParseRule(t *testing.T, text string) *rule.Rule {
	t.Helper()
	r, err := rule.Parse(t.Name(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
