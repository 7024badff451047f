package store

import (
	"database/sql"
	"testing"
)

func TestExec(t *testing.T) {
	var db *sql.DB
	db.Exec("INSERT INTO t_order (user_id) VALEUS (1)")
}
