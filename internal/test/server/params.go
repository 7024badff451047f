package testserver

// Params are the parameters of go-sql-driver that don't concern the login, each with a value other
// than its default, and session variables that programs set.
var Params = []string{
	"allowAllFiles=true", "allowCleartextPasswords=true", "allowFallbackToPlaintext=true", "allowOldPasswords=true",
	"checkConnLiveness=false", "clientFoundRows=true", "columnsWithAlias=true", "compress=true", "interpolateParams=true",
	"multiStatements=true", "parseTime=true", "rejectReadOnly=true",
	"charset=latin1", "charset=gbk", "collation=latin1_swedish_ci", "connectionAttributes=program:test",
	"loc=America%2FNew_York", "maxAllowedPacket=200", "maxAllowedPacket=0", "timeTruncate=1h",
	"timeout=1m", "readTimeout=1m", "writeTimeout=1m",
	"autocommit=0", "sql_mode=%27ANSI_QUOTES%2CNO_BACKSLASH_ESCAPES%27", "time_zone=%27-05:00%27",
	"sql_select_limit=1", "sql_safe_updates=1", "completion_type=2", "character_set_results=utf16", "timestamp=1",
}
