package server

import (
	"database/sql"
	"testing"

	_ "github.com/go-sql-driver/mysql"
)

func TestStart(t *testing.T) {
	dsn, stop, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var have string
	if err := db.QueryRow("SELECT DATABASE()").Scan(&have); err != nil || have != "app" {
		t.Errorf("the database\nhave: %s, %v\nwant: app", have, err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if err := db.Ping(); err == nil {
		t.Error("the server answers after stop")
	}
}
