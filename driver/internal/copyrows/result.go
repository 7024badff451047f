package copyrows

import (
	"context"

	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// Result is the result of all INSERTs of a statement.
type Result struct {
	affected, id int64
	rows         int
	explicit     []any        // see rows
	keys         rewrite.Keys // the generated keys
	dropped      []bool       // generated keys that are missing in the table; nil: none
	unsure       bool         // an explicit key may be missing
	// first is the first generated key that was inserted, even if a later row of the same REPLACE
	// replaced it. It is nil if there is none, or if keys aren't numbers.
	first any
}

// result returns the result of the written rows. It queries the doubtful generated keys.
func (s *Statement) result(ctx context.Context, w *writer) *Result {
	rows := w.rows
	r := &Result{affected: w.affected, rows: rows.n, explicit: rows.explicit, keys: w.keys, unsure: w.unsure}
	r.look(ctx, s, w.doubt)
	r.first = s.firstInserted(r)
	switch {
	case r.first != nil:
		r.id = session.InsertID(r.first)
	case s.Insert.ReadsLastID && s.Insert.OnDuplicate && w.insertID != 0:
		r.id = w.insertID // of LAST_INSERT_ID(expr)
	case s.Insert.ReadsLastID && rows.n > 0 && session.SetsLastInsertID(s.Insert.Select, sqltoken.ClassPass):
		_ = s.Session.KnowLastID(ctx) // otherwise the ID is unknown
		r.id = int64(s.Session.LastID.Value())
	case r.affected > 0 && r.dropped == nil && !s.Insert.OnDuplicate && !s.Key.HasTriggers:
		// Otherwise the servers restore the row's default values before they read the insert ID
		// (sql/sql_insert.cc, Query_result_insert::send_data and select_insert::send_data).
		r.id = session.InsertID(rows.last)
	}
	return r
}

const keysAtOnce = 1000 // keys in one query for existing keys

// look queries which of the doubtful generated keys are in the table. If the query fails, it treats
// them as missing, since the statement has succeeded.
func (r *Result) look(ctx context.Context, s *Statement, doubt int) {
	n := r.keys.Len()
	if doubt < n {
		r.dropped = make([]bool, n)
	}
	for from := doubt; from < n; from += keysAtOnce {
		keys := make([]any, min(keysAtOnce, n-from))
		for i := range keys {
			keys[i] = r.keys.At(from + i)
		}
		present, err := s.Session.PresentKeys(ctx, s.Insert, keys, false)
		if err != nil {
			s.Keys.Unknown(ctx, r.rows, err)
		}
		for i, key := range keys {
			r.dropped[from+i] = err != nil || !present[session.Text(key)]
		}
	}
}

// generated returns generated key i, nil if it was not inserted.
func (r *Result) generated(i int) any {
	if r.dropped != nil && r.dropped[i] {
		return nil
	}
	return r.keys.At(i)
}

// firstInserted returns [Result].first.
func (s *Statement) firstInserted(r *Result) any {
	if s.Keys.AreText() {
		return nil
	}
	for i := range r.keys.Len() {
		if key := r.generated(i); key != nil || s.Insert.Replace {
			return r.keys.At(i)
		}
	}
	return nil
}

// keepLastID records the value that LAST_INSERT_ID() must return after the statement.
func (s *Statement) keepLastID(r *Result) {
	last := &s.Session.LastID
	switch {
	case s.carried:
		last.Told(uint64(session.InsertID(r.keys.At(0))))
	case r.first != nil:
		last.Set(uint64(session.InsertID(r.first)))
	case s.Insert.ReportsExistingKey:
		last.Moved()
	}
}

// LastInsertId returns the first generated key that was inserted, or the last explicit key.
func (r *Result) LastInsertId() (int64, error) { return r.id, nil }

// RowsAffected returns the affected rows of all INSERTs.
func (r *Result) RowsAffected() (int64, error) { return r.affected, nil }

// AllLastInsertIds returns LastInsertId, since the string has one statement.
func (r *Result) AllLastInsertIds() []int64 { return []int64{r.id} }

// AllRowsAffected returns RowsAffected, since the string has one statement.
func (r *Result) AllRowsAffected() []int64 { return []int64{r.affected} }

// Keys returns the keys of all rows of the query, in order. The query's keys are known only if all
// rows were inserted.
func (r *Result) Keys() []any {
	all, next := make([]any, r.rows), 0
	for i := range all {
		switch {
		case r.explicit == nil || r.explicit[i] == missingKey:
			all[i] = r.generated(next)
			next++
		case !r.unsure:
			all[i] = r.explicit[i]
		}
	}
	return all
}
