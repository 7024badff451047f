package leaf

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
)

// A server that was an asynchronous replica lacks the last claims that the one before
// it confirmed. leaf_alloc has a row beside the key's that notes the server, in its
// description; on the first connection to another one max_id is raised by a gap,
// and the numbers of those claims are not given again.

// noteKey is the biz_tag of the row that notes the server for a key. No key has a
// slash.
func noteKey(key string) string {
	const prefix = "shardkey/server/"
	if len([]rune(prefix+key)) > maxKey {
		sum := sha256.Sum256([]byte(key))
		return prefix + hex.EncodeToString(sum[:])
	}
	return prefix + key
}

const (
	selectServer = "SELECT description FROM leaf_alloc WHERE biz_tag = ?"
	insertServer = "INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES (?, 1, 1, ?)"
	updateServer = "UPDATE leaf_alloc SET description = ? WHERE biz_tag = ? AND description = ?"
	raiseMax     = "UPDATE leaf_alloc SET max_id = max_id + ? WHERE biz_tag = ?"
)

// look compares the server of a new connection with the one that is noted.
func (s *sqlStore) look(ctx context.Context, db *sql.DB) error {
	if s.gap == 0 {
		return nil
	}
	s.warning.Store("")
	err := s.compare(ctx, db)
	switch mysqldb.Number(err) {
	case mysqldb.ErrNoSuchTable, mysqldb.ErrNoDatabase:
		return nil // the claim says what to do
	case mysqldb.ErrTableDenied, mysqldb.ErrColumnDenied, mysqldb.ErrUnknownColumn:
		s.warning.Store(fmt.Sprintf("which server leaf_alloc is on cannot be noted, and a failover to a replica without the last claims would not be noticed: %v; "+
			"GRANT SELECT, INSERT, UPDATE ON leaf_alloc, or set failover-gap: 0", err))
		return nil
	}
	return err
}

func (s *sqlStore) compare(ctx context.Context, db *sql.DB) error {
	server, err := mysqldb.ServerID(ctx, db)
	if err != nil || server == "" {
		return err
	}
	noted, err := s.notedServer(ctx, db)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = db.ExecContext(ctx, insertServer, noteKey(s.key), server)
		if mysqldb.Number(err) != mysqldb.ErrDuplicateKey {
			return err
		}
		noted, err = s.notedServer(ctx, db)
	}
	if err != nil || noted == server {
		return err
	}
	return s.leaveGap(ctx, db, noted, server)
}

func (s *sqlStore) notedServer(ctx context.Context, db *sql.DB) (string, error) {
	var noted sql.NullString
	err := db.QueryRowContext(ctx, selectServer, noteKey(s.key)).Scan(&noted)
	return noted.String, err
}

// leaveGap raises max_id and notes the server, together. Of several processes one
// does it.
func (s *sqlStore) leaveGap(ctx context.Context, db *sql.DB, noted, server string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	res, err := tx.ExecContext(ctx, updateServer, server, noteKey(s.key), noted)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return err // another process was faster
	}
	if _, err := tx.ExecContext(ctx, raiseMax, s.gap, s.key); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	s.warning.Store(fmt.Sprintf("leaf_alloc is on another server than before: max_id was raised by %d and so no number repeats that it may not know to be claimed, "+
		"if all processes claimed fewer than that which it lacks, and none still reaches the server before", s.gap))
	s.logger.Warn("shardkey: leaf_alloc is on another server than before; numbers go on after a gap, for claims that it may not know of",
		"key", s.key, "store", s.addr, "gap", s.gap)
	return nil
}
