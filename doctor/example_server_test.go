package doctor_test

import (
	"database/sql"
	sqldriver "database/sql/driver"
	"strings"

	"github.com/shardkey/shardkey/internal/test/fakedb"
)

// exampleServer is a server whose user has no privileges.
func exampleServer() *sql.DB {
	return sql.OpenDB(&fakedb.Server{Query: func(query string) (sqldriver.Rows, error) {
		switch {
		case strings.HasPrefix(query, "SHOW VARIABLES"):
			return fakedb.Row("sql_mode", "STRICT_TRANS_TABLES"), nil
		case query == "SELECT CURRENT_USER()":
			return fakedb.Row("app@%"), nil
		}
		return nil, sqldriver.ErrSkip
	}})
}
