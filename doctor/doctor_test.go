package doctor_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/doctor"
	_ "github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// ruleOf is a rule with one table t_order of two actual ones and these props.
func ruleOf(generator string, more ...string) string {
	return `
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: t_order_${0..1}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: g}
` + strings.Join(more, "") + `
  keyGenerators:
    g: ` + generator
}

const snowflakes = "{type: SNOWFLAKE, props: {worker-id: 7}}"

// open opens a database with go-sql-driver.
func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	cfg := must.Get(mysql.ParseDSN(dsn))(t)
	cfg.Logger = &mysql.NopLogger{}
	connector := must.Get(mysql.NewConnector(cfg))(t)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// examine examines databases with their hosts, as the command-line tool does.
func examine(t *testing.T, text string, dsns ...string) []doctor.Finding {
	t.Helper()
	return examineAt(t, spi.SystemClock, text, dsns...)
}

func examineAt(t *testing.T, clock spi.Clock, text string, dsns ...string) []doctor.Finding {
	t.Helper()
	dbs, hosts := map[string]*sql.DB{}, map[string]spi.Host{}
	for i, dsn := range dsns {
		name := ""
		if len(dsns) > 1 {
			name = fmt.Sprintf("ds_%d", i)
		}
		dbs[name], hosts[name] = open(t, dsn), spi.Host{DSN: spi.NewSecret(dsn), Clock: clock}
	}
	return examineDBs(t, text, dbs, doctor.Options{Hosts: hosts})
}

func examineDBs(t *testing.T, text string, dbs map[string]*sql.DB, opts ...doctor.Options) []doctor.Finding {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := must.Get(rule.Parse("rule.yaml", []byte(text)))(t)
	report := must.Get(doctor.ExamineAll(ctx, dbs, r, opts...))(t)
	return report.Findings
}

func line(f doctor.Finding) string { return string(f.Severity) + ": " + f.String() }

// remarks are the findings that are not ok, one a line.
func remarks(found []doctor.Finding) (list []string) {
	for _, f := range found {
		if f.Severity != doctor.OK {
			list = append(list, line(f))
		}
	}
	return list
}

// database makes a database. Its DSN sets a strict mode, which not every server has by default.
func database(t *testing.T) string {
	t.Helper()
	return testserver.Database(t) + "?sql_mode=CONCAT(@@sql_mode,%27,STRICT_TRANS_TABLES%27)"
}

// run executes statements, separated by semicolons at the ends of lines.
func run(t *testing.T, dsn, text string) {
	t.Helper()
	cfg := must.Get(mysql.ParseDSN(dsn))(t)
	cfg.MultiStatements = true
	db := must.Get(sql.Open("mysql", cfg.FormatDSN()))(t)
	defer db.Close()
	must.Get(db.Exec(text))(t, text)
}

const healthy = `
CREATE TABLE t_order_0 (order_id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT);
CREATE TABLE t_order_1 (order_id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT);
CREATE TABLE t_order_item (item_id BIGINT NOT NULL PRIMARY KEY, order_id BIGINT NOT NULL);
INSERT INTO t_order_0 VALUES (1095292305367040001, 1), (17, 2);
`

func TestExamine_healthySchemaHasNoRemarks(t *testing.T) {
	if testserver.EachAndOldest(t, TestExamine_healthySchemaHasNoRemarks) {
		return
	}
	dsn := database(t)
	run(t, dsn, healthy)
	found := examine(t, ruleOf(snowflakes), dsn)
	if list := remarks(found); len(list) > 0 || len(found) < 2 {
		t.Errorf("have: %d findings\n%s\nwant: none but ok", len(found), strings.Join(list, "\n"))
	}
}

// A pattern for tables that come at run time doesn't help a table whose name isn't a date of it.
func TestExamine_nameThatNoPatternMatches(t *testing.T) {
	if testserver.Each(t, TestExamine_nameThatNoPatternMatches) {
		return
	}
	dsn := database(t)
	run(t, dsn, healthy+"CREATE TABLE t_log_202613 LIKE t_order_0; CREATE TABLE t_log_202612 LIKE t_order_0")
	const logs = "    t_log: {actualDataNodes: 't_log_${yyyyMM}', keyGenerateStrategy: {column: order_id, keyGeneratorName: g}}\n"
	for _, f := range examine(t, ruleOf(snowflakes, logs), dsn) {
		if f.Check == "unlisted" && (f.Actual[0] != "t_log_202613" || !strings.HasPrefix(f.Fix, "correct the name, which no pattern of t_log matches")) {
			t.Errorf("%v\nhave: %s\nwant: the advice to correct the name", f, f.Fix)
		}
	}
}

