// Package sqlerr has the numbers of server errors after which shardkey does something else than to
// report them:
// https://dev.mysql.com/doc/mysql-errors/en/server-error-reference.html
package sqlerr

const (
	OutOfRangeMariaDB = 167
	DatabaseDenied    = 1044
	AccessDenied      = 1045
	NoDatabase        = 1046
	UnknownDatabase   = 1049
	AmbiguousColumn   = 1052
	UnknownColumn     = 1054
	DuplicateKey      = 1062
	SyntaxError       = 1064
	NotOpen           = 1109
	TableDenied       = 1142
	ColumnDenied      = 1143
	UnknownTable      = 1146
	LockTimeout       = 1205
	Deadlock          = 1213
	NotSupported      = 1235
	UnknownStatement  = 1243
	OutOfRangeColumn  = 1264
	DataTruncated     = 1265
	ReadOnly          = 1290
	DoesNotExist      = 1305
	WrongValue        = 1366
	DataTooLong       = 1406
	NoAutoIncrement   = 1467
	OutOfRange        = 1690

	ReadOnlyTransaction = 1792
	ReadOnlyMode        = 1836
)
