package copyrows

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/sqltoken"
)

// raised has the warnings that are errors in a statement that changes data in a strict sql_mode,
// with their SQLSTATE. A SELECT only warns. The list is that of MySQL's
// Strict_error_handler::handle_condition (sql/error_handler.cc).
var raised = map[uint16]string{
	1048: "23000", 1260: "HY000", 1261: "01000", 1263: "22004", 1264: "22003", 1265: "01000", 1292: "22007", 1301: "HY000",
	1365: "22012", 1366: "HY000", 1406: "22001", 1411: "HY000", 1441: "22008", 3020: "2201E", 3155: "22003", 3156: "22018",
	6527: "22008", 1916: "22003", 1918: "22007",
}

// MariaDB and MySQL before 5.7 raise any warning of an execution (THD::raise_condition in
// sql/sql_class.cc), but not those of the parser and of SIGNAL in a stored function.
const (
	deprecatedSyntax = 1287
	signalWarning    = 1642
)

// isStrict reports whether the server raises warnings of the statement.
func (s *Statement) isStrict(ctx context.Context) (bool, error) {
	mode, _, err := s.Session.Mode(ctx)
	return mode&sqltoken.Strict != 0 && !s.Insert.Ignore, err
}

// clearWarnings clears the warnings of earlier statements if neither the query nor the statement that
// begins the transaction does.
func (s *Statement) clearWarnings(ctx context.Context, t *session.Transport) error {
	server, err := s.Session.Server(ctx)
	if err != nil || s.Insert.Source.Lockable || t.Autocommit && !s.Insert.Returning ||
		server.Kind != session.ServerMariaDB && !server.IsBeforeMySQL8() {
		return err
	}
	return s.send(ctx, "DO (SELECT 1 "+ofATable+")")
}

// raise returns the first warning of the query that INSERT … SELECT raises as an error.
func (s *Statement) raise(ctx context.Context) error {
	warnings, n, err := s.Session.Warnings(ctx)
	if err != nil || n == 0 {
		return err
	}
	server, err := s.Session.Server(ctx)
	if err != nil {
		return err
	}
	raisesAny := server.Kind == session.ServerMariaDB || strings.HasPrefix(server.Version, "5.6")
	for i := range warnings {
		w := warnings[i]
		state, ok := raised[w.Number]
		ok = ok || raisesAny && w.Number != deprecatedSyntax && w.Number != signalWarning
		if ok && w.Level == "Warning" {
			raised := &mysql.MySQLError{Number: w.Number, Message: w.Message}
			copy(raised.SQLState[:], cmp.Or(state, "HY000"))
			return raised
		}
	}
	if n > len(warnings) {
		return &Refusal{fmt.Sprintf("the query causes %d warnings, and the server keeps %d, so an error may be hidden; "+
			"raise max_error_count to %d, or use INSERT IGNORE", n, len(warnings), n), nil}
	}
	return nil
}