// TestExamine_findsEach provokes each finding about tables, and, where the fix is SQL,
// runs it and looks again.
func TestExamine_findsEach(t *testing.T) {
	if testserver.EachAndOldest(t, TestExamine_findsEach) {
		return
	}
	t.Parallel()
	uuids := "{type: UUID, props: {}}"
	for _, c := range []struct {
		name, generator string
		change          string // of the healthy schema
		want            string // part of the line
		fix             string // part of it
		fixes           bool   // the fix is SQL that ends the finding
	}{
		{"a table is missing", snowflakes, "DROP TABLE t_order_1", "error: table t_order (t_order_1): the table does not exist", "LIKE `t_order_0`", true},
		{"a shard that is not listed", snowflakes, "CREATE TABLE t_order_2 LIKE t_order_0", "warning: unlisted t_order.order_id (t_order_2)", "${*}", false},
		{"the key column is missing", snowflakes, "ALTER TABLE t_order_1 CHANGE order_id order_no BIGINT NOT NULL", "error: key-column t_order.order_id (t_order_1)", "ADD COLUMN `order_id` BIGINT", false},
		{"a key column of INT", snowflakes, "ALTER TABLE t_order_0 MODIFY order_id INT UNSIGNED NOT NULL COMMENT 'it''s'; ALTER TABLE t_order_1 MODIFY order_id INT NOT NULL",
			"error: key-type t_order.order_id (t_order_0): the column is int", "`order_id` bigint unsigned NOT NULL COMMENT 'it''s'", true},
		{"a key column of DECIMAL", snowflakes, "ALTER TABLE t_order_0 MODIFY order_id DECIMAL(18,0) NOT NULL", "the column is decimal(18,0)", "bigint", true},
		{"a key column of CHAR for integers", snowflakes, "ALTER TABLE t_order_0 MODIFY order_id CHAR(18) NOT NULL", "the column is char(18)", "char(19)", true},
		{"a key column of VARCHAR for UUIDs", uuids, "ALTER TABLE t_order_0 MODIFY order_id VARCHAR(36); ALTER TABLE t_order_1 MODIFY order_id VARCHAR(30)",
			"t_order.order_id (t_order_1): the column is varchar(30)", "varchar(32)", true},
		{"a BIGINT for UUIDs", uuids, "ALTER TABLE t_order_1 MODIFY order_id VARCHAR(36)", "t_order.order_id (t_order_0): the column is bigint", "varchar(32)", true},
		{"NANOIDs without case", "{type: NANOID}", "DELETE FROM t_order_0; ALTER TABLE t_order_0 MODIFY order_id VARCHAR(21) COLLATE utf8mb4_general_ci; ALTER TABLE t_order_1 MODIFY order_id VARCHAR(21) COLLATE utf8mb4_bin",
			"warning: key-type t_order.order_id (t_order_0): the column's collation utf8mb4_general_ci", "ascii_bin", true},
		{"no unique key", snowflakes, "ALTER TABLE t_order_1 DROP PRIMARY KEY, ADD KEY (order_id)", "warning: unique t_order.order_id (t_order_1)", "ADD PRIMARY KEY", true},
		{"no unique key in addition to another primary key", snowflakes, "ALTER TABLE t_order_1 DROP PRIMARY KEY, ADD PRIMARY KEY (user_id), ADD KEY (order_id)", "warning: unique t_order.order_id (t_order_1)", "ADD UNIQUE KEY", true},
		{"a composite key", snowflakes, "ALTER TABLE t_order_1 DROP PRIMARY KEY, ADD PRIMARY KEY (order_id, user_id)", "info: unique t_order.order_id (t_order_1): the key is unique only together", "", false},
		{"AUTO_INCREMENT", snowflakes, "ALTER TABLE t_order_1 MODIFY order_id BIGINT NOT NULL AUTO_INCREMENT COMMENT 'no AUTO_INCREMENT'", "info: auto-increment t_order.order_id (t_order_1): the key column still",
			"NOT NULL COMMENT 'no AUTO_INCREMENT';", true},
		{"AUTO_INCREMENT elsewhere", snowflakes, "ALTER TABLE t_order_1 ADD n INT NOT NULL AUTO_INCREMENT, ADD KEY (n)", "info: auto-increment t_order.order_id (t_order_1): column n", "", false},
		{"a narrow column by name", snowflakes, "ALTER TABLE t_order_item MODIFY order_id INT NOT NULL", "warning: reference t_order.order_id (t_order_0, t_order_1): from its name a reference to the key: column order_id of t_order_item is int",
			"ALTER TABLE `t_order_item` MODIFY `order_id` bigint NOT NULL", true},
		{"narrow columns of other names", snowflakes, "ALTER TABLE t_order_item ADD actor INT UNSIGNED, ADD flag TINYINT, ADD big BIGINT; CREATE TABLE t_log_1 (link MEDIUMINT); CREATE TABLE t_log_2 (link MEDIUMINT)",
			"info: reference: integer columns below BIGINT whose names refer to no key: t_log_….link (mediumint", "make those that hold a key BIGINT", false},
		{"a narrow foreign key", snowflakes, "SET foreign_key_checks = 0; ALTER TABLE t_order_0 MODIFY order_id INT NOT NULL; CREATE TABLE t_child (a INT, CONSTRAINT f FOREIGN KEY (a) REFERENCES t_order_0 (order_id))",
			"error: key-type t_order.order_id (t_order_0)", "ADD CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `t_order_0` (`order_id`)", true},
		{"a foreign key of another type", snowflakes, "DROP TABLE t_order_0; SET foreign_key_checks = 0; CREATE TABLE t_child (a INT DEFAULT 3, CONSTRAINT f FOREIGN KEY (a) REFERENCES t_order_0 (order_id) ON DELETE CASCADE); CREATE TABLE t_order_0 LIKE t_order_1",
			"error: foreign-key t_order.order_id (t_order_0): the foreign key f of column a of t_child is int", "MODIFY `a` bigint DEFAULT 3;\nALTER TABLE `t_child` ADD CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `t_order_0` (`order_id`) ON DELETE CASCADE", true},
		{"no index leads with the key", snowflakes, "ALTER TABLE t_order_1 DROP PRIMARY KEY, ADD PRIMARY KEY (user_id, order_id)", "info: max-key t_order.order_id (t_order_1): no index begins", "ADD INDEX", true},
		{"a generated key column", snowflakes, "DROP TABLE t_order_1; CREATE TABLE t_order_1 (a BIGINT PRIMARY KEY, order_id BIGINT AS (a + 1) VIRTUAL)", "error: key-column t_order.order_id (t_order_1): the server computes the column", "", false},
		{"a trigger", snowflakes, "CREATE TRIGGER tr BEFORE INSERT ON t_order_0 FOR EACH ROW SET NEW.order_id = 5", "info: trigger t_order.order_id (t_order_0): the trigger tr", "", false},
		{"a view", snowflakes, "RENAME TABLE t_order_1 TO x; CREATE VIEW t_order_1 AS SELECT * FROM x", "info: table t_order.order_id (t_order_1): it is a view", "", false},
		{"the logical table itself", snowflakes, "CREATE TABLE t_order LIKE t_order_0", "info: unlisted t_order.order_id: the rule does not list this table", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.Contains(c.change, "t_child (a INT DEFAULT") {
				testserver.Needs(t, testserver.MariaDB, "foreign keys between columns of two types")
			}
			if strings.Contains(c.change, "VIRTUAL") {
				testserver.Needs(t, testserver.Newer, "generated columns")
			}
			dsn := database(t)
			run(t, dsn, "SET sql_mode = ''; "+healthy+c.change)
			text := ruleOf(c.generator)
			found := examine(t, text, dsn)
			i := slices.IndexFunc(found, func(f doctor.Finding) bool { return strings.Contains(line(f), c.want) })
			if i < 0 {
				t.Fatalf("have:\n%s\nwant: %s", strings.Join(remarks(found), "\n"), c.want)
			}
			f := found[i]
			for _, other := range found {
				if c.generator == snowflakes && other.Check == "reference" && f.Check != "reference" {
					t.Errorf("have: %s\nwant: that only, as the key of another actual table is no reference", other)
				}
			}
			if !strings.Contains(f.Fix, c.fix) || f.Why == "" {
				t.Errorf("have: %s\nwhy: %s\nwant: %s", f.Fix, f.Why, c.fix)
			}
			if !c.fixes {
				return
			}
			for _, f := range found {
				if strings.Contains(line(f), c.want) {
					run(t, dsn, f.Fix)
				}
			}
			for _, f := range examine(t, text, dsn) {
				if strings.Contains(line(f), c.want) {
					t.Errorf("after\n%s\nhave: %s", found[i].Fix, f)
				}
			}
		})
	}
}

