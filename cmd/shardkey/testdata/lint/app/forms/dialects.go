package forms

import (
	"database/sql"
	"fmt"
)

type dialect struct{ sqlite bool }

func (d dialect) now() string {
	if d.sqlite {
		return "strftime('%Y', 'now')"
	}
	return "NOW()"
}

func (d dialect) upsert(columns ...string) string {
	if d.sqlite {
		return "ON CONFLICT (user_id) DO UPDATE SET"
	}
	return "ON DUPLICATE KEY UPDATE"
}

func (d dialect) verb() string {
	switch {
	case d.sqlite:
		return "INSERT OR IGNORE INTO"
	default:
		return "INSERT IGNORE INTO"
	}
}

var unknown func() string

// key returns a part that is unknown in one dialect.
func (d dialect) key(column string) string {
	if d.sqlite {
		return unknown()
	}
	return "order_id"
}

const (
	intoColumns = "INSERT INTO t_order (user_id) "
	sent        = intoColumns + "VALUES (?)"
	ignored     = intoColumns + "VALUES (?)" // unknown
)

func dialects(db *sql.DB, d dialect, store interface{ Run(string, ...any) }, session interface{ Exec(...any) }) {
	db.Exec("INSERT INTO t_order (user_id, made) VALUES (?, " + d.now() + ")")            // filled
	db.Exec("INSERT INTO t_order (user_id) VALUES (?) " + d.upsert("x") + " user_id = 1") // foreign filled
	db.Exec(fmt.Sprintf("%s t_order (user_id, made) VALUES (?, %s)", d.verb(), d.now()))  // foreign filled
	db.Exec("INSERT INTO t_order (user_id, " + d.key("x") + ") VALUES (?, ?)")            // unknown
	db.Exec("INSERT OR REPLACE INTO t_order (user_id) VALUES (?)")                        // foreign
	db.Exec("INSERT OR IGNORE INTO t_order (user_id) VALUES (?)")                         // foreign
	db.Exec("INSERT INTO t_order (user_id) VALUES ($1)")                                  // foreign
	db.Exec("INSERT INTO t_order (user_id) VALUES (?::bigint)")                           // foreign
	db.Exec("INSERT INTO t_order DEFAULT VALUES")                                         // foreign
	db.Exec("INSERT INTO t_order (user_id, a) VALUES (?, 'ON CONFLICT $1::x')")           // filled
	db.Exec("INSERT INTO t_order (user_id) VALUES (?) IF NOT EXISTS")                     // foreign
	db.Exec("INSERT INTO t_order (user_id) VALUES (?) USING TTL ?")                       // foreign
	now := "NOW()"
	if d.sqlite {
		now = "datetime()"
	}
	db.Exec("INSERT INTO t_order (user_id, made) VALUES (?, " + now + ")") // filled
	db.Exec(sent)                                                          // filled
	store.Run(ignored, 1)
	store.Run("INSERT INTO t_order (user_id) VALUES (?)", 1)           // unknown
	store.Run("INSERT INTO t_order (order_id, user_id) VALUES (1, ?)") // unknown
	store.Run("INSERT INTO t_order (user_id) failed", 1)               // unknown
	store.Run("INSERT INTO u_order (user_id) VALUES (?)", 1)
	session.Exec("INSERT INTO t_order (user_id) VALUES (?)", 1) // filled
	session.Exec(1, 2)
}
