package doctor_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/doctor"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// leased is a rule whose worker IDs are in the connector's own database.
func leased(props string) string {
	return ruleOf("{type: SNOWFLAKE, props: {worker-id-assigner: a}}") + "\n  workerIdAssigners:\n    a: {type: SQL, props: {namespace: orders" + props + "}}\n"
}

const segments = "{type: LEAF_SEGMENT, props: {leaf.key: orders}}"
const tickets = "{type: TICKET}"

// TestExamine_states provokes each finding about what generators keep in a database, on
// a server that writes through to its disk.
func TestExamine_states(t *testing.T) {
	if testserver.Each(t, TestExamine_states) {
		return
	}
	t.Parallel()
	server := testserver.StartSQL(t, "--sql-mode=STRICT_TRANS_TABLES")
	const lease = "CREATE TABLE shardkey_worker (namespace VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, worker_id INT NOT NULL, owner VARBINARY(64) NOT NULL, reserved_until BIGINT NOT NULL, " +
		"free_from BIGINT NOT NULL, holder VARCHAR(255) NOT NULL, since BIGINT NOT NULL, PRIMARY KEY (namespace, worker_id)) ENGINE=InnoDB;"
	const alloc = "CREATE TABLE leaf_alloc (biz_tag varchar(128) NOT NULL PRIMARY KEY, max_id bigint NOT NULL DEFAULT 1, step int NOT NULL);"
	const ticket = "CREATE TABLE Tickets64 (id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, stub char(1) NOT NULL DEFAULT '' UNIQUE);"
	rows := func(n int, until string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "INSERT INTO shardkey_worker VALUES ('orders', %d, 'x', (UNIX_TIMESTAMP() + %s) * 1000, 0, 'h', 1);", i, until)
		}
		return b.String()
	}
	others := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "INSERT INTO shardkey_worker VALUES ('shop%d', 0, 'x', (UNIX_TIMESTAMP() + 10000) * 1000, 0, 'h', 1);", i)
		}
		return b.String()
	}
	const small = "DELETE FROM t_order_0; INSERT INTO t_order_0 VALUES (500, 1);"
	for i, c := range []struct {
		name, rule, change string
		want               string // empty: nothing but ok
		fix                string
		fixes              bool
	}{
		{"leases as they must be", leased(""), lease + rows(3, "10000"), "", "", false},
		{"the note of the server", leased(""), lease + "INSERT INTO shardkey_worker VALUES ('orders', -1, 'server', UNIX_TIMESTAMP() * 2000, 1, 'h', 1)", "", "", false},
		{"leases in another table", leased(", table: w"), "RENAME TABLE shardkey_worker TO w", "", "", false},
		{"no lease table yet", leased(""), "", "info: leases: a, table shardkey_worker at", "CREATE TABLE IF NOT EXISTS `shardkey_worker`", true},
		{"a lease table without its key", leased(""), lease + "ALTER TABLE shardkey_worker DROP PRIMARY KEY", "error: leases: a, table shardkey_worker", "ADD PRIMARY KEY (namespace, worker_id)", true},
		{"a lease table of MyISAM", leased(""), lease + "ALTER TABLE shardkey_worker ENGINE=MyISAM", "its engine is MyISAM", "ENGINE=InnoDB", true},
		{"the layout of the rule", leased(""), lease + "INSERT INTO shardkey_worker VALUES ('#orders', 2, 'x', 1, 0, 'layout 41-10-12, tick 1ms, epoch 2016-11-01T00:00:00Z', 1)", "", "", false},
		{"another layout", leased(""), lease + "INSERT INTO shardkey_worker VALUES ('#orders', 2, 'x', 1, 0, 'layout 41-8-14, tick 1ms, epoch 2016-11-01T00:00:00Z', 1)",
			"warning: leases: a, table shardkey_worker", "", false},
		{"another namespace", leased(""), lease + "INSERT INTO shardkey_worker VALUES ('shop', 0, 'x', (UNIX_TIMESTAMP() + 10000) * 1000, 0, 'h', 1), ('shop', 1, 'x', (UNIX_TIMESTAMP() + 10000) * 1000, 0, 'h', 1), " +
			"('old', 0, 'x', 1, 0, 'h', 1), ('#shop', 0, 'x', (UNIX_TIMESTAMP() + 10000) * 1000, 0, 'h', 1)",
			"other namespaces have held worker IDs: shop (2)", "", false},
		{"seven other namespaces", leased(""), lease + others(7), "shop4 (1), and 2 more", "", false},
		{"a record far ahead", leased(""), lease + rows(1, "864000"), "warning: leases: a", "worker_id = 0", true},
		{"all worker IDs taken", strings.Replace(leased(""), "props: {worker-id-assigner", "props: {layout: js53, worker-id-assigner", 1), lease + rows(16, "10000"), "16 of 16 worker IDs are held, 0 are free", "", false},
		{"nearly all", strings.Replace(leased(""), "props: {worker-id-assigner", "props: {layout: js53, worker-id-assigner", 1), lease + rows(15, "10000"), "15 of 16 worker IDs are held, 1 are free", "", false},
		{"a worker ID that nobody set", ruleOf("{type: SNOWFLAKE}"), "", "warning: generator: rule.yaml:10:5: g: ", "", false},
		{"segments as they must be", ruleOf(segments), small + alloc + "INSERT INTO leaf_alloc VALUES ('orders', 501, 1000)", "", "", false},
		{"no leaf_alloc", ruleOf(segments), small, "error: segments: g, table leaf_alloc", "VALUES ('orders', 501, 1000)", true},
		{"no row", ruleOf(segments), small + alloc, "it has no row \"orders\"", "VALUES ('orders', 501, 1000)", true},
		{"a step of 0", ruleOf(segments), small + alloc + "INSERT INTO leaf_alloc VALUES ('orders', 501, 0)", "the step of row \"orders\" is 0", "step = 1000", true},
		{"segments below the rows", ruleOf(segments), small + alloc + "INSERT INTO leaf_alloc VALUES ('orders', 500, 1000)", "max_id of \"orders\" is 500, but the greatest key is 500 (t_order_0)", "max_id = 501", true},
		{"segments near the column's end", ruleOf(segments), small + "ALTER TABLE t_order_0 MODIFY order_id INT NOT NULL; ALTER TABLE t_order_1 MODIFY order_id INT NOT NULL;" + alloc + "INSERT INTO leaf_alloc VALUES ('orders', 2000000000, 1000)",
			"warning: segments: g, table leaf_alloc", "shardkey migrate", false},
		{"tickets as they must be", ruleOf(tickets), small + ticket + "ALTER TABLE Tickets64 AUTO_INCREMENT = 501", "", "", false},
		{"tickets below the rows", ruleOf(tickets), small + ticket, "its next number is 1, but the greatest key is 500", "AUTO_INCREMENT = 501", true},
		{"no ticket table", ruleOf(tickets), "", "error: tickets: g, table Tickets64", "CREATE TABLE `Tickets64`", true},
		{"a server that forgets", leased(""), lease + "SET GLOBAL innodb_flush_log_at_trx_commit = 2", "warning: leases: a, table shardkey_worker", "innodb_flush_log_at_trx_commit = 1", true},
		{"a server that is read only", ruleOf(snowflakes), "SET GLOBAL read_only = 1", "error: read-only: the server is read only", "", false},
		{"no strict mode", ruleOf(snowflakes), "SET GLOBAL read_only = 0; SET GLOBAL sql_mode = 'NO_AUTO_VALUE_ON_ZERO'", "info: sql-mode: sql_mode is not strict", "", false},
		{"0 as a key", ruleOf(snowflakes), "", "info: sql-mode: sql_mode has NO_AUTO_VALUE_ON_ZERO", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := "d" + fmt.Sprint(i)
			change := c.change
			if c.name == "leases in another table" {
				change = lease + change
			}
			run(t, server.DSN(), "SET SESSION sql_mode = DEFAULT; CREATE DATABASE "+db+"; USE "+db+";"+healthy+change)
			cfg := must.Get(mysql.ParseDSN(server.DSN()))(t)
			cfg.DBName = db
			found := examine(t, c.rule, cfg.FormatDSN())
			if c.want == "" {
				if list := remarks(found); len(list) > 0 || !strings.Contains(fmt.Sprint(found), "no problems") && !strings.Contains(fmt.Sprint(found), "are free") {
					t.Errorf("have: %s\n%v", strings.Join(list, "\n"), found)
				}
				return
			}
			f := find(found, c.want, c.fix)
			if f == nil || f.Why == "" && f.Check != "generator" {
				t.Fatalf("have: %q\nwant: %s, %s", found, c.want, c.fix)
			}
			if c.fixes {
				run(t, cfg.FormatDSN(), f.Fix)
				if f := find(examine(t, c.rule, cfg.FormatDSN()), c.want, c.fix); f != nil {
					t.Errorf("fixed, and have: %v", f)
				}
			}
		})
	}
}

