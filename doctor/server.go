package doctor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shardkey/shardkey/internal/schema"
	"github.com/shardkey/shardkey/internal/sqltoken"
)

// server is what is known of a connection's server.
type server struct {
	variables map[string]string
	grants    grants
	user      string        // for GRANT: 'app'@'%'
	ahead     time.Duration // of our clock; 0 where the server does not know the time
	isVitess  bool
}

const shownVariables = "'version', 'version_comment', 'sql_mode', 'read_only', 'innodb_flush_log_at_trx_commit', " +
	"'sync_binlog', 'log_bin', 'wsrep_on', 'group_replication_single_primary_mode'"

// askServer asks a server for what findings are about. now is our clock.
func askServer(ctx context.Context, conn *sql.Conn, now func() time.Time) (server, error) {
	s := server{variables: map[string]string{}}
	query := "SHOW VARIABLES WHERE Variable_name IN (" + shownVariables + ")"
	err := schema.Rows(ctx, conn, query, func(row []string) { s.variables[strings.ToLower(row[0])] = row[1] })
	if err == nil {
		err = s.clock(ctx, conn, now)
	}
	if err == nil {
		err = schema.PrepareSession(ctx, conn)
	}
	if err != nil {
		return s, err
	}
	if s.isVitess = schema.Rows(ctx, conn, "SHOW VITESS_SHARDS", func([]string) {}) == nil; s.isVitess {
		return s, ctx.Err() // the user and its rights are those of vttablet
	}
	user, _ := schema.Row(ctx, conn, "SELECT CURRENT_USER()", 1)
	s.user = quotedUser(user[0])
	s.grants = readGrants(ctx, conn)
	return s, ctx.Err()
}

func (sv *server) clock(ctx context.Context, conn *sql.Conn, now func() time.Time) error {
	before := now()
	row, err := schema.Row(ctx, conn, "SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)", 1)
	ms, _ := strconv.ParseInt(row[0], 10, 64)
	if err != nil || ms <= 0 {
		return err
	}
	took := now().Sub(before)
	sv.ahead = before.Add(took / 2).Sub(time.UnixMilli(ms))
	if sv.ahead.Abs() < took {
		sv.ahead = 0
	}
	return nil
}

// quotedUser turns app@% into what GRANT takes.
func quotedUser(user string) string {
	at := strings.LastIndexByte(user, '@')
	if at < 0 {
		return sqltoken.QuoteIdentifier(user)
	}
	return sqltoken.QuoteIdentifier(user[:at]) + "@" + sqltoken.QuoteIdentifier(user[at+1:])
}

func (sv server) lacks(rights string) string {
	return fmt.Sprintf("the user %s doesn't have the privilege %s", sv.user, rights)
}

// grant returns the statement that grants the user rights on a table.
func (sv server) grant(rights, schema, table string) string {
	return fmt.Sprintf("GRANT %s ON %s TO %s;", rights, sqltoken.QuoteTable(schema, table), sv.user)
}

// describe names the server and its session.
func (sv server) describe() string {
	version := sv.variables["version"]
	product := "MySQL"
	if sv.isVitess {
		product = "Vitess"
	} else if strings.Contains(strings.ToLower(version+sv.variables["version_comment"]), "mariadb") {
		product = "MariaDB"
	}
	return fmt.Sprintf("%s %s, sql_mode %s", product, version, sv.variables["sql_mode"])
}

// maxAhead is a difference of clocks that the network doesn't explain.
const maxAhead = 5 * time.Second

const synchronize = "-- synchronize the clocks of both machines (chrony, systemd-timesyncd)"

func (sv server) findings() []Finding {
	mode, direction := sv.variables["sql_mode"], "ahead of"
	if sv.ahead < 0 {
		direction = "behind"
	}
	return met([]condition{
		{true, OK, "server", sv.describe(), "", ""},
		{!strings.Contains(mode, "STRICT_"), Info, "sql-mode", "sql_mode is not strict",
			"the server truncates values that do not fit; " +
				"shardkey checks generated keys against their column first, and refuses keys that do not fit",
			"SET GLOBAL sql_mode = CONCAT(@@GLOBAL.sql_mode, ',STRICT_TRANS_TABLES'); -- and in the server's configuration"},
		{strings.Contains(mode, "NO_AUTO_VALUE_ON_ZERO"), Info, "sql-mode", "sql_mode has NO_AUTO_VALUE_ON_ZERO",
			"an explicit key of 0 is stored as 0, and no key is generated for it", ""},
		{sv.variables["read_only"] == "ON", Error, "read-only", "the server is read only (read_only=ON)",
			"neither rows nor state can be written: the server may be a replica",
			"use the primary's address in the DSN"},
		{sv.ahead.Abs() >= maxAhead, Warning, "clock",
			fmt.Sprintf("this machine's clock is %v %s the server's", sv.ahead.Abs().Round(time.Second), direction),
			"keys contain the time of the machine that generates them: their order and times are wrong, " +
				"and INSERTs wait when the clock is corrected", synchronize},
	})
}

