package copyrows

import (
	"context"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/session"
)

const savepoint = "shardkey_rows"

// begins are statements that begin a transaction, and fail inside one. (START TRANSACTION would end
// the caller's transaction and LOCK TABLES.)
//
// They set the next transaction's isolation level to the session's. That is the same level, since
// the caller refuses a pending SET TRANSACTION.
var begins = map[string]string{
	session.ServerMySQL:   "SET autocommit = 0, @@transaction_isolation = @@session.transaction_isolation",
	session.ServerMariaDB: "SET autocommit = 0, @@tx_isolation = (SELECT @@session.tx_isolation " + ofATable + ")",
}

// ofATable makes MariaDB, and MySQL before 5.7, clear the warnings of earlier statements. They do so
// only for a statement that names a table (mysql_execute_command in sql/sql_parse.cc).
const ofATable = "FROM (SELECT 1) AS shardkey_rows"

// transaction is the transaction of the rows, or a savepoint in the caller's. A nil transaction is
// ended.
type transaction struct {
	s *Statement
	// onCommit and onRollback are the statements that end the transaction, or return to the
	// savepoint.
	onCommit, onRollback []string
}

// begin sets a savepoint if there is a transaction, and begins a transaction otherwise. A
// transaction shows by the savepoint, which exists afterwards. With RETURNING, it does nothing,
// since one INSERT returns all rows.
func (s *Statement) begin(ctx context.Context, t *session.Transport) (*transaction, error) {
	if s.Insert.Returning {
		return nil, nil
	}
	server, err := s.Session.Server(ctx)
	if err != nil {
		return nil, err
	}
	begin := begins[server.Kind]
	if server.IsBeforeMySQL8() {
		begin = begins[session.ServerMariaDB]
	}
	if begin != "" && t.Autocommit {
		if err = s.send(ctx, begin); err == nil {
			return &transaction{s, []string{"SET autocommit = 1"}, []string{"ROLLBACK", "SET autocommit = 1"}}, nil
		}
	}
	isInside := base.IsServerError(err, inTransaction)
	if err != nil && !base.IsServerError(err, inTransaction, inXA, unknownVariable) {
		// The answer may be damaged, and autocommit off, which a savepoint would take for the caller's
		// transaction.
		s.Session.Base.Retire()
		return nil, err
	}
	if err = s.send(ctx, "SAVEPOINT "+savepoint); err == nil && !isInside {
		err = s.send(ctx, "ROLLBACK TO SAVEPOINT "+savepoint)
	}
	switch {
	case err == nil:
		return &transaction{s, nil, []string{"ROLLBACK TO SAVEPOINT " + savepoint}}, nil
	case session.IsFatal(ctx, err):
		return nil, err
	case base.IsServerError(err, noSavepoint):
		tx := &transaction{s, []string{"COMMIT", "SET autocommit = 1"}, []string{"ROLLBACK", "SET autocommit = 1"}}
		return tx, s.send(ctx, "SET autocommit = 0")
	}
	return nil, &Refusal{"cannot set a savepoint to detect a transaction", err}
}

func (tx *transaction) commit(ctx context.Context) error {
	if tx == nil {
		return nil
	}
	for _, query := range tx.onCommit {
		if err := tx.s.send(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

// undo removes the inserted rows, even if the statement's context has ended. If the server has
// ended the transaction, for example after a deadlock, the savepoint doesn't exist.
func (tx *transaction) undo() {
	if tx == nil {
		return
	}
	for _, query := range tx.onRollback {
		if err := tx.s.send(context.Background(), query); err != nil && !base.IsServerError(err, noSavepoint) {
			tx.s.Session.Base.Retire()
		}
	}
}
