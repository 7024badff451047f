// Package native uses cgo. Its C doesn't compile.
package native

/*
#error lint runs no C compiler
*/
import "C"

import "database/sql"

func store(db *sql.DB) { db.Exec("INSERT INTO t_order (user_id) VALUES (?)", C.number()) }
