package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// A session of Vitess that refuses everything until a ROLLBACK is not met by the next
// user of the pool.
func TestRuined_connectionLeavesThePool(t *testing.T) {
	refusals := map[string]error{
		"VT15001": &mysql.MySQLError{Number: 2002, Message: "VT15001: transaction error, issue ROLLBACK and retry the transaction: target: app.-40.primary"},
		"VT09032": &mysql.MySQLError{Number: 1105, Message: "VT09032: previous transaction failed. Issue a ROLLBACK to resolve the failure."},
		"wrapped": errors.Join(errors.New("traced"), &mysql.MySQLError{Number: 1105, Message: "VT09032: previous transaction failed"}),
		"other":   &mysql.MySQLError{Number: 1105, Message: "target: app.-40.primary: no healthy tablet available"},
	}
	for name, refusal := range refusals {
		for _, kind := range []string{"resetter", "validator", "direct", "skipping"} {
			for door, use := range ruinDoors {
				base := &fakeBase{kind: kind}
				db := sql.OpenDB(mustConnector(t, base, taggedRule(t, "ruled", 0)))
				db.SetMaxOpenConns(1)
				mustExec(t, db, "UPDATE t SET a = 1")
				base.refusal = refusal
				err := use(db)
				if errors.Is(err, driver.ErrSkip) {
					_ = db.Close()
					continue // the base has no such method
				}
				if !errors.Is(err, refusal) {
					t.Errorf("%s, %s, %s: %v", name, kind, door, err)
				}
				base.refusal = nil
				mustExec(t, db, "UPDATE t SET a = 1")
				equal(t, base.count("connect"), map[bool]int{true: 1, false: 2}[name == "other"], name, kind, door, "connections")
				_ = db.Close()
			}
		}
	}
}

var ruinDoors = map[string]func(*sql.DB) error{
	"Exec":         func(db *sql.DB) error { _, err := db.Exec("UPDATE t SET a = 1"); return err },
	"Exec, args":   func(db *sql.DB) error { _, err := db.Exec("UPDATE t SET a = ?", 1); return err },
	"Exec, filled": func(db *sql.DB) error { _, err := db.Exec("INSERT INTO ruled (a) VALUES (?)", 1); return err },
	"Query":        func(db *sql.DB) error { return drain(db.Query("SELECT a FROM t")) },
	"Tx": func(db *sql.DB) error {
		return inTx(db, func(tx *sql.Tx) error { _, err := tx.Exec("UPDATE t SET a = 1"); return err })
	},
	"Stmt.Exec": func(db *sql.DB) error {
		return withStmt(db, func(st *sql.Stmt) error { _, err := st.Exec(1); return err })
	},
	"Stmt.Query": func(db *sql.DB) error { return withStmt(db, func(st *sql.Stmt) error { return drain(st.Query(1)) }) },
	"Raw, old Exec": func(db *sql.DB) error {
		return onRaw(db, func(c driver.Conn) error { _, err := c.(oldExecer).Exec("UPDATE t", nil); return err })
	},
	"Raw, old Query": func(db *sql.DB) error {
		return onRaw(db, func(c driver.Conn) error { _, err := c.(oldQueryer).Query("SELECT 1", nil); return err })
	},
}

func inTx(db *sql.DB, use func(*sql.Tx) error) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	return errors.Join(use(tx), tx.Rollback())
}

func withStmt(db *sql.DB, use func(*sql.Stmt) error) error {
	st, err := db.Prepare("UPDATE t SET a = ?")
	if err != nil {
		return err
	}
	defer st.Close()
	return use(st)
}

func onRaw(db *sql.DB, use func(driver.Conn) error) error {
	conn, err := db.Conn(context.Background())
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Raw(func(c any) error { return use(c.(driver.Conn)) })
}
