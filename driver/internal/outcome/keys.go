package outcome

import (
	"fmt"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// InsertID returns a key as LastInsertId reports it, 0 for a string.
func InsertID(key any) int64 {
	switch key := key.(type) {
	case int64:
		return key
	case uint64:
		return int64(key) // as the underlying driver converts the server's ID
	}
	return 0
}

// asKey returns the key of an existing row, which the server reported as an insert ID.
func (s *Sent) asKey(id int64) any {
	if id < 0 && s.Column.IsUnsigned() {
		return uint64(id)
	}
	return id
}

// Len returns the number of rows. For an INSERT … SELECT it is the number that was counted.
func (s *Sent) Len() int {
	if s.SelectKey != "" {
		return s.Counted
	}
	return len(s.Rows)
}

// id returns generated key i as an insert ID.
func (s *Sent) id(i int) int64 {
	if s.Keys.Ints != nil {
		return s.Keys.Ints[i]
	}
	return InsertID(s.Keys.Values[i])
}

// generated reports whether row i's key was generated.
func (s *Sent) generated(i int) bool { return s.Generates(i, &s.Keys) }

// explicit returns row i's key if it wasn't generated and is known.
func (s *Sent) explicit(i int) any {
	if s.Explicit == nil {
		return nil
	}
	return s.Explicit[i]
}

// RowKeys returns the key of each row, generated or explicit. A key is nil if only the server has it.
// For an INSERT … SELECT they are all generated keys.
func (s *Sent) RowKeys() []any {
	if s.SelectKey != "" {
		keys := make([]any, s.Keys.Len())
		for i := range keys {
			keys[i] = s.Keys.At(i)
		}
		return keys
	}
	keys, next := make([]any, len(s.Rows)), 0
	for row := range keys {
		if s.generated(row) {
			keys[row], next = s.Keys.At(next), next+1
		} else {
			keys[row] = s.explicit(row)
		}
	}
	return keys
}

// Keys returns the key of each row in the table, nil if it is unknown or the row wasn't inserted. The
// key of the only row that existed is in the place of its row.
func (c *Conclusion) Keys(s *Sent) []any {
	switch {
	case s.Invalid, s.SelectKey != "" && c.found == nil:
		return nil
	case s.SelectKey != "":
		return c.found.selected
	}
	keys := s.RowKeys()
	for row := range keys {
		switch c.found.of(row) {
		case Uncertain:
			keys[row] = nil
		case NotInserted:
			keys[row] = c.found.existing
		}
	}
	return keys
}

// text returns a key in the format of [Answer].Present.
func text(key any) string {
	if text, ok := sqltoken.TextOf(key); ok {
		return text
	}
	return fmt.Sprint(key)
}
