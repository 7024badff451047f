package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"regexp"
	"sync/atomic"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// counter makes the keys 1001, 1002, …
type counter struct{ made atomic.Int64 }

func (c *counter) GenerateKeys(_ context.Context, _ spi.Column, n int) ([]any, error) {
	keys := make([]any, n)
	for i := range keys {
		keys[i] = 1000 + c.made.Add(1)
	}
	return keys, nil
}

func init() {
	spi.RegisterKeyGenerator("COUNTER", func(spi.Props) (spi.KeyGenerator, error) { return new(counter), nil })
}

const orderRule = `
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds_0.t_order_${0..1}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: counter}
  keyGenerators:
    counter: {type: COUNTER}
`

// mocked opens sqlmock's driver through ours. The server is said to be one that
// need not be asked what it is.
func mocked(t *testing.T) (*sql.DB, sqlmock.Sqlmock) {
	t.Helper()
	direct, mock, err := sqlmock.NewWithDSN(t.Name())
	if err != nil {
		t.Fatal(err)
	}
	r := must(rule.Parse("order.yaml", []byte(orderRule)))(t)
	wrapped := Wrap(direct.Driver(), r, Config{Server: "other"})
	connector := must(wrapped.(driver.DriverContext).OpenConnector(t.Name()))(t)
	db := sql.OpenDB(connector)
	t.Cleanup(func() {
		mock.ExpectClose()
		check(t, errors.Join(db.Close(), mock.ExpectationsWereMet()))
		_ = direct.Close()
	})
	return db, mock
}

var errMock = errors.New("the mock's own error")

func TestMocked_insert(t *testing.T) {
	db, mock := mocked(t)
	mock.ExpectExec(regexp.QuoteMeta("INSERT INTO t_order_1 (user_id, `order_id`) VALUES (?, ?), (?, ?)")).
		WithArgs(7, 1001, 8, 1002).WillReturnResult(sqlmock.NewResult(0, 2))
	var keys Keys
	res := must(db.ExecContext(WithKeys(t.Context(), &keys), "INSERT INTO t_order_1 (user_id) VALUES (?), (?)", 7, 8))(t)
	if id, err := res.LastInsertId(); id != 1001 || err != nil {
		t.Errorf("LastInsertId\nhave: %d, %v\nwant: 1001", id, err)
	}
	if v := keys.Values(); len(v) != 2 || v[0] != int64(1001) || v[1] != int64(1002) {
		t.Errorf("keys\nhave: %v\nwant: [1001 1002]", v)
	}
}

func TestMocked_prepared(t *testing.T) {
	db, mock := mocked(t)
	prepared := mock.ExpectPrepare(regexp.QuoteMeta("INSERT INTO t_order_0 (user_id, `order_id`) VALUES (?, ?)")).WillBeClosed()
	st := must(db.Prepare("INSERT INTO t_order_0 (user_id) VALUES (?)"))(t)
	for i := range 3 {
		prepared.ExpectExec().WithArgs(i, 1001+i).WillReturnResult(sqlmock.NewResult(0, 1))
		must(st.Exec(i))(t)
	}
	check(t, st.Close())
}

func TestMocked_passThrough(t *testing.T) {
	db, mock := mocked(t)
	mock.ExpectBegin()
	mock.ExpectQuery("SELECT a FROM t").WithArgs(1).WillReturnRows(sqlmock.NewRows([]string{"a"}).AddRow(5))
	mock.ExpectExec("INSERT INTO unruled").WithArgs("x").WillReturnResult(sqlmock.NewResult(77, 1))
	mock.ExpectExec("UPDATE t").WillReturnError(errMock)
	mock.ExpectRollback()
	tx := must(db.Begin())(t)
	var a int
	if err := tx.QueryRow("SELECT a FROM t WHERE b = ?", 1).Scan(&a); err != nil || a != 5 {
		t.Errorf("a = %d, %v", a, err)
	}
	res := must(tx.Exec("INSERT INTO unruled (a) VALUES (?)", "x"))(t)
	if id, err := res.LastInsertId(); id != 77 || err != nil {
		t.Errorf("the base's insert id\nhave: %d, %v\nwant: 77", id, err)
	}
	if _, err := tx.Exec("UPDATE t SET a = 1"); err != errMock {
		t.Errorf("have: %v\nwant: the base's error itself", err)
	}
	check(t, tx.Rollback())
}

func TestMocked_failure(t *testing.T) {
	db, mock := mocked(t)
	mock.ExpectExec("INSERT INTO t_order_0").WillReturnError(errMock)
	if _, err := db.Exec("INSERT INTO t_order_0 (user_id) VALUES (?)", 1); err != errMock {
		t.Errorf("have: %v\nwant: the base's error itself", err)
	}
}
