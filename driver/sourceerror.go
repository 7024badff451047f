package driver

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/rewrite"
)

// PrivilegeError is the error for an INSERT … SELECT into a ruled table whose
// user may not do what filling it takes: create a temporary table like the
// target. Nothing was inserted. [ErrUnsupportedStatement] and the server's
// *mysql.MySQLError are in its chain.
type PrivilegeError struct {
	Table string // the target, quoted
	Grant string // what gives the privileges, but for the user
	Err   error  // the server's error
}

func (e *PrivilegeError) Error() string {
	return fmt.Sprintf("%v: INSERT … SELECT into %s is filled by way of a temporary table; %s: %v", ErrUnsupportedStatement, e.Table, e.Grant, e.Err)
}

func (e *PrivilegeError) Unwrap() []error { return []error{ErrUnsupportedStatement, e.Err} }

// explain makes of the server's error about a temporary table one about the
// statement.
func (r *sourceRun) explain(err error) error {
	const (
		databaseDenied = 1044
		unknownColumn  = 1054
		unknownTable   = 1109
		tableDenied    = 1142
		columnDenied   = 1143
	)
	var my *mysql.MySQLError
	if !errors.As(err, &my) {
		return err
	}
	switch {
	case my.Number == databaseDenied,
		(my.Number == tableDenied || my.Number == columnDenied) && len(r.tables) == 0:
		return r.privilegeError(err)
	case r.in.OnDuplicate && len(r.tables) > 0 && (my.Number == unknownColumn || my.Number == unknownTable):
		// Before the query's own tables were in the statement, now they are not.
		return fmt.Errorf("%w: ON DUPLICATE KEY UPDATE of a filled INSERT … SELECT can use VALUES(column) and the target's columns, not the query's: %w",
			ErrUnsupportedStatement, err)
	}
	return r.fill.failed(r.rename(err, my))
}

func (r *sourceRun) privilegeError(err error) error {
	schema, table := "the current database", rewrite.QuoteTable(r.in.Schema, r.in.Name)
	if r.in.Schema != "" {
		schema = rewrite.QuoteIdentifier(r.in.Schema)
	}
	return &PrivilegeError{Table: table, Err: err,
		Grant: "GRANT CREATE TEMPORARY TABLES ON " + schema + ".* and SELECT ON " + table + " to the user"}
}

// rename puts the target's name where a message of the server names the
// temporary table: which column and row are wrong is the same.
func (r *sourceRun) rename(err error, my *mysql.MySQLError) error {
	if err != error(my) || !strings.Contains(my.Message, rowsTable) {
		return err
	}
	renamed := *my
	renamed.Message = strings.ReplaceAll(my.Message, rowsTable, rewrite.QuoteIdentifier(r.in.Name))
	return &renamed
}
