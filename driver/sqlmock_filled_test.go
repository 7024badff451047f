package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"
)

// What is sent for each form, where nothing is known of the server: the keys are
// bound or written plainly. The keys are 1001, 1002, …; any statement that is
// not expected fails the test, so nothing is asked that need not be.
var sentForms = []struct {
	query string
	args  []any
	sent  string
	bound []any
	keys  []any
}{
	{"INSERT INTO t_order_0 (user_id) VALUES (7)", nil,
		"INSERT INTO t_order_0 (user_id, `order_id`) VALUES (7, 1001)", nil, []any{int64(1001)}},
	{"INSERT INTO t_order_0 (user_id) VALUES (?), (8), (?)", []any{7, 9},
		"INSERT INTO t_order_0 (user_id, `order_id`) VALUES (?, ?), (8, ?), (?, ?)", []any{7, 1001, 1002, 9, 1003}, []any{int64(1001), int64(1002), int64(1003)}},
	{"INSERT INTO t_order_1 (order_id, user_id) VALUES (NULL, ?), (DEFAULT, 8), (5, ?)", []any{7, 9},
		"INSERT INTO t_order_1 (order_id, user_id) VALUES (?, ?), (?, 8), (5, ?)", []any{1001, 7, 1002, 9}, []any{int64(1001), int64(1002), int64(5)}},
	{"INSERT INTO t_order (order_id, user_id) VALUES (?, ?), (?, ?)", []any{nil, 7, 5, 8},
		"INSERT INTO t_order (order_id, user_id) VALUES (?, ?), (?, ?)", []any{1001, 7, 5, 8}, []any{int64(1001), int64(5)}},
	{"INSERT INTO t_order SET user_id = ?", []any{7},
		"INSERT INTO t_order SET user_id = ?, `order_id` = ?", []any{7, 1001}, []any{int64(1001)}},
	{"INSERT INTO t_order SET order_id = DEFAULT, user_id = 7", nil,
		"INSERT INTO t_order SET order_id = 1001, user_id = 7", nil, []any{int64(1001)}},
	{"REPLACE t_order (user_id) VALUES (?)", []any{7},
		"REPLACE t_order (user_id, `order_id`) VALUES (?, ?)", []any{7, 1001}, []any{int64(1001)}},
	{"INSERT IGNORE INTO t_order (user_id) VALUES (?)", []any{7},
		"INSERT IGNORE INTO t_order (user_id, `order_id`) VALUES (?, ?)", []any{7, 1001}, []any{int64(1001)}},
	{"INSERT INTO t_order () VALUES (), ()", nil,
		"INSERT INTO t_order (`order_id`) VALUES (1001), (1002)", nil, []any{int64(1001), int64(1002)}},
	{"INSERT INTO `app`.`T_ORDER_1` (`user_id`) VALUE (?) -- x", []any{7},
		"INSERT INTO `app`.`T_ORDER_1` (`user_id`, `order_id`) VALUE (?, ?) -- x", []any{7, 1001}, []any{int64(1001)}},
	{"/* ? */ INSERT INTO t_order (user_id) /* ? */ VALUES (?)", []any{"it's ?"},
		"/* ? */ INSERT INTO t_order (user_id, `order_id`) /* ? */ VALUES (?, ?)", []any{"it's ?", 1001}, []any{int64(1001)}},
	{"INSERT INTO t_order (order_id) VALUES (5), (6)", nil,
		"INSERT INTO t_order (order_id) VALUES (5), (6)", nil, []any{int64(5), int64(6)}},
	{"INSERT INTO t_order (order_id) VALUES (CAST(@x AS SIGNED))", nil,
		"INSERT INTO t_order (order_id) VALUES (SUBSTRING_INDEX(TRIM(LEADING ',' FROM CONCAT_WS(',', TRIM(LEADING '0' FROM CAST((CAST(@x AS SIGNED)) AS DECIMAL(20))), 1002)), ',', 1))", nil, []any{nil}},
	{"INSERT INTO t_order (user_id, order_id) VALUES (1, 2, 3)", nil,
		"INSERT INTO t_order (user_id, order_id) VALUES (~0 + 1, 1, 2, 3)", nil, nil},
}

func TestSent_forms(t *testing.T) {
	for _, f := range sentForms {
		for _, way := range []string{"DB", "Tx", "Stmt"} {
			t.Run(way+"/"+f.query, func(t *testing.T) {
				db, mock := mocked(t)
				var keys Keys
				res := must(send(t, WithKeys(t.Context(), &keys), db, mock, way, f.query, f.args, f.sent, f.bound, int64(len(f.keys))))(t)
				if fmt.Sprint(keys.Values()) != fmt.Sprint(f.keys) {
					t.Errorf("keys\nhave: %v\nwant: %v", keys.Values(), f.keys)
				}
				if n, err := res.RowsAffected(); n != int64(len(f.keys)) || err != nil {
					t.Errorf("%d rows, %v", n, err)
				}
			})
		}
	}
}

