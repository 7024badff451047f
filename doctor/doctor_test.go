package doctor_test

import (
	"cmp"
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
	"github.com/shardkey/shardkey/internal/test/cases"
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
	return examineDBs(t, text, dbs, hosts)
}

func examineDBs(t *testing.T, text string, dbs map[string]*sql.DB, hosts map[string]spi.Host) []doctor.Finding {
	t.Helper()
	r := must.Get(rule.Parse("rule.yaml", []byte(text)))(t)
	report := must.Get(doctor.ExamineAll(t.Context(), dbs, r, hosts))(t)
	fixed := func(f doctor.Finding) bool { return strings.Contains(f.String(), "worker-id 7: nothing checks") }
	if strings.Contains(text, snowflakes) && !slices.ContainsFunc(report.Findings, fixed) {
		t.Error("have: no warning of a worker ID without a lease")
	}
	return slices.DeleteFunc(report.Findings, fixed) // they are about something else
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

// find returns the first finding whose line contains want and whose fix contains fix, or nil.
func find(found []doctor.Finding, want, fix string) *doctor.Finding {
	for _, f := range found {
		if strings.Contains(line(f), want) && strings.Contains(f.Fix, fix) {
			return &f
		}
	}
	return nil
}

// database makes a database with tables. Its DSN sets a strict mode, which not every server has by
// default.
func database(t *testing.T, tables string) (dsn string) {
	t.Helper()
	dsn = testserver.Database(t) + "?sql_mode=CONCAT(@@sql_mode,%27,STRICT_TRANS_TABLES%27)"
	run(t, dsn, tables)
	return dsn
}

// run executes statements, separated by semicolons at the ends of lines.
func run(t *testing.T, dsn, text string) {
	t.Helper()
	cfg := must.Get(mysql.ParseDSN(dsn))(t)
	cfg.MultiStatements = true
	must.Get(must.Open(t, "mysql", cfg.FormatDSN()).Exec(text))(t, text)
}

const healthy = `
CREATE TABLE t_order_0 (order_id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT);
CREATE TABLE t_order_1 (order_id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT);
CREATE TABLE t_order_item (item_id BIGINT NOT NULL PRIMARY KEY, order_id BIGINT NOT NULL);
INSERT INTO t_order_0 VALUES (1095292305367040001, 1), (17, 2);
`

func TestExamine_healthySchemaHasNoRemarks(t *testing.T) {
	if testserver.Each(t, TestExamine_healthySchemaHasNoRemarks) {
		return
	}
	dsn := database(t, healthy)
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
	dsn := database(t, healthy+"CREATE TABLE t_log_202613 LIKE t_order_0; CREATE TABLE t_log_202612 LIKE t_order_0")
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
	if testserver.Each(t, TestExamine_findsEach) {
		return
	}
	t.Parallel()
	for _, cells := range cases.Read(t, "testdata/findings.txt", 6) {
		c := struct{ name, generator, fixes, want, fix, change string }{
			cells[0], cmp.Or(cells[1], snowflakes), cells[2], cells[3], cells[4], cells[5],
		}
		t.Run(c.name, func(t *testing.T) {
			if strings.Contains(c.change, "t_child (a INT DEFAULT") {
				testserver.Needs(t, testserver.MariaDB, "foreign keys between columns of two types")
			}
			dsn := database(t, "SET sql_mode = ''; "+healthy+c.change)
			text := ruleOf(c.generator)
			found := examine(t, text, dsn)
			f := find(found, c.want, c.fix)
			if f == nil || f.Why == "" {
				t.Fatalf("have:\n%q\nwant: %s, %s", found, c.want, c.fix)
			}
			for _, other := range found {
				if c.generator == snowflakes && other.Check == "reference" && f.Check != "reference" {
					t.Errorf("have: %s\nwant: that only, as the key of another actual table is no reference", other)
				}
			}
			if c.fixes != "true" {
				return
			}
			for _, f := range found {
				if strings.Contains(line(f), c.want) {
					run(t, dsn, f.Fix)
				}
			}
			if again := find(examine(t, text, dsn), c.want, ""); again != nil {
				t.Errorf("after\n%s\nhave: %s", f.Fix, again)
			}
		})
	}
}

// TestExamine_greatestKey inserts keys that are ahead of those that will be made.
// TestExamine_shardingColumns has a rule that shards by a column that the tables may not have.
func TestExamine_shardingColumns(t *testing.T) {
	if testserver.Each(t, TestExamine_shardingColumns) {
		return
	}
	dsn := database(t, "CREATE TABLE t_order_0 (order_id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL); CREATE TABLE t_order_1 LIKE t_order_0")
	for column, missing := range map[string]bool{"no_such": true, "USER_ID": false, "order_id": false} {
		found := examine(t, ruleOf(snowflakes, "      tableStrategy: {standard: {shardingColumn: "+column+", shardingAlgorithmName: m}}\n"+
			"  shardingAlgorithms: {m: {type: MOD, props: {sharding-count: 2}}}"), dsn)
		const want = "error: sharding-column t_order.order_id (t_order_0, t_order_1): the sharding column no_such does not exist"
		if have := find(found, "sharding-column", ""); (have != nil) != missing || missing && line(*have) != want {
			t.Errorf("%s\nhave: %v\nwant: %v", column, remarks(found), missing)
		}
	}
}

func TestExamine_greatestKey(t *testing.T) {
	if testserver.Each(t, TestExamine_greatestKey) {
		return
	}
	dsn := database(t, healthy)
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
			if c.want == "" {
				must.EqualSlices(t, remarks(found), nil)
				return
			}
			if find(found, c.want, c.fix) == nil {
				t.Errorf("have: %q\nwant: %s, %s", found, c.want, c.fix)
			}
		})
	}
}