// user makes a user with these rights on a database and returns a DSN with it.
func user(t *testing.T, dsn string, grants ...string) string {
	t.Helper()
	cfg := must.Get(mysql.ParseDSN(dsn))(t)
	name := "u" + strings.TrimPrefix(cfg.DBName, "shardkey_test_")
	run(t, dsn, "CREATE USER "+name+" IDENTIFIED BY 'secret-word'")
	t.Cleanup(func() { run(t, dsn, "DROP USER "+name) })
	for _, g := range grants {
		run(t, dsn, strings.NewReplacer("DB", cfg.DBName, "USER", name).Replace(g))
	}
	cfg.User, cfg.Passwd = name, "secret-word"
	return cfg.FormatDSN()
}

func TestExamine_rights(t *testing.T) {
	if testserver.Each(t, TestExamine_rights) {
		return
	}
	forUser := " FOR USER"
	if testserver.Has(t, testserver.MySQL, "SET DEFAULT ROLE … TO") {
		forUser = " TO USER"
	}
	for _, c := range []struct {
		name, rule string
		grants     []string
		want       []string // all remarks
		fixes      string
	}{
		{"all", ruleOf(snowflakes), []string{"GRANT ALL ON DB.* TO USER"}, nil, ""},
		{"what is needed", ruleOf(snowflakes), []string{"GRANT SELECT, INSERT ON DB.* TO USER"}, nil, ""},
		{"by table", ruleOf(snowflakes), []string{"GRANT SELECT, INSERT ON DB.t_order_0 TO USER", "GRANT SELECT, INSERT (order_id, user_id) ON DB.t_order_1 TO USER"},
			nil, ""},
		{"read only", ruleOf(snowflakes), []string{"GRANT SELECT ON DB.* TO USER"}, []string{"error: rights t_order.order_id (t_order_0, t_order_1)"}, "GRANT INSERT ON `DB`.`t_order_0` TO `USER`@`%`;\nGRANT INSERT ON `DB`.`t_order_1` TO `USER`@`%`;"},
		{"on one table", ruleOf(snowflakes), []string{"GRANT SELECT, INSERT ON DB.t_order_0 TO USER"},
			[]string{"error: table t_order (t_order_1): the table does not exist, or the user"}, "GRANT SELECT, INSERT ON `DB`.`t_order_1` TO `USER`@`%`;"},
		{"insert only", ruleOf(snowflakes), []string{"GRANT INSERT ON DB.* TO USER"}, []string{"warning: rights t_order.order_id (t_order_0, t_order_1)"}, "GRANT SELECT"},
		{"the state's tables", leased(""), []string{"CREATE TABLE DB.shardkey_worker (namespace VARCHAR(64), worker_id INT, owner VARBINARY(64), reserved_until BIGINT, free_from BIGINT, holder VARCHAR(255), since BIGINT, PRIMARY KEY (namespace, worker_id))",
			"GRANT SELECT, INSERT ON DB.* TO USER"}, []string{"warning: leases", "error: leases"}, "GRANT UPDATE ON `DB`.`shardkey_worker` TO `USER`@`%`;"},
		{"a missing table of leases", leased(""), []string{"GRANT SELECT, INSERT ON DB.* TO USER"}, []string{"warning: leases", "error: leases"}, "GRANT SELECT, INSERT, UPDATE ON `DB`.`shardkey_worker` TO `USER`@`%`;"},
		{"the segments'", ruleOf(segments), []string{"CREATE TABLE DB.leaf_alloc (biz_tag VARCHAR(128) PRIMARY KEY, max_id BIGINT, step INT)", "INSERT INTO DB.leaf_alloc VALUES ('orders', 2000000000000000000, 10)",
			"GRANT SELECT, INSERT ON DB.t_order_0 TO USER", "GRANT SELECT, INSERT ON DB.t_order_1 TO USER", "GRANT SELECT ON DB.leaf_alloc TO USER"},
			[]string{"warning: segments", "info: segments", "error: segments"}, "GRANT UPDATE ON `DB`.`leaf_alloc` TO `USER`@`%`;"},
		{"by a role", ruleOf(snowflakes), []string{"CREATE ROLE USER_role", "GRANT ALL ON DB.* TO USER_role", "GRANT USER_role TO USER", "SET DEFAULT ROLE USER_role" + forUser}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dsn := database(t, healthy)
			own := user(t, dsn, c.grants...)
			cfg, _ := mysql.ParseDSN(own)
			if c.name == "by a role" {
				t.Cleanup(func() { run(t, dsn, "DROP ROLE "+cfg.User+"_role") })
			}
			found := examine(t, c.rule, own)
			list, fixes := remarks(found), ""
			for _, f := range found {
				fixes = strings.TrimPrefix(fixes+"\n"+f.Fix, "\n")
				if strings.Contains(fmt.Sprint(f, f.Why, f.Fix), "secret-word") {
					t.Errorf("the password is shown: %v", f)
				}
			}
			fixes = strings.NewReplacer(cfg.DBName, "DB", cfg.User, "USER").Replace(strings.TrimSpace(fixes))
			if len(list) != len(c.want) || !strings.Contains(fixes, c.fixes) {
				t.Fatalf("have: %q\n%s\nwant: %q\n%s", list, fixes, c.want, c.fixes)
			}
			for i := range list {
				if !strings.HasPrefix(list[i], c.want[i]) {
					t.Errorf("have: %s\nwant: %s", list[i], c.want[i])
				}
			}
		})
	}
}

