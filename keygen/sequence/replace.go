package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
)

// replace claims n numbers with REPLACE statements.
func (t *ticketTable) replace(ctx context.Context, conn *sql.Conn, n int64) (run, error) {
	switch {
	case n > 1 && t.noLock:
		return t.replaceRows(ctx, conn, n)
	case n > 1:
		return t.replaceBlock(ctx, conn, n)
	}
	first, err := insertID(conn.ExecContext(ctx, "REPLACE INTO "+t.table+" (stub) VALUES ('a')"))
	return run{first, 1, t.increment}, err
}

func insertID(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// replaceBlock claims n numbers, n > 1, while the table is locked. It takes the first number. Then
// it sets the row to the last number but one, which advances AUTO_INCREMENT, and takes the last
// number. The three statements are one transaction, which is committed before the table is
// unlocked. All statements are sent in one packet, so a process that is stopped in between leaves
// no lock. After an error the connection is closed, which rolls back and unlocks.
func (t *ticketTable) replaceBlock(ctx context.Context, conn *sql.Conn, n int64) (run, error) {
	_, err := conn.ExecContext(ctx, strings.NewReplacer(
		"{table}", t.table, "{id}", t.column, "{jump}", fmt.Sprint((n-2)*t.increment),
	).Replace("LOCK TABLES {table} WRITE; SET autocommit = 0; "+
		"REPLACE INTO {table} (stub) VALUES ('a'); SET @shardkey_first = LAST_INSERT_ID(); "+
		"REPLACE INTO {table} ({id}, stub) VALUES (@shardkey_first + {jump}, 'a'); "+
		"REPLACE INTO {table} (stub) VALUES ('a'); COMMIT; UNLOCK TABLES; SET autocommit = 1"))
	if lockRefused(err) {
		t.noLock = true
		return t.replaceRows(ctx, conn, n)
	}
	if err != nil {
		return run{}, err
	}
	var first, last uint64
	if err := conn.QueryRowContext(ctx, "SELECT @shardkey_first, LAST_INSERT_ID()").Scan(&first, &last); err != nil {
		return run{}, err
	}
	if last != first+uint64((n-1)*t.increment) {
		return run{}, t.storeError(nil, "AUTO_INCREMENT didn't continue after an explicit id: expected the next number after %d, found %d; "+
			"set batch to 1, and insert one row per statement", first, last)
	}
	return run{int64(first), n, t.increment}, nil
}

// lockRefused reports whether the user isn't permitted to lock tables. LOCK TABLES is the first
// statement of the block, so nothing has been changed then.
func lockRefused(err error) bool {
	switch mysqldb.Number(err) {
	case mysqldb.ErrDBAccessDenied, mysqldb.ErrTableDenied, mysqldb.ErrNotSupported:
		return true
	}
	return false
}

// maxRows limits the rows of a REPLACE, because its time grows with their square.
const maxRows = 1000

// errScattered is the error if the numbers of one statement may not be consecutive.
var errScattered = errors.New("the ids of one REPLACE are not consecutive; GRANT LOCK TABLES")

// replaceRows claims n numbers with one REPLACE of n rows, each of which replaces the previous one.
// MySQL's manual guarantees consecutive ids, and the id of the remaining row proves it. The
// transaction locks that row. Without transactions (MyISAM), another process's REPLACE may come
// before the check, which then fails although the numbers are correct.
func (t *ticketTable) replaceRows(ctx context.Context, conn *sql.Conn, n int64) (run, error) {
	if n > maxRows {
		return run{}, t.storeError(nil, "%d numbers in one call need LOCK TABLES, which the server refused; "+
			"GRANT LOCK TABLES, or request at most %d", n, maxRows)
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return run{}, err
	}
	defer tx.Rollback()
	rows := strings.Repeat("('a'),", int(n))
	first, err := insertID(tx.ExecContext(ctx, "REPLACE INTO "+t.table+" (stub) VALUES "+rows[:len(rows)-1]))
	if err != nil {
		return run{}, err
	}
	var last uint64
	if err := tx.QueryRowContext(ctx, "SELECT "+t.column+" FROM "+t.table+" WHERE stub = 'a'").Scan(&last); err != nil {
		return run{}, err
	}
	if err := tx.Commit(); err != nil {
		return run{}, err
	}
	if last != uint64(first)+uint64((n-1)*t.increment) {
		return run{}, errScattered
	}
	return run{first, n, t.increment}, nil
}
