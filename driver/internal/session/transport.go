package session

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/shardkey/shardkey/internal/rewrite"
)

// Transport describes how rows are encoded between the server and a session. It is queried once,
// and again after a statement that may have changed the session's variables.
type Transport struct {
	UTF8       bool // the server reads arguments as UTF-8
	Autocommit bool
	ParsesTime bool // the underlying driver returns dates as time.Time
	Packet     int  // the maximum size of a statement in bytes; 0 if unknown
	// Set is a statement that changes variables for a query, and Restore restores them; both may be
	// empty.
	Set, Restore string
}

// Transport returns the encoding of rows.
func (s *Session) Transport(ctx context.Context) (*Transport, error) {
	if s.transport != nil {
		return s.transport, nil
	}
	const columns = 7
	row, err := s.QueryRow(ctx, "SELECT @@character_set_client, @@character_set_connection, @@character_set_results, "+
		"@@sql_select_limit, @@max_allowed_packet, @@autocommit, CAST('2000-01-02' AS DATE) LIMIT 1")
	if err != nil {
		return nil, err
	}
	if len(row) != columns {
		return nil, fmt.Errorf("%w: expected %d columns about the session, found %d", rewrite.ErrUnsupportedStatement, columns, len(row))
	}
	isUTF8 := func(v driver.Value) bool { return strings.EqualFold(Text(v), "utf8mb4") }
	t := &Transport{UTF8: isUTF8(row[0]) && isUTF8(row[1]), Packet: s.packet(Text(row[4])), Autocommit: Text(row[5]) == "1"}
	_, t.ParsesTime = row[6].(time.Time)
	charset, limit := cmp.Or(Text(row[2]), "NULL"), Text(row[3])
	rows, err := strconv.ParseUint(limit, 10, 64)
	isLimited := err == nil && rows < math.MaxInt64 && !(rows == 0 && s.IsVitess()) // 0 means no limit in Vitess
	switch {
	case isUTF8(row[2]) && !isLimited:
	case !plainName.MatchString(charset):
		return nil, fmt.Errorf("%w: unknown character set %q of results", rewrite.ErrUnsupportedStatement, charset)
	case err != nil:
		return nil, fmt.Errorf("%w: expected a number as sql_select_limit, found %q", rewrite.ErrUnsupportedStatement, limit)
	default:
		t.Set = "SET character_set_results = utf8mb4, sql_select_limit = " + noLimit
		t.Restore = "SET character_set_results = " + charset + ", sql_select_limit = " + limit
	}
	s.transport = t
	return t, nil
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

const noLimit = "9223372036854775807" // the number of rows; Vitess accepts no larger one

// packet returns the maximum size of a statement in bytes, by the server's max_allowed_packet and
// the underlying driver's.
func (s *Session) packet(server string) int {
	most, _ := strconv.Atoi(server)
	if own := s.Client().MaxAllowedPacket; own > 0 {
		most = min(most, own)
	}
	return most
}