var reads = regexp.MustCompile(`(?i)^(SELECT |SHOW |SET (SESSION )?[a-z_]+ ?= ?|SET NAMES |$)`)

// TestExamine_onlyReads looks at what reached the server, in the place of a user who
// may do everything, so that nothing is left out for lack of a right.
func TestExamine_onlyReads(t *testing.T) {
	if testserver.Each(t, TestExamine_onlyReads) {
		return
	}
	server := testserver.StartSQL(t)
	run(t, server.DSN(), "CREATE DATABASE d; USE d;"+healthy+"ALTER TABLE t_order_1 MODIFY order_id INT NOT NULL AUTO_INCREMENT;"+
		"SET GLOBAL log_output = 'TABLE'; TRUNCATE mysql.general_log; SET GLOBAL general_log = 1")
	cfg := must.Get(mysql.ParseDSN(server.DSN()))(t)
	cfg.DBName = "d"
	for _, text := range []string{leased(""), ruleOf(segments), ruleOf(tickets)} {
		examine(t, text, cfg.FormatDSN())
	}
	run(t, server.DSN(), "SET GLOBAL general_log = 0")
	db := must.Open(t, "mysql", server.DSN())
	rows := must.Get(db.Query("SELECT command_type, CONVERT(argument USING utf8mb4) FROM mysql.general_log WHERE command_type IN ('Query', 'Execute')"))(t)
	defer rows.Close()
	seen := 0
	for rows.Next() {
		var command, text string
		must.Do(t, rows.Scan(&command, &text))
		if seen++; !reads.MatchString(text) && !strings.Contains(text, "general_log") {
			t.Errorf("sent: %s", text)
		}
	}
	if err := rows.Err(); err != nil || seen < 30 {
		t.Errorf("have: %d statements, %v", seen, err)
	}
}