// TestExamine_greatestKey inserts keys that are ahead of those that will be made.
func TestExamine_greatestKey(t *testing.T) {
	if testserver.EachAndOldest(t, TestExamine_greatestKey) {
		return
	}
	dsn := database(t)
	run(t, dsn, healthy)
	epoch := time.Date(2016, 11, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		at   time.Duration // from now
		want string
		fix  string
	}{
		{"a moment ago", -time.Second, "", ""},
		{"8 hours ahead", 8*time.Hour - time.Minute, "error: max-key t_order.order_id (t_order_0): the greatest key", "epoch: 2016-11-01T00:00:00+08:00"},
		{"five and a half", 5*time.Hour + 29*time.Minute, "in the future", "epoch: 2016-11-01T00:00:00+05:30"},
		{"years ahead", 3 * 365 * 24 * time.Hour, "by the layout and epoch of generator g", "earlier epoch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			key := time.Now().Add(c.at).Sub(epoch).Milliseconds() << 22
			run(t, dsn, fmt.Sprintf("DELETE FROM t_order_0; INSERT INTO t_order_0 VALUES (%d, 1)", key))
			found := examine(t, ruleOf(snowflakes), dsn)
			list := remarks(found)
			if c.want == "" {
				if len(list) > 0 {
					t.Errorf("have: %s", list)
				}
				return
			}
			i := slices.IndexFunc(found, func(f doctor.Finding) bool { return strings.Contains(line(f), c.want) })
			if i < 0 || !strings.Contains(found[i].Fix, c.fix) {
				t.Errorf("have: %q\nwant: %s, %s", found, c.want, c.fix)
			}
		})
	}
}

