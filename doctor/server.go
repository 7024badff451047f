package doctor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/shardkey/shardkey/internal/schema"
	"github.com/shardkey/shardkey/internal/sqltext"
)

// server is what is known of a connection's server.
type server struct {
	variables map[string]string
	grants    grants
	user      string        // for GRANT: 'app'@'%'
	ahead     time.Duration // of our clock; 0 where the server does not know the time
	isVitess  bool
}

// shownVariables are those that findings are about.
var shownVariables = []string{"version", "version_comment", "sql_mode", "read_only", "innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin",
	"wsrep_on", "group_replication_single_primary_mode"}

// askServer asks a server for what findings are about. now is our clock.
func askServer(ctx context.Context, conn *sql.Conn, now func() time.Time) (server, error) {
	s := server{variables: map[string]string{}}
	list := make([]string, len(shownVariables))
	for i, name := range shownVariables {
		list[i] = schema.Literal(name)
	}
	err := schema.Rows(ctx, conn, "SHOW VARIABLES WHERE Variable_name IN ("+strings.Join(list, ", ")+")", func(row []string) {
		s.variables[strings.ToLower(row[0])] = row[1]
	})
	if err != nil {
		return s, err
	}
	if err := s.clock(ctx, conn, now); err != nil {
		return s, err
	}
	if err := schema.PrepareSession(ctx, conn); err != nil {
		return s, err
	}
	if s.isVitess = schema.Rows(ctx, conn, "SHOW VITESS_SHARDS", func([]string) {}) == nil; s.isVitess {
		return s, ctx.Err() // the user and its rights are those of vttablet
	}
	_ = schema.Rows(ctx, conn, "SELECT CURRENT_USER()", func(row []string) { s.user = quotedUser(row[0]) })
	s.grants = readGrants(ctx, conn)
	return s, ctx.Err()
}

func (s *server) clock(ctx context.Context, conn *sql.Conn, now func() time.Time) error {
	before := now()
	var ms int64
	err := schema.Rows(ctx, conn, "SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)", func(row []string) { ms, _ = strconv.ParseInt(row[0], 10, 64) })
	if err != nil || ms <= 0 {
		return err
	}
	took := now().Sub(before)
	s.ahead = before.Add(took / 2).Sub(time.UnixMilli(ms))
	if s.ahead.Abs() < took {
		s.ahead = 0
	}
	return nil
}

// quotedUser turns app@% into what GRANT takes.
func quotedUser(user string) string {
	at := strings.LastIndexByte(user, '@')
	if at < 0 {
		return sqltext.QuoteIdentifier(user)
	}
	return sqltext.QuoteIdentifier(user[:at]) + "@" + sqltext.QuoteIdentifier(user[at+1:])
}

func (s server) lacks(rights string) string {
	return fmt.Sprintf("the user %s doesn't have the right %s", s.user, rights)
}

// describe names the server and its session.
func (s server) describe() string {
	version := s.variables["version"]
	product := "MySQL"
	if s.isVitess {
		product = "Vitess"
	} else if strings.Contains(strings.ToLower(version+s.variables["version_comment"]), "mariadb") {
		product = "MariaDB"
	}
	return fmt.Sprintf("%s %s, sql_mode %s", product, version, s.variables["sql_mode"])
}

// maxAhead is a difference of clocks that the network doesn't explain.
const maxAhead = 5 * time.Second

const synchronize = "-- synchronize the clocks of both machines (chrony, systemd-timesyncd)"

func (s server) findings() []Finding {
	found := []Finding{{Severity: OK, Check: "server", What: s.describe()}}
	add := func(severity Severity, check, what, why, fix string) {
		found = append(found, Finding{Severity: severity, Check: check, What: what, Why: why, Fix: fix})
	}
	mode := s.variables["sql_mode"]
	if !strings.Contains(mode, "STRICT_") {
		add(Info, "sql-mode", "sql_mode is not strict", "the server truncates values that do not fit, and stores the rest; "+
			"generated keys are checked against their column before, so that none is truncated",
			"SET PERSIST sql_mode = CONCAT(@@GLOBAL.sql_mode, ',STRICT_TRANS_TABLES'); -- in MariaDB SET GLOBAL, and in its configuration")
	}
	if strings.Contains(mode, "NO_AUTO_VALUE_ON_ZERO") {
		add(Info, "sql-mode", "sql_mode has NO_AUTO_VALUE_ON_ZERO",
			"a key that a statement gives as 0 is stored as 0, and none is generated", "")
	}
	if s.variables["read_only"] == "ON" {
		add(Error, "read-only", "the server is read only (read_only=ON)",
			"no row and no state can be written there: it may be a replica", "give the primary's address in the data source name")
	}
	if s.ahead.Abs() >= maxAhead {
		direction := "ahead of"
		if s.ahead < 0 {
			direction = "behind"
		}
		add(Warning, "clock", fmt.Sprintf("this machine's clock is %v %s the server's", s.ahead.Abs().Round(time.Second), direction),
			"keys carry the time of the machine that generates them: their order and their times are wrong, "+
				"and keys wait once the clock is corrected", synchronize)
	}
	return found
}

// unavailable is the finding for a database that doesn't answer.
func unavailable(check string, err error) Finding {
	what := "it cannot be asked: "
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		what = "it did not answer in time: "
	}
	return Finding{Severity: Error, Check: check, What: what + plain(err), Why: "nothing more is known of it"}
}