// durability returns the findings about settings with which a server of state forgets confirmed writes.
func (sv server) durability() []Finding {
	flush, sync := sv.variables["innodb_flush_log_at_trx_commit"], sv.variables["sync_binlog"]
	const one = "state must be written on one node: if two nodes are written to, or are cut off from each other, " +
		"they hand out the same numbers, or their writes fail"
	return met([]condition{
		{flush == "0" || flush == "2", Warning, "", "innodb_flush_log_at_trx_commit is " + flush,
			"after a crash, the server may have lost committed numbers or worker IDs, and hand them out again",
			"SET GLOBAL innodb_flush_log_at_trx_commit = 1; -- and in the server's configuration"},
		{sync != "" && sync != "1" && sv.variables["log_bin"] == "ON", Warning, "", "sync_binlog is " + sync,
			"after a crash, a replica and the server may have different writes: " +
				"a replica that is promoted may hand out numbers again",
			"SET GLOBAL sync_binlog = 1; -- and in the server's configuration"},
		{sv.variables["wsrep_on"] == "ON", Info, "", "the server is a node of a Galera cluster", one,
			"use the address of one node, or of a proxy that writes to one node"},
		{sv.variables["group_replication_single_primary_mode"] == "OFF", Warning, "",
			"the server's group has several primaries", one,
			"SELECT group_replication_switch_to_single_primary_mode();"},
	})
}

// condition is a finding where it is met.
type condition struct {
	isMet                 bool
	severity              Severity
	check, what, why, fix string
}

func met(list []condition) (found []Finding) {
	for _, c := range list {
		if c.isMet {
			found = append(found, Finding{Severity: c.severity, Check: c.check, What: c.what, Why: c.why, Fix: c.fix})
		}
	}
	return found
}

// unavailable is the finding for a database that doesn't answer.
func unavailable(check string, err error) Finding {
	what := "it cannot be examined: "
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.Is(err, os.ErrDeadlineExceeded) { // a connection has its context's deadline, and may notice it first
		what = "it did not answer in time: "
	}
	return Finding{Severity: Error, Check: check, What: what + trimPrefix(err), Why: "nothing else was examined"}
}

// grants are what SHOW GRANTS says of the connection's user. Known is false where
// the server does not say it.
type grants struct {
	known bool
	list  []grant
}

type grant struct {
	revoked       bool
	schema, table string // a pattern, and a name; * for all
	rights        map[string][]string
}

func readGrants(ctx context.Context, q schema.Queryer) (g grants) {
	queries := []string{"SHOW GRANTS"}
	roles, _ := schema.Row(ctx, q, "SELECT CURRENT_ROLE()", 1)
	if strings.Contains(roles[0], "@") { // MySQL's, which SHOW GRANTS alone does not follow
		queries = []string{"SHOW GRANTS FOR CURRENT_USER() USING " + roles[0], "SHOW GRANTS"}
	}
	for _, query := range queries {
		err := schema.Rows(ctx, q, query, func(row []string) {
			if parsed, ok := parseGrant(row[0]); ok {
				g.list = append(g.list, parsed)
			}
		})
		if err == nil {
			g.known = true
			return g
		}
	}
	return g
}

const grantedOn = "(\\*|`(?:[^`]|``)+`)"

var (
	grantForm = regexp.MustCompile("^(GRANT|REVOKE) (.+?) ON (?:TABLE )?" + grantedOn + `\.` + grantedOn + " (?:TO|FROM) ")
	rightForm = regexp.MustCompile(`([A-Z][A-Z ]*[A-Z])\s*(?:\(([^)]*)\))?`)
)

func parseGrant(line string) (grant, bool) {
	m := grantForm.FindStringSubmatch(line)
	if m == nil {
		return grant{}, false
	}
	g := grant{revoked: m[1] == "REVOKE", schema: unquoted(m[3]), table: unquoted(m[4]), rights: map[string][]string{}}
	for _, r := range rightForm.FindAllStringSubmatch(m[2], -1) {
		var columns []string
		if r[2] != "" {
			for c := range strings.SplitSeq(r[2], ",") {
				columns = append(columns, unquoted(strings.TrimSpace(c)))
			}
		}
		g.rights[r[1]] = columns
	}
	return g, true
}

func unquoted(name string) string {
	if len(name) > 1 && name[0] == '`' {
		return strings.ReplaceAll(name[1:len(name)-1], "``", "`")
	}
	return name
}

// has reports whether the user has a right on a table, or on one column of it, or,
// without table, in the whole schema.
func (g grants) has(right, inSchema, table, column string) bool {
	if !g.known {
		return true
	}
	revoked := slices.ContainsFunc(g.list, func(o grant) bool {
		_, all := o.rights["ALL PRIVILEGES"]
		_, one := o.rights[right]
		return o.revoked && (all || one) && o.meets(inSchema)
	})
	for _, o := range g.list {
		isOn := o.meets(inSchema) && (o.table == "*" || strings.EqualFold(o.table, table))
		if o.revoked || revoked && o.schema == "*" || !isOn {
			continue
		}
		_, all := o.rights["ALL PRIVILEGES"]
		columns, one := o.rights[right]
		isColumn := func(c string) bool { return strings.EqualFold(c, column) }
		if all || one && (columns == nil || slices.ContainsFunc(columns, isColumn)) {
			return true
		}
	}
	return false
}

// meets reports whether a grant is for a schema. The name of one is a pattern where
// the grant is for all of its tables.
func (gr grant) meets(name string) bool {
	if gr.schema == "*" || gr.table != "*" {
		return gr.schema == "*" || strings.EqualFold(gr.schema, name)
	}
	pattern, err := regexp.Compile("(?i)^" + wildcards.Replace(regexp.QuoteMeta(gr.schema)) + "$")
	return err == nil && pattern.MatchString(name)
}

// wildcards turns those of LIKE into a regular expression's, where a backslash has been doubled.
var wildcards = strings.NewReplacer(`\\\\`, `\\`, `\\%`, "%", `\\_`, "_", "%", ".*", "_", ".")