// A key without any index gets one, not two.
func TestExamine_oneIndexForAKeyWithoutAny(t *testing.T) {
	if testserver.Each(t, TestExamine_oneIndexForAKeyWithoutAny) {
		return
	}
	dsn := database(t, healthy+"ALTER TABLE t_order_1 DROP PRIMARY KEY")
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
	if testserver.Each(t, TestExamine_ownState) {
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
			dsn := database(t, healthy+c.state)
			found := examineDBs(t, c.rule, map[string]*sql.DB{"": open(t, dsn)}, nil)
			if find(found, fmt.Sprintf(c.want, ""), "") == nil || find(found, "ok: table t_order.order_id", "") == nil {
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
			report, err := doctor.Examine(t.Context(), db, r, spi.Host{DSN: spi.NewSecret(dsn)})
			held := find(report.Findings, "1 of 1024 worker IDs are held", "") != nil
			if err != nil || find(report.Findings, c.want, "") == nil || c.name == "leases" && !held {
				t.Errorf("with a host\nhave: %q, %v\nwant: %s", report.Findings, err, c.want)
			}
		})
	}
}

// What the user may not see is a finding of that table, and everything else is examined.
func TestExamine_partialPrivileges(t *testing.T) {
	if testserver.Each(t, TestExamine_partialPrivileges) {
		return
	}
	dsn := database(t, "CREATE TABLE t_order_0 (order_id INT NOT NULL PRIMARY KEY); "+
		"CREATE TABLE t_order_1 (order_id INT NOT NULL AUTO_INCREMENT PRIMARY KEY)")
	own := user(t, dsn, "GRANT INSERT (order_id) ON DB.t_order_0 TO USER", "GRANT SELECT, INSERT ON DB.t_order_1 TO USER")
	var have []string
	for _, f := range examineDBs(t, ruleOf(snowflakes), map[string]*sql.DB{"": open(t, own)}, nil) {
		if f.Severity != doctor.OK {
			have = append(have, fmt.Sprint(f.Severity, " ", f.Check, " ", f.Actual))
		}
	}
	want := []string{"warning rights [t_order_0]", "error key-type [t_order_0 t_order_1]", "info auto-increment [t_order_1]"}
	must.EqualSlices(t, have, want)
}

// A pool is left as it was: no connection is kept, and none is left with another session.
func TestExamine_leavesThePool(t *testing.T) {
	dsn := database(t, healthy)
	db := open(t, dsn)
	db.SetMaxOpenConns(1)
	mode := func() (mode string) {
		must.Do(t, db.QueryRow("SELECT @@SESSION.sql_mode").Scan(&mode))
		return mode
	}
	before := mode()
	examineDBs(t, leased(""), map[string]*sql.DB{"": db}, nil)
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
		report, err := doctor.ExamineAll(t.Context(), c.dbs, c.rule, nil)
		if typed := (*rule.Error)(nil); err == nil || errors.As(err, &typed) != c.typed || len(report.Findings) > 0 {
			t.Errorf("%s\nhave: %v, %v\nwant: an error", c.name, report, err)
		}
	}
}

// A data source that no database is given for is reported.
func TestExamineAll_notGiven(t *testing.T) {
	dsn := database(t, healthy)
	text := strings.Replace(ruleOf(snowflakes), "t_order_$", "ds_${0..1}.t_order_$", 1)
	have := remarks(examineDBs(t, text, map[string]*sql.DB{"DS_1": open(t, dsn)}, nil))
	if len(have) != 1 || have[0] != "info: reachable ds_0: it was not examined: there is no database for it" {
		t.Errorf("have: %q", have)
	}
}
