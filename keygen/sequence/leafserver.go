package sequence

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
)

// If an asynchronous replica becomes the primary, it may lack the last claims that the old server
// acknowledged. An additional row of leaf_alloc therefore has the name of the server in its
// description. On the first connection to another server, max_id is raised by a gap, so that the
// numbers of lost claims aren't handed out again.

const (
	selectServer = "SELECT description FROM leaf_alloc WHERE biz_tag = ?"
	insertServer = "INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES (?, 1, 1, ?)"
	updateServer = "UPDATE leaf_alloc SET description = ? WHERE biz_tag = ? AND description = ?"
	raiseMax     = "UPDATE leaf_alloc SET max_id = max_id + ? WHERE biz_tag = ?"
)

// noteKey returns the biz_tag of the row with the server's name for a key. Keys contain no slash.
func noteKey(key string) string {
	const prefix = "shardkey/server/"
	if len([]rune(prefix+key)) > maxBizTag {
		sum := sha256.Sum256([]byte(key))
		return prefix + hex.EncodeToString(sum[:])
	}
	return prefix + key
}

// compareServer compares the server of a new connection with the recorded server.
func (l *leafRow) compareServer(ctx context.Context, conn *sql.Conn) error {
	if l.gap == 0 {
		return nil
	}
	l.warning.Store("")
	err := l.compareNote(ctx, conn)
	switch mysqldb.Number(err) {
	case mysqldb.ErrTableDenied, mysqldb.ErrColumnDenied, mysqldb.ErrUnknownColumn:
		l.warning.Store(fmt.Sprintf("cannot record the server of leaf_alloc, so a failover to a replica without "+
			"the last claims would not be noticed: %v; GRANT SELECT, INSERT, UPDATE ON leaf_alloc", err))
		return nil
	}
	return err
}

func (l *leafRow) compareNote(ctx context.Context, conn *sql.Conn) error {
	server, err := mysqldb.ServerID(ctx, conn)
	if err != nil || server == "" {
		return err
	}
	noted, err := l.notedServer(ctx, conn)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = conn.ExecContext(ctx, insertServer, noteKey(l.key), server)
		if mysqldb.Number(err) != mysqldb.ErrDuplicateKey {
			return err
		}
		noted, err = l.notedServer(ctx, conn)
	}
	if err != nil || noted == server {
		return err
	}
	return l.leaveGap(ctx, conn, noted, server)
}

func (l *leafRow) notedServer(ctx context.Context, conn *sql.Conn) (string, error) {
	var noted sql.NullString
	err := conn.QueryRowContext(ctx, selectServer, noteKey(l.key)).Scan(&noted)
	return noted.String, err
}

// leaveGap raises max_id and records the server in one transaction. If several processes try, one
// of them succeeds.
func (l *leafRow) leaveGap(ctx context.Context, conn *sql.Conn, noted, server string) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	res, err := tx.ExecContext(ctx, updateServer, server, noteKey(l.key), noted)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return err // another process was faster
	}
	if _, err := tx.ExecContext(ctx, raiseMax, l.gap, l.key); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	l.warning.Store(fmt.Sprintf("leaf_alloc has moved to another server, and max_id was raised by %d. "+
		"No number repeats if this server lacks fewer claimed numbers than that "+
		"and no process uses the old server any more", l.gap))
	l.logger.Warn("shardkey: leaf_alloc failed over, numbers continue after a gap",
		"key", l.key, "store", l.name, "gap", l.gap)
	return nil
}