// send expects a text with its arguments and executes a statement. A prepared
// statement always binds its keys.
func send(t *testing.T, ctx context.Context, db *sql.DB, mock sqlmock.Sqlmock, way, query string, args []any, sent string, bound []any, rows int64) (sql.Result, error) {
	t.Helper()
	values := slices.Clone(bound)
	if way == "Stmt" && bound == nil {
		for _, key := range regexp.MustCompile(`\b100\d\b`).FindAllString(sent, -1) {
			values = append(values, key)
		}
		sent = regexp.MustCompile(`\b100\d\b`).ReplaceAllString(sent, "?")
	}
	var with []sqlmockValue
	for _, v := range values {
		with = append(with, sqlmockValue{fmt.Sprint(v)})
	}
	exact := "^" + regexp.QuoteMeta(sent) + "$"
	result := sqlmock.NewResult(0, rows)
	switch way {
	case "Stmt":
		mock.ExpectPrepare(exact).WillBeClosed().ExpectExec().WithArgs(driverValues(with)...).WillReturnResult(result)
		st, err := db.PrepareContext(ctx, query)
		if err != nil {
			return nil, err
		}
		res, err := st.ExecContext(ctx, args...)
		return res, errors.Join(err, st.Close())
	case "Tx":
		mock.ExpectBegin()
		mock.ExpectExec(exact).WithArgs(driverValues(with)...).WillReturnResult(result)
		mock.ExpectCommit()
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return nil, err
		}
		res, err := tx.ExecContext(ctx, query, args...)
		return res, errors.Join(err, tx.Commit())
	}
	mock.ExpectExec(exact).WithArgs(driverValues(with)...).WillReturnResult(result)
	return db.ExecContext(ctx, query, args...)
}

// An INSERT … SELECT takes these round trips.
func TestSent_insertSelect(t *testing.T) {
	db, mock := mocked(t)
	exact := func(s string) string { return "^" + regexp.QuoteMeta(s) + "$" }
	mock.ExpectQuery("@@max_allowed_packet").WillReturnRows(sqlmock.NewRows([]string{"1", "2", "3", "4", "5", "6", "7"}).
		AddRow("utf8mb4", "utf8mb4", "utf8mb4", "18446744073709551615", 1<<20, 1, "2000-01-02"))
	mock.ExpectExec(exact("SAVEPOINT shardkey_rows")).WillReturnResult(sqlmock.NewResult(0, 0))
	mock.ExpectExec(exact("ROLLBACK TO SAVEPOINT shardkey_rows")).WillReturnError(&mysql.MySQLError{Number: 1305})
	mock.ExpectExec(exact("SET autocommit = 0")).WillReturnResult(sqlmock.NewResult(0, 0))
	read := mock.ExpectPrepare(exact("SELECT id FROM users WHERE id < ?"))
	read.ExpectQuery().WithArgs(9).WillReturnRows(sqlmock.NewRows([]string{"id"}).AddRow(1).AddRow(2).AddRow(3))
	write := mock.ExpectPrepare(exact("INSERT INTO t_order (`user_id`, `order_id`) VALUES (?,?),(?,?),(?,?)"))
	write.ExpectExec().WithArgs(1, 1001, 2, 1002, 3, 1003).WillReturnResult(sqlmock.NewResult(0, 3))
	mock.ExpectExec(exact("COMMIT")).WillReturnResult(sqlmock.NewResult(0, 0))
	mock.ExpectExec(exact("SET autocommit = 1")).WillReturnResult(sqlmock.NewResult(0, 0))
	mock.ExpectQuery(exact("SELECT LAST_INSERT_ID(1001)")).WillReturnRows(sqlmock.NewRows([]string{"id"}).AddRow(1001))
	res := must(db.Exec("INSERT INTO t_order (user_id) SELECT id FROM users WHERE id < ?", 9))(t)
	if id, err := res.LastInsertId(); id != 1001 || err != nil {
		t.Errorf("LastInsertId %d, %v", id, err)
	}
	check(t, mock.ExpectationsWereMet())
}

// Columns that cannot be read are an error, not a reason to send without key.
func TestColumns_unreadable(t *testing.T) {
	db, mock := mocked(t)
	mock.ExpectQuery("SELECT \\* FROM `t_order` LIMIT 0").WillReturnError(errMock)
	_, err := db.Exec("INSERT INTO t_order VALUES (NULL, 7)")
	if !errors.Is(err, ErrUnsupportedStatement) || !errors.Is(err, errMock) {
		t.Errorf("have: %v", err)
	}
}

// sqlmockValue matches an argument by how it prints: an int64 and a text of the
// same digits are the same here.
type sqlmockValue struct{ text string }

func (v sqlmockValue) Match(have driver.Value) bool { return fmt.Sprint(have) == v.text }

func driverValues(values []sqlmockValue) []driver.Value {
	var all []driver.Value
	for _, v := range values {
		all = append(all, v)
	}
	return all
}
