package main

import (
	"database/sql"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/rule"
)

const testRule = `
rules:
- !SHARDING
  tables:
    t_order: {keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 1}} # one process, no store
`

func TestInsert(t *testing.T) {
	server, mock, err := sqlmock.NewWithDSN("shop")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	r, err := rule.Parse("test", []byte(testRule))
	if err != nil {
		t.Fatal(err)
	}
	sql.Register("mocked", driver.Wrap(server.Driver(), r))
	db, err := sql.Open("mocked", "shop")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	mock.ExpectExec("INSERT INTO t_order").WithArgs(7, 100, sqlmock.AnyArg()).WillReturnResult(sqlmock.NewResult(0, 1))
	id, err := shards{db}.insert(t.Context(), 7, 100)
	if err != nil || id == 0 {
		t.Errorf("have: %d, %v\nwant: a key", id, err)
	}
	if err := mock.ExpectationsWereMet(); err != nil {
		t.Error(err)
	}
}