// A key without any index gets one, not two.
func TestExamine_oneIndexForAKeyWithoutAny(t *testing.T) {
	if testserver.EachAndOldest(t, TestExamine_oneIndexForAKeyWithoutAny) {
		return
	}
	dsn := database(t)
	run(t, dsn, healthy+"ALTER TABLE t_order_1 DROP PRIMARY KEY")
	var fixes []string
	for _, f := range examine(t, ruleOf(snowflakes), dsn) {
		if strings.Contains(f.Fix, "ADD ") {
			fixes = append(fixes, f.Fix)
		}
	}
	if len(fixes) != 1 || !strings.Contains(fixes[0], "ADD PRIMARY KEY") {
		t.Errorf("have: %q\nwant: a primary key", fixes)
	}
}

// The state in the application's own database is examined with and without its host, also while the
// program that opened it generates keys.
func TestExamine_ownState(t *testing.T) {
	if testserver.EachAndOldest(t, TestExamine_ownState) {
		return
	}
	const worker = "CREATE TABLE shardkey_worker (namespace VARCHAR(64), worker_id INT, owner VARBINARY(64), " +
		"reserved_until BIGINT, free_from BIGINT, holder VARCHAR(255), since BIGINT, PRIMARY KEY (namespace, worker_id));"
	for _, c := range []struct{ name, rule, state, want string }{
		{"leases", leased(""), worker + "ALTER TABLE shardkey_worker ENGINE=MyISAM", "error: leases: a, table shardkey_worker%s: its engine is MyISAM"},
		{"segments", ruleOf(segments), "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) PRIMARY KEY, max_id BIGINT, step INT)",
			"error: segments: g, table leaf_alloc%s: it has no row"},
		{"tickets", ruleOf(tickets), "", "error: tickets: g, table Tickets64%s: the table does not exist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dsn := database(t)
			run(t, dsn, healthy+c.state)
			has := func(found []doctor.Finding, want string) bool {
				return slices.ContainsFunc(found, func(f doctor.Finding) bool { return strings.Contains(line(f), want) })
			}
			found := examineDBs(t, c.rule, map[string]*sql.DB{"": open(t, dsn)})
			if !has(found, fmt.Sprintf(c.want, "")) || !has(found, "ok: table t_order.order_id") {
				t.Errorf("without a host\nhave: %q\nwant: %s", found, c.want)
			}
			file := filepath.Join(t.TempDir(), "rule.yaml")
			must.Do(t, os.WriteFile(file, []byte(c.rule), 0o600))
			db := must.Get(sql.Open("shardkey", dsn+"&shardkeyRule="+file))(t)
			defer db.Close()
			r := must.Get(rule.Load(file))(t)
			if c.name == "leases" {
				must.Get(db.Exec("INSERT INTO t_order_0 (user_id) VALUES (1)"))(t)
			}
			cfg := must.Get(mysql.ParseDSN(dsn))(t)
			c.want = fmt.Sprintf(c.want, fmt.Sprintf(" at tcp(%s)/%s", cfg.Addr, cfg.DBName))
			hosts := map[string]spi.Host{"": {DSN: spi.NewSecret(dsn)}}
			report, err := doctor.Examine(t.Context(), db, r, doctor.Options{Hosts: hosts})
			if err != nil || !has(report.Findings, c.want) || c.name == "leases" && !has(report.Findings, "1 of 1024 worker IDs are held") {
				t.Errorf("with a host\nhave: %q, %v\nwant: %s", report.Findings, err, c.want)
			}
		})
	}
}

