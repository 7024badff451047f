package session

import (
	"context"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// Origin is the session in which statements were prepared. The server fixes its database, sql_mode
// and character set in them, and they stay as they were in a session that has changed since.
type Origin struct {
	// Database is the current database, if the values were asked.
	Database string
	mode     []string // sql_mode, without the modes that the server applies at each execution
	charset  string   // the character set and collation of the statements
	asked    bool
	open     int // statements
}

// Prepared returns the current origin, and counts a statement that is prepared in it. Call Closed
// when the statement is closed.
func (s *Session) Prepared() *Origin {
	s.origin.open++
	return s.origin
}

// Closed is called when a prepared statement is closed.
func (o *Origin) Closed() { o.open-- }

// IsCurrent reports whether the session hasn't changed since a statement was prepared.
func (s *Session) IsCurrent(o *Origin) bool { return s.origin == o }

// IsAsked reports whether the origin's values are known.
func (o *Origin) IsAsked() bool { return o.asked }

// SameAs asks for the values of the current session, and reports whether a statement of the
// origin would be prepared in the same way now.
func (s *Session) SameAs(ctx context.Context, o *Origin) (bool, error) {
	if s.origin == o {
		return true, nil
	}
	if err := s.askOrigin(ctx); err != nil {
		return false, err
	}
	now := s.origin
	return o.asked && now.asked && now.Database == o.Database && now.charset == o.charset && slices.Equal(now.mode, o.mode), nil
}

// leaveOrigin is called before a statement that may change what prepared statements depend on. It asks
// for the old values if statements were prepared with them.
func (s *Session) leaveOrigin(ctx context.Context, q sqltoken.Query) {
	// The query would change the counts that the statement reads.
	if s.origin.open > 0 && !q.Has(sqltoken.WordRowCounts) {
		_ = s.askOrigin(ctx) // without an answer the statements can't be prepared again
	}
	s.origin = new(Origin)
}

func (s *Session) askOrigin(ctx context.Context) error {
	if s.origin.asked {
		return nil
	}
	row, err := s.askRow(ctx, "SELECT DATABASE(), @@sql_mode, @@character_set_client, @@collation_connection LIMIT 1")
	const columns = 4
	if len(row) != columns {
		return err
	}
	s.origin.Database, s.origin.asked = Text(row[0]), true
	s.knowDatabase(Text(row[0]))
	if charset := Text(row[2]); charset != "" {
		s.mode, s.charset, s.modeKnown = sqltoken.ParseMode(Text(row[1])), sqltoken.ParseCharset(charset), true
	}
	s.origin.charset = Text(row[2]) + " " + Text(row[3])
	for mode := range strings.SplitSeq(Text(row[1]), ",") {
		if mode != "" && !sqltoken.Is(mode, "NO_AUTO_VALUE_ON_ZERO", "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES") {
			s.origin.mode = append(s.origin.mode, mode)
		}
	}
	return nil
}
