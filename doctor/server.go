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

func (x *examination) server(ctx context.Context, conn *sql.Conn) (server, error) {
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
	if err := x.clock(ctx, conn, &s); err != nil {
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

func (x *examination) clock(ctx context.Context, conn *sql.Conn, s *server) error {
	before := x.Now()
	var ms int64
	err := schema.Rows(ctx, conn, "SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)", func(row []string) { ms, _ = strconv.ParseInt(row[0], 10, 64) })
	if err != nil || ms <= 0 {
		return err
	}
	now := x.Now()
	s.ahead = before.Add(now.Sub(before) / 2).Sub(time.UnixMilli(ms))
	if s.ahead.Abs() < now.Sub(before) {
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

// maxAhead is a difference of clocks that is no longer one of the network.
const maxAhead = 5 * time.Second

func (s server) findings(source string) (found []Finding) {
	found = append(found, Finding{Severity: OK, Check: "server", DataSource: source, What: s.describe()})
	mode := s.variables["sql_mode"]
	if !strings.Contains(mode, "STRICT_") {
		found = append(found, Finding{Severity: Info, Check: "sql-mode", DataSource: source,
			What: "sql_mode is not strict",
			Why:  "the server cuts values that do not fit off, and stores the rest; generated keys are held against their column before, so that none of them is cut",
			Fix:  "SET PERSIST sql_mode = CONCAT(@@GLOBAL.sql_mode, ',STRICT_TRANS_TABLES'); -- in MariaDB SET GLOBAL, and in its configuration"})
	}
	if strings.Contains(mode, "NO_AUTO_VALUE_ON_ZERO") {
		found = append(found, Finding{Severity: Info, Check: "sql-mode", DataSource: source,
			What: "sql_mode has NO_AUTO_VALUE_ON_ZERO",
			Why:  "a key that a statement gives as 0 is stored as 0, and none is generated"})
	}
	if s.variables["read_only"] == "ON" {
		found = append(found, Finding{Severity: Error, Check: "read-only", DataSource: source,
			What: "the server is read only (read_only=ON)", Why: "no row and no state can be written there: it may be a replica",
			Fix: "give the primary's address in the data source name"})
	}
	if s.ahead.Abs() >= maxAhead {
		direction := "ahead of"
		if s.ahead < 0 {
			direction = "behind"
		}
		found = append(found, Finding{Severity: Warning, Check: "clock", DataSource: source,
			What: fmt.Sprintf("this machine's clock is %v %s the server's", s.ahead.Abs().Round(time.Second), direction),
			Why:  "keys carry the time of the machine that makes them: their order and their times are off, and a clock that is corrected later makes keys wait",
			Fix:  "-- synchronize the clocks of both machines (chrony, systemd-timesyncd)"})
	}
	return found
}

// away is the finding for a database that could not be asked.
func away(check, source string, err error) Finding {
	f := Finding{Severity: Error, Check: check, DataSource: source, What: "it cannot be asked: " + schema.Cause(err),
		Why: "nothing more is known of it"}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		f.What = "it did not answer in time: " + schema.Cause(err)
	}
	return f
}