func TestExamine_severalDatabases(t *testing.T) {
	if testserver.Each(t, TestExamine_severalDatabases) {
		return
	}
	a, b := database(t, healthy), database(t, "DO 0")
	text := strings.Replace(ruleOf(snowflakes), "t_order_${0..1}", "ds_${0..2}.t_order_${0..1}", 1)
	// One that refuses connections, among those that answer.
	have := remarks(examine(t, text, a, b, "root@tcp(127.0.0.1:1)/d"))
	if len(have) != 2 || have[0] != "error: table ds_1 t_order (t_order_0, t_order_1): the table does not exist" || !strings.HasPrefix(have[1], "error: reachable ds_2: it cannot be examined: ") {
		t.Errorf("have: %q", have)
	}

	// Each keeps its own worker IDs: refused, unless it is meant.
	own := strings.Replace(leased(""), "ds_", "", 1)
	have = remarks(examine(t, own, a, b))
	if all := strings.Join(have, "\n"); !strings.Contains(all, "error: open ds_1: ") || !strings.Contains(all, "each would generate the same keys") {
		t.Errorf("have: %q", have)
	}
	have = remarks(examine(t, strings.Replace(leased(", own-database: yes"), "t_order_${0..1}", "ds_${0..1}.t_order_${0..1}", 1), a, b))
	must.Contain(t, strings.Join(have, "\n"), "info: store: a keeps its state in each of 2 databases", have)
}

