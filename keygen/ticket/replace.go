package ticket

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
)

// replace gets n numbers, again and again as long as other processes'
// REPLACEs make the server choose this one as a deadlock's victim, or come in
// between.
func (s *server) replace(ctx context.Context, n int64) (block, error) {
	const attempts = 50
	for i := 1; ; i++ {
		b, err := s.replaceOnce(ctx, n)
		if i == attempts || !mysqldb.IsDeadlock(err) && !errors.Is(err, errScattered) {
			return b, err
		}
		if err := s.clock.Sleep(ctx, rand.N(time.Duration(min(i, 10))*time.Millisecond)); err != nil {
			return block{}, err
		}
	}
}

func (s *server) replaceOnce(ctx context.Context, n int64) (block, error) {
	switch {
	case n > 1 && s.noLock:
		return s.replaceRows(ctx, n)
	case n > 1:
		return s.replaceBlock(ctx, n)
	}
	first, err := insertID(s.conn.ExecContext(ctx, "REPLACE INTO "+s.table+" (stub) VALUES ('a')"))
	return block{first, 1, s.increment}, err
}

// replaceBlock gets n numbers, n > 1, while the table is locked: it takes the
// first, sets the row to the last but one, which moves AUTO_INCREMENT on, and
// takes the last. The three are one transaction, committed before the table is
// unlocked. The statements go in one packet: a process that is stopped in between
// leaves no lock. After an error the connection is closed, which takes back and
// unlocks.
func (s *server) replaceBlock(ctx context.Context, n int64) (block, error) {
	_, err := s.conn.ExecContext(ctx, strings.NewReplacer(
		"{table}", s.table, "{id}", s.column, "{jump}", fmt.Sprint((n-2)*s.increment),
	).Replace("LOCK TABLES {table} WRITE; SET autocommit = 0; "+
		"REPLACE INTO {table} (stub) VALUES ('a'); SET @shardkey_first = LAST_INSERT_ID(); "+
		"REPLACE INTO {table} ({id}, stub) VALUES (@shardkey_first + {jump}, 'a'); "+
		"REPLACE INTO {table} (stub) VALUES ('a'); COMMIT; UNLOCK TABLES; SET autocommit = 1"))
	if lockRefused(err) {
		s.noLock = true
		return s.replaceRows(ctx, n)
	}
	if err != nil {
		return block{}, err
	}
	var first, last uint64
	if err := s.conn.QueryRowContext(ctx, "SELECT @shardkey_first, LAST_INSERT_ID()").Scan(&first, &last); err != nil {
		return block{}, err
	}
	if last != first+uint64((n-1)*s.increment) {
		return block{}, storeError(s.name, fmt.Sprintf(
			"AUTO_INCREMENT of %s does not follow an id that is set: it gave %d, then %d; set batch to 1, and keep to one row a statement", s.table, first, last), nil, nil)
	}
	return block{int64(first), n, s.increment}, nil
}

// lockRefused reports whether the user may not lock tables. LOCK TABLES is the first
// of the block's statements, so that nothing has been done yet.
func lockRefused(err error) bool {
	switch mysqldb.Number(err) {
	case mysqldb.ErrDBAccessDenied, mysqldb.ErrTableDenied, mysqldb.ErrNotSupported:
		return true
	}
	return false
}

// maxRows bounds a REPLACE of many rows: its time grows with their square.
const maxRows = 1000

// errScattered says that the numbers of one statement are not known to follow
// each other.
var errScattered = errors.New("the rows of one REPLACE have other ids in between; allow LOCK TABLES")

// replaceRows gets n numbers by one REPLACE of n rows, each of which takes the
// place of the one before. MySQL's manual promises them consecutive
// ids; the id of the row that is left proves it. The transaction has that row
// locked; without transactions (MyISAM) another process's REPLACE may come
// before the proof, which then fails although the numbers are good.
func (s *server) replaceRows(ctx context.Context, n int64) (block, error) {
	if n > maxRows {
		return block{}, storeError(s.name, fmt.Sprintf("%d numbers at once need LOCK TABLES, which is refused; GRANT LOCK TABLES, or ask for at most %d", n, maxRows), nil, nil)
	}
	tx, err := s.conn.BeginTx(ctx, nil)
	if err != nil {
		return block{}, err
	}
	defer tx.Rollback()
	rows := strings.Repeat("('a'),", int(n))
	first, err := insertID(tx.ExecContext(ctx, "REPLACE INTO "+s.table+" (stub) VALUES "+rows[:len(rows)-1]))
	if err != nil {
		return block{}, err
	}
	var last uint64
	if err := tx.QueryRowContext(ctx, "SELECT "+s.column+" FROM "+s.table+" WHERE stub = 'a'").Scan(&last); err != nil {
		return block{}, err
	}
	if err := tx.Commit(); err != nil {
		return block{}, err
	}
	if last != uint64(first)+uint64((n-1)*s.increment) {
		return block{}, errScattered
	}
	return block{first, n, s.increment}, nil
}
