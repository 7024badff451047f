// Package copyrows executes an INSERT … SELECT into a sharded table.
//
// The number of rows is known only after the query has run, so keys can't be added to the
// statement. Instead the package reads the query's rows, has a key generated for each row that needs
// one, and inserts the rows as values. Values are read and written in the binary protocol.
//
// The rows that the query reads must stay unchanged until the INSERT has run. So all steps run in
// one transaction, or behind a savepoint of the caller's transaction, even for a single INSERT.
package copyrows

import (
	"context"
	"database/sql/driver"
	"slices"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/rewrite"
)

// Error numbers of the server.
const (
	unknownColumn = 1054
	syntaxError   = 1064
	lockedForRead = 1099
	notLocked     = 1100 // with LOCK TABLES
	unknownTable  = 1109
	tableDenied   = 1142
	columnDenied  = 1143

	unknownVariable = 1193

	notSupported  = 1235
	noFeature     = 1295
	noSavepoint   = 1305
	inXA          = 1399
	inTransaction = 1568
	lockedTwice   = 3569 // MySQL's error for a lock of HIGH_PRIORITY or JSON_TABLE
	cannotCast    = 4078
)

// Statement is one execution of an INSERT … SELECT.
type Statement struct {
	Session *session.Session
	Text    string // of the statement
	Insert  *rewrite.Insert
	Key     *facts.Column
	Args    []driver.NamedValue
	Keys    Keys
	// Prepared: the program has prepared the statement, so its arguments are bound.
	Prepared bool
	// RowsAtOnce is the number of rows of one INSERT; 0 means 5,000.
	RowsAtOnce int
	// Done is called with the result after all rows were inserted. With RETURNING that is when the
	// caller closes the rows.
	Done func(*Result)

	lastID  uint64 // LAST_INSERT_ID() before the statement
	carried bool   // the first INSERT passes the first generated key to LAST_INSERT_ID()
}

// Keys decides which rows need a key, and generates the keys. Its methods that read rows must not
// query the server, since the rows are being read.
type Keys interface {
	// Explicit reports whether a row's key in the query requests a generated key. Otherwise it
	// returns the key as the table stores it, nil if only the server knows it.
	Explicit(ctx context.Context, row int, v driver.Value) (key any, missing bool, err error)
	// Add is called for each row that needs a key.
	Add(ctx context.Context, row []driver.Value) error
	// Generate returns the keys for the added rows.
	Generate(ctx context.Context) (rewrite.Keys, error)
	// Unknown is called if a query for the generated keys of a statement's rows failed.
	Unknown(ctx context.Context, rows int, err error)
	// AreText reports whether keys are strings.
	AreText() bool
}

// Refusal is the error for a query whose rows can't be copied.
type Refusal struct {
	Reason string
	Err    error // may be nil
}

func (e *Refusal) Error() string { return e.Reason }
func (e *Refusal) Unwrap() error { return e.Err }

// Sent describes the last INSERT that was sent.
type Sent struct {
	Query string
	Args  []driver.NamedValue
	Keys  int // the number of keys that were generated for all INSERTs
}

// Run executes the statement. If it fails, no row was inserted.
func (s *Statement) Run(ctx context.Context, want base.Want) (base.Reply, Sent, error) {
	t, err := s.transport(ctx)
	if err != nil {
		return base.Reply{}, Sent{}, err
	}
	if !s.Insert.Returning {
		want = base.WantResult
	}
	w := new(writer)
	tx, err := s.begin(ctx, t)
	if err == nil {
		w, err = s.copy(ctx, t, want)
	}
	if err == nil && want == base.WantRows {
		// The context may have ended when the caller closes the rows.
		w.reply.Rows = base.OnClose(w.reply.Rows, func(_ base.Reading, err error) {
			w.closeStmt()
			if err == nil {
				_, err = s.end(context.Background(), tx, w)
			}
			if err != nil {
				s.failed(tx)
			}
		})
		return w.reply, w.sent, nil
	}
	var result *Result
	if err == nil {
		result, err = s.end(ctx, tx, w)
	}
	if err != nil {
		s.failed(tx)
		return base.Reply{}, w.sent, err
	}
	return base.Reply{Result: result, Rows: base.NoRows{}}, w.sent, nil
}

// copy reads the rows and inserts them with their keys.
func (s *Statement) copy(ctx context.Context, t *session.Transport, want base.Want) (*writer, error) {
	rows, err := s.read(ctx, t)
	if err != nil {
		return new(writer), err
	}
	keys, err := s.generate(ctx, rows)
	if err != nil {
		return new(writer), err
	}
	return s.write(ctx, t, rows, keys, want)
}

// transport prepares LAST_INSERT_ID() for the query, and returns the encoding of rows.
func (s *Statement) transport(ctx context.Context) (*session.Transport, error) {
	if err := s.Session.AskCacheLimit(ctx); err != nil {
		return nil, err
	}
	if err := s.Session.KnowLastID(ctx); err != nil {
		return nil, err
	}
	s.lastID = s.Session.LastID.Value()
	if err := s.Session.SyncLastID(ctx); err != nil {
		return nil, err
	}
	return s.Session.Transport(ctx)
}

// generate returns the keys of the rows that need one.
func (s *Statement) generate(ctx context.Context, rows *rows) (keys rewrite.Keys, err error) {
	if rows.missing > 0 {
		keys, err = s.Keys.Generate(ctx)
	}
	if err == nil && keys.Len() > 0 {
		s.carried, err = s.carriesKey(ctx, keys.At(0))
	}
	if err == nil {
		err = s.Session.SyncLastID(ctx)
	}
	return keys, err
}

// carriesKey reports whether the first INSERT can pass the first key to LAST_INSERT_ID(). It can't
// if the INSERT may skip the row, since the key would then be in no row, or if a trigger reads the
// previous key.
func (s *Statement) carriesKey(ctx context.Context, first any) (bool, error) {
	in := s.Insert
	key, _ := first.(int64)
	if key < 0 || s.Keys.AreText() || in.Ignore || in.OnDuplicate || in.ReadsLastID ||
		s.Key.ReadsLastID {
		return false, nil
	}
	server, err := s.Session.Server(ctx)
	return err == nil && server.SQL.ReportsKeys, err
}

// end commits the rows and returns the statement's result.
func (s *Statement) end(ctx context.Context, tx *transaction, w *writer) (*Result, error) {
	r := s.result(ctx, w)
	if err := tx.commit(ctx); err != nil {
		return nil, err
	}
	s.keepLastID(r)
	_ = s.Session.SyncLastID(ctx) // otherwise it is synchronized before a statement that reads it
	s.Done(r)
	return r, nil
}

// failed undoes the statement. The server may have evaluated LAST_INSERT_ID(expr).
func (s *Statement) failed(tx *transaction) {
	tx.undo()
	if s.carried || s.Insert.ReportsExistingKey || s.Insert.ReadsLastID {
		s.Session.LastID.Set(s.lastID)
	}
	_ = s.Session.SyncLastID(context.Background())
}

// send executes a statement. It does nothing for an empty string.
func (s *Statement) send(ctx context.Context, query string) error {
	if query == "" {
		return nil
	}
	_, err := s.Session.Base.Send(ctx, query, nil, 0, base.WantResult)
	return err
}

// renumbered returns a copy of arguments that follow n others.
func renumbered(args []driver.NamedValue, n int) []driver.NamedValue {
	args = slices.Clone(args)
	for i := range args {
		args[i].Ordinal = n + i + 1
	}
	return args
}
