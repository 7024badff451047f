package server

import (
	"database/sql"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"

	_ "github.com/go-sql-driver/mysql"
)

func TestStart(t *testing.T) {
	dsn, stop, err := Start()
	must.Do(t, err)
	db := must.Get(sql.Open("mysql", dsn))(t)
	defer db.Close()
	var have string
	if err := db.QueryRow("SELECT DATABASE()").Scan(&have); err != nil || have != "app" {
		t.Errorf("the database\nhave: %s, %v\nwant: app", have, err)
	}
	must.Do(t, stop())
	must.Fail(t, db.Ping(), "the server answers after stop")
}