// What the user may not see is a finding of that table, and everything else is examined.
func TestExamine_partialPrivileges(t *testing.T) {
	if testserver.EachAndOldest(t, TestExamine_partialPrivileges) {
		return
	}
	dsn := database(t)
	run(t, dsn, "CREATE TABLE t_order_0 (order_id INT NOT NULL PRIMARY KEY); "+
		"CREATE TABLE t_order_1 (order_id INT NOT NULL AUTO_INCREMENT PRIMARY KEY)")
	own := user(t, dsn, "GRANT INSERT (order_id) ON DB.t_order_0 TO USER", "GRANT SELECT, INSERT ON DB.t_order_1 TO USER")
	var have []string
	for _, f := range examineDBs(t, ruleOf(snowflakes), map[string]*sql.DB{"": open(t, own)}) {
		if f.Severity != doctor.OK {
			have = append(have, fmt.Sprint(f.Severity, " ", f.Check, " ", f.Actual))
		}
	}
	want := []string{"warning rights [t_order_0]", "error key-type [t_order_0 t_order_1]", "info auto-increment [t_order_1]"}
	must.EqualSlices(t, have, want)
}

// A pool is left as it was: no connection is kept, and none is left with another session.
func TestExamine_leavesThePool(t *testing.T) {
	dsn := database(t)
	run(t, dsn, healthy)
	db := open(t, dsn)
	db.SetMaxOpenConns(1)
	mode := func() (mode string) {
		must.Do(t, db.QueryRow("SELECT @@SESSION.sql_mode").Scan(&mode))
		return mode
	}
	before := mode()
	examineDBs(t, leased(""), map[string]*sql.DB{"": db})
	if after := mode(); after != before || before == "" || db.Stats().InUse != 0 {
		t.Errorf("have: sql_mode %q, %d connections in use\nwant: %q, 0", after, db.Stats().InUse, before)
	}
}

func TestExamine_wrongArguments(t *testing.T) {
	r := must.Get(rule.Parse("rule.yaml", []byte(strings.Replace(ruleOf(snowflakes), "t_order_$", "ds_${0..1}.t_order_$", 1))))(t)
	connector := must.Get(mysql.NewConnector(mysql.NewConfig()))(t)
	db := sql.OpenDB(connector)
	defer db.Close()
	for _, c := range []struct {
		name  string
		dbs   map[string]*sql.DB
		rule  *rule.Rule
		typed bool
	}{
		{"no rule", map[string]*sql.DB{"": db}, nil, true},
		{"an empty rule", map[string]*sql.DB{"": db}, new(rule.Rule), true},
		{"no database", map[string]*sql.DB{"": nil}, r, false},
		{"no databases", nil, r, false},
		{"another data source", map[string]*sql.DB{"ds_7": db}, r, true},
		{"one without a name among several", map[string]*sql.DB{"": db, "ds_1": db}, r, false},
	} {
		report, err := doctor.ExamineAll(t.Context(), c.dbs, c.rule)
		if typed := (*rule.Error)(nil); err == nil || errors.As(err, &typed) != c.typed || len(report.Findings) > 0 {
			t.Errorf("%s\nhave: %v, %v\nwant: an error", c.name, report, err)
		}
	}
}

// A data source that no database is given for is reported.
func TestExamineAll_notGiven(t *testing.T) {
	dsn := database(t)
	run(t, dsn, healthy)
	text := strings.Replace(ruleOf(snowflakes), "t_order_$", "ds_${0..1}.t_order_$", 1)
	have := remarks(examineDBs(t, text, map[string]*sql.DB{"DS_1": open(t, dsn)}))
	if len(have) != 1 || have[0] != "info: reachable ds_0: it was not examined: there is no database for it" {
		t.Errorf("have: %q", have)
	}
}