// TestExamine_foundNowhere has a table that stands in no data source by name.
func TestExamine_foundNowhere(t *testing.T) {
	dsn := database(t, healthy)
	other := database(t, "CREATE TABLE t_note (id BIGINT PRIMARY KEY); CREATE TABLE t_log (id BIGINT PRIMARY KEY)")
	const keys = "      keyGenerateStrategy: {column: id, keyGeneratorName: g}\n"
	text := strings.Replace(ruleOf(snowflakes, "    t_note:\n"+keys+"    t_gone:\n"+keys+
		"    t_log:\n      actualDataNodes: ds_1.t_log\n"+keys), "t_order_${0..1}", "ds_0.t_order_${0..1}", 1)
	have := remarks(examine(t, text, dsn, other))
	if len(have) != 1 || have[0] != "error: table t_gone: the table does not exist" {
		t.Errorf("have: %q", have)
	}
}

// late is a clock that is an hour behind.
type late struct{ spi.Clock }

func (l late) Now() time.Time { return l.Clock.Now().Add(-time.Hour) }

func TestExamine_clock(t *testing.T) {
	dsn := database(t, strings.Replace(healthy, "(1095292305367040001, 1), ", "", 1))
	have := remarks(examineAt(t, late{spi.SystemClock}, ruleOf(snowflakes), dsn))
	if len(have) != 1 || !strings.HasPrefix(have[0], "warning: clock: this machine's clock is 1h0m0s behind the server's") {
		t.Errorf("have: %q", have)
	}
}

// TestExamine_endsWithContext has a server that accepts and never answers, and a connection that
// notices its context's deadline before the context ends.
func TestExamine_endsWithContext(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	r := must.Get(rule.Parse("rule.yaml", []byte(ruleOf(snowflakes))))(t)
	late := sql.OpenDB(timedOut{})
	defer late.Close()
	for _, db := range []*sql.DB{open(t, "u:secret-word@tcp("+l.Addr().String()+")/d"), late} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		report := must.Get(doctor.Examine(ctx, db, r))(t)
		cancel()
		found := report.Problems()
		have := fmt.Sprintf("%q", found)
		if len(found) != 1 || found[0].Severity != doctor.Error || !strings.Contains(have, "did not answer in time") || strings.Contains(have, "secret-word") {
			t.Errorf("have: %s", have)
		}
	}
}

// timedOut connects to no server in time.
type timedOut struct{}

func (timedOut) Connect(context.Context) (driver.Conn, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
}

func (timedOut) Driver() driver.Driver { return nil }
