package driver

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"
)

type valuer struct{ v driver.Value }

func (v valuer) Value() (driver.Value, error) { return v.v, nil }

// Values of all types that stand for one that belongs to the table are sent, and
// so are those of which only the server knows what they are.
func TestShardGuard_noneTooMany(t *testing.T) {
	type id int32
	shanghai := time.FixedZone("+08", 8*3600)
	seven := int64(7)
	for _, tt := range []struct {
		query string
		args  []any
		typ   string // of the column
	}{
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{int8(7)}, "tinyint"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{uint64(7)}, "bigint"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{id(7)}, "int(11)"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{&seven}, "bigint(20) unsigned"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{float32(7)}, "bigint"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{7.25}, "bigint"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{math.Inf(1)}, "bigint"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{math.NaN()}, "bigint"},
		{"INSERT INTO t_user_1 (user_id) VALUES (?)", []any{true}, "tinyint(1)"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{"7"}, "bigint"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{json.Number("7")}, "bigint"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{" 007"}, "bigint"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{"+7\n"}, "bigint"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{"7.00"}, "bigint"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{"0.7e1"}, "int"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{"7.00"}, "decimal(20,2)"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{"7"}, "decimal(20,0)"},
		{"INSERT INTO t_user_3 (user_id) VALUES ('7')", nil, "bigint"},
		{"INSERT INTO t_user_3 (user_id) VALUES ('007')", nil, "mediumint"},
		{"INSERT INTO t_user_3 (user_id) VALUES (7.00)", nil, "bigint"},
		{"INSERT INTO t_user_3 (user_id) VALUES (0x07), (x'07'), (b'111'), (0b111)", nil, "bigint"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{[]byte("7")}, "bigint"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{sql.NullInt64{Int64: 7, Valid: true}}, "bigint"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{sql.NullString{String: "7", Valid: true}}, "bigint"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{sql.Null[int]{V: 7, Valid: true}}, "bigint"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{valuer{int64(7)}}, "bigint"},
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{valuer{"7"}}, "bigint"},
		// Times: as their own clock shows them, or as they are written.
		{"INSERT INTO t_log_202602 (made) VALUES (?)", []any{time.Date(2026, 2, 1, 4, 0, 0, 0, shanghai)}, "datetime"},
		{"INSERT INTO t_log_202601 (made) VALUES (?)", []any{time.Date(2026, 2, 1, 4, 0, 0, 0, shanghai)}, "datetime"},
		{"INSERT INTO t_log_202602 (made) VALUES (?)", []any{sql.NullTime{Time: time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC), Valid: true}}, "datetime"},
		{"INSERT INTO t_log_202602 (made) VALUES ('2026-02-03')", nil, "date"},
		{"INSERT INTO t_log_202602 (made) VALUES ('2026-2-3')", nil, "date"},
		{"INSERT INTO t_log_202602 (made) VALUES ('26/2/3 4:5:6')", nil, "datetime"},
		{"INSERT INTO t_log_202602 (made) VALUES ('20260203'), ('20260203040506'), ('2026-02-03T04:05:06.5')", nil, "datetime"},
		{"INSERT INTO t_log_202602 (made) VALUES (20260203), (20260203040506)", nil, "datetime"},
		{"INSERT INTO t_log_202602 (made) VALUES (DATE '2026-02-03'), (TIMESTAMP'2026-02-03 04:05:06')", nil, "datetime"},
		{"INSERT INTO t_log_202602 (made) VALUES ({d '2026-02-03'})", nil, "datetime"},
		{"INSERT INTO t_log_202602 (made) VALUES ('2026-01-31 23:00:00-05:00')", nil, "datetime"},
		{"INSERT INTO t_log_202602 (made) VALUES (?)", []any{"2026-02-03"}, "datetime"},
		{"INSERT INTO t_log_202602 (made) VALUES (?)", []any{[]byte("2026-02-03")}, "datetime"},
		// Names.
		{"INSERT INTO T_USER_3 (`USER_ID`) VALUES (?)", []any{7}, "bigint"},
		{"insert into `App`.`t_User_3` set User_Id = ?", []any{7}, "bigint"},
	} {
		db, base := openShards(t, shardedRule(t, ""))
		base.columns = [][2]string{{"id", "bigint"}, {"user_id", tt.typ}}
		for _, query := range []string{tt.query, tt.query} {
			if _, err := db.Exec(query, tt.args...); err != nil {
				t.Errorf("%s %v in %s\nhave: %v\nwant: sent", query, tt.args, tt.typ, err)
			}
		}
	}
}

// The server is asked once what a column of numbers is.
func TestShardGuard_asksOnce(t *testing.T) {
	db, base := openShards(t, shardedRule(t, ""))
	base.columns = [][2]string{{"user_id", "bigint"}}
	count := func() (n int) {
		for _, call := range base.calls {
			if len(call) > 5 && call[:5] == "query" {
				n++
			}
		}
		return n
	}
	for i := range 20 {
		user := fmt.Sprint(4*i + 11)
		mustExec(t, db, "INSERT INTO t_user_3 (user_id) VALUES (?)", user)
	}
	before := count()
	for i := range 20 {
		mustExec(t, db, "INSERT INTO t_user_3 (user_id) VALUES (?)", fmt.Sprint(4*i+11))
	}
	if after := count(); before == 0 || after != before {
		t.Errorf("have: %d and %d questions: %q\nwant: none in the end", before, after, base.calls)
	}
}
