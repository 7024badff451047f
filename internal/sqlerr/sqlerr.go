// Package sqlerr has the numbers of server errors after which shardkey does something else than to
// report them:
// https://dev.mysql.com/doc/mysql-errors/en/server-error-reference.html
package sqlerr

import (
	"errors"
	"slices"

	"github.com/go-sql-driver/mysql"
)

const (
	OutOfRangeMariaDB = 167
	DatabaseDenied    = 1044
	AccessDenied      = 1045
	NoDatabase        = 1046
	ColumnNotNull     = 1048
	UnknownDatabase   = 1049
	AmbiguousColumn   = 1052
	UnknownColumn     = 1054
	DuplicateKey      = 1062
	SyntaxError       = 1064
	NotOpen           = 1109
	ColumnCount       = 1136
	TableDenied       = 1142
	ColumnDenied      = 1143
	UnknownTable      = 1146
	LockTimeout       = 1205
	Deadlock          = 1213
	NotSupported      = 1235 // also from Vitess, for a sharding column
	UnknownStatement  = 1243 // the server has dropped the prepared statement
	OutOfRangeColumn  = 1264
	DataTruncated     = 1265
	ReadOnly          = 1290
	NotInProtocol     = 1295 // of prepared statements
	DoesNotExist      = 1305
	NotUpdatable      = 1348
	WrongViewList     = 1353 // MySQL's error for a query with another number of columns
	NoDefault         = 1364
	WrongValue        = 1366
	DataTooLong       = 1406
	TooManyStatements = 1461
	NoAutoIncrement   = 1467
	NotInsertableTo   = 1471
	InTransaction     = 1568
	NeedReprepare     = 1615 // the server can't adapt a prepared statement to changed tables
	OutOfRange        = 1690
	FunctionRefused   = 3566 // MySQL Router shares connections, and refuses LAST_INSERT_ID()
	NotInCharset      = 3988 // a character of an argument isn't in the session's character set
	WrongCTEColumns   = 4002 // MariaDB's error for a query with another number of columns

	ReadOnlyTransaction = 1792
	ReadOnlyMode        = 1836
)

// Is reports whether err is an error of the server with one of these numbers.
func Is(err error, numbers ...uint16) bool {
	if err == nil {
		return false // without an allocation for errors.As
	}
	var server *mysql.MySQLError
	return errors.As(err, &server) && slices.Contains(numbers, server.Number)
}
