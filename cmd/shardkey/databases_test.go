package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/spi"
)

// shopTables are what the golden sessions of doctor, migrate and init look at.
const shopTables = `
CREATE TABLE customer (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY COMMENT 'of the shop', name VARCHAR(50));
CREATE TABLE t_order_0 (order_id BIGINT NOT NULL PRIMARY KEY, customer_id INT UNSIGNED NOT NULL);
CREATE TABLE t_order_1 LIKE t_order_0;
CREATE TABLE t_order_2 LIKE t_order_0;
CREATE TABLE rating (customer_id INT UNSIGNED NOT NULL, stars TINYINT, CONSTRAINT fk_rating FOREIGN KEY (customer_id) REFERENCES customer (id) ON DELETE CASCADE);
CREATE TABLE country (code CHAR(2) PRIMARY KEY);
INSERT INTO customer (name) VALUES ('first');
`

// execute runs statements on a database.
func execute(t *testing.T, dsn, text string) {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MultiStatements = true
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// sessionNow is session by the servers' clock.
func sessionNow(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(text) {
		command, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ shardkey")
		if !ok {
			continue
		}
		fmt.Fprintf(&b, "$ shardkey%s\n", command)
		if status := newProgram(strings.NewReader(""), &b, &b, spi.SystemClock).run(t.Context(), split(t, command)); status != 0 {
			fmt.Fprintf(&b, "[exit status %d]\n", status)
		}
	}
	return b.String()
}

// TestDatabases_golden compares what doctor, migrate and init print, but for what each
// server writes in its own way.
func TestDatabases_golden(t *testing.T) {
	if testserver.Each(t, TestDatabases_golden) {
		return
	}
	dsn := testserver.Database(t)
	execute(t, dsn, shopTables)
	if testserver.Has(t, testserver.KindMariaDB, "CREATE SEQUENCE") {
		execute(t, dsn, "CREATE SEQUENCE numbers")
	}
	compareDatabase(t, dsn)
}

// compareDatabase runs the golden sessions on a database with the tables of the shop.
func compareDatabase(t *testing.T, dsn string) {
	t.Helper()
	t.Chdir("testdata")
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SHOP_DSN", dsn+"?shardkeyRule=rule.yaml&parseTime=true")
	want, err := os.ReadFile("databases.txt")
	if err != nil {
		t.Fatal(err)
	}
	have := sessionNow(t, string(want))
	have = strings.NewReplacer(cfg.DBName, "shop", cfg.Addr, "127.0.0.1:3306").Replace(have)
	for expr, to := range map[string]string{
		`\bint\(1[01]\)`: "int", `\bbigint\(20\)`: "bigint", `\b\d{19}\b`: "1331129790836506623",
		`(?:MySQL|MariaDB|Vitess) [^,]+, sql_mode [A-Z_,]*`: "MySQL 9.7.0, sql_mode STRICT_TRANS_TABLES",
	} {
		have = regexp.MustCompile(expr).ReplaceAllString(have, to)
	}
	compare(t, "databases.txt", have, string(want))
}

// What migrate prints can be piped into a server while programs still use
// AUTO_INCREMENT: only -drop-auto-increment makes a statement of its end.
func TestMigrate_piped(t *testing.T) {
	if testserver.Each(t, TestMigrate_piped) {
		return
	}
	dsn := testserver.Database(t)
	execute(t, dsn, shopTables)
	t.Setenv("SHOP_DSN", dsn)
	for _, c := range []struct {
		args []string
		kept bool
	}{{nil, true}, {[]string{"-drop-auto-increment"}, false}} {
		status, stdout, stderr := runTool(t, append([]string{"migrate", "-dsn", "env:SHOP_DSN"}, c.args...)...)
		if status != 0 {
			t.Fatalf("have: status %d\n%s", status, stderr)
		}
		execute(t, dsn, stdout)
		status, stdout, stderr = runTool(t, "migrate", "-dsn", "env:SHOP_DSN", "customer", "-o", "json")
		var plan struct{ Widen, AutoIncrement []string }
		if err := json.Unmarshal([]byte(stdout), &plan); err != nil || status != 0 {
			t.Fatalf("have: status %d, %v\n%s%s", status, err, stdout, stderr)
		}
		if len(plan.Widen) > 0 || len(plan.AutoIncrement) > 0 != c.kept {
			t.Errorf("%v\nhave: %+v\nwant: a BIGINT, AUTO_INCREMENT kept: %v", c.args, plan, c.kept)
		}
	}
}

// -dsn means the same in every command that has it.
func TestDSN_sameForms(t *testing.T) {
	if testserver.Each(t, TestDSN_sameForms) {
		return
	}
	dsn := testserver.Database(t)
	execute(t, dsn, "CREATE TABLE t_order (order_id BIGINT NOT NULL PRIMARY KEY);"+
		"CREATE TABLE customer (id BIGINT AUTO_INCREMENT PRIMARY KEY)")
	rule := write(t, `rules:
- !SHARDING
  tables:
    t_order: {actualDataNodes: ds_0.t_order, keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id-assigner: cluster}}
  workerIdAssigners:
    cluster: {type: SQL, props: {namespace: orders}}
`)
	full := dsn + "?shardkeyRule=" + rule + "&parseTime=true&shardkeyServer=auto"
	t.Setenv("SOME_DSN", full)
	file := write(t, full+"\n")
	commands := [][]string{
		{"doctor", "-rule", rule}, {"migrate", "customer"}, {"init"}, {"workers", "-rule", rule},
		{"generate", "-rule", rule, "-table", "t_order"},
	}
	for _, command := range commands {
		for _, given := range []string{full, "env:SOME_DSN", "@" + file} {
			for _, name := range []string{"", "ds_0="} {
				status, stdout, stderr := runTool(t, append(command, "-dsn", name+given)...)
				found := command[0] == "doctor" && status == statusError && stderr == "" // not durable, on the tests' servers
				if strings.Contains(stdout+stderr, "shardkeyRule") || status != 0 && !found {
					t.Errorf("%s -dsn %s\nhave: status %d\n%s%s", command, name+given, status, stdout, stderr)
				}
			}
		}
		for _, wrong := range []string{"env:NOT_SET_HERE", "ds_0=env:NOT_SET_HERE", canary + "@host:3306"} {
			status, stdout, stderr := runTool(t, append(command, "-dsn", wrong)...)
			if status != statusUsage || stdout != "" || strings.Contains(stderr, canary) {
				t.Errorf("%s -dsn %s\nhave: status %d\n%s%s\nwant: wrong use", command, wrong, status, stdout, stderr)
			}
		}
		if slices.Contains(command, rule) {
			if status, _, stderr := runTool(t, append(command, "-dsn", "ds_9="+dsn)...); status != statusUsage {
				t.Errorf("%s\nhave: status %d\n%s\nwant: the rule has no data source ds_9", command, status, stderr)
			}
		}
	}
}

// TestInit_passesCheckAndDoctor makes a rule of several databases, and holds it
// against them.
func TestInit_passesCheckAndDoctor(t *testing.T) {
	if testserver.Each(t, TestInit_passesCheckAndDoctor) {
		return
	}
	const tables = "CREATE TABLE t_order_0 (id BIGINT PRIMARY KEY, x INT); CREATE TABLE t_order_1 LIKE t_order_0; CREATE TABLE t_log_202601 (id BIGINT PRIMARY KEY); CREATE TABLE t_log_202602 LIKE t_log_202601;"
	ids := testserver.StartSQL(t) // one that writes through to its disk
	execute(t, ids.DSN(), "CREATE DATABASE ids")
	cfg, err := mysql.ParseDSN(ids.DSN())
	if err != nil {
		t.Fatal(err)
	}
	cfg.DBName = "ids"
	t.Setenv("SHARDKEY_IDS_DSN", cfg.FormatDSN())
	args := []string{"init"}
	for _, name := range []string{"DS0", "DS1"} {
		dsn := testserver.Database(t)
		execute(t, dsn, tables)
		t.Setenv(name, dsn)
		args = append(args, "-dsn", "ds_"+name[2:]+"=env:"+name)
	}
	status, text, stderr := runTool(t, args...)
	if status != 0 {
		t.Fatalf("status %d, %s", status, stderr)
	}
	file := filepath.Join(t.TempDir(), "rule.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, stdout, stderr := runTool(t, "check", "-strict", file); status != 0 {
		t.Errorf("check: status %d\n%s%s\n%s", status, stdout, stderr, text)
	}
	args = append([]string{"doctor", "-rule", file, "-v"}, args[1:]...)
	if status, stdout, stderr := runTool(t, args...); status != 0 || !strings.Contains(stdout, "ok: table ds_1 t_order.id (t_order_0, t_order_1)") {
		t.Errorf("doctor: status %d\n%s%s\n%s", status, stdout, stderr, text)
	}
	for _, table := range []string{"t_order", "t_log_202603"} {
		if status, stdout, stderr := runTool(t, "generate", "-rule", file, "-table", table); status != 0 || len(stdout) < 19 {
			t.Errorf("generate: status %d\n%s%s", status, stdout, stderr)
		}
	}
}

// TestDoctor_jsonOfADatabaseThatIsAway shows no password.
func TestDoctor_jsonOfADatabaseThatIsAway(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	t.Setenv("DS", "app:"+canary+"@tcp("+l.Addr().String()+")/shop")
	status, stdout, stderr := runTool(t, "doctor", "-rule", "testdata/rule.yaml", "-dsn", "ds_0=env:DS", "-o", "json")
	if status != statusError || stderr != "" || strings.Contains(stdout, canary) {
		t.Errorf("have: status %d\n%s%s", status, stdout, stderr)
	}
	checks := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader([]byte(stdout))); d.More(); {
		var f struct{ Severity, Check, DataSource, What, Why string }
		if err := d.Decode(&f); err != nil || f.What == "" || f.Why == "" {
			t.Fatalf("have: %+v, %v", f, err)
		}
		checks[f.Severity+" "+f.Check+" "+f.DataSource] = f.What
	}
	if len(checks) != 2 || checks["error reachable ds_0"] == "" || checks["info reachable ds_1"] == "" {
		t.Errorf("have: %v", checks)
	}
}

func TestDatabases_wrongUse(t *testing.T) {
	t.Setenv("SHARDKEY_DSN", "")
	const dsn = "app:" + canary + "@tcp(127.0.0.1:1)/shop"
	for _, c := range []struct {
		args string
		want string
	}{
		{"doctor", "give the rule file with -rule"},
		{"doctor -rule testdata/rule.yaml", "give the database with -dsn"},
		{"doctor -rule testdata/rule.yaml x", "unexpected argument"},
		{"doctor -rule testdata/rule.yaml -dsn ds_9=" + dsn, "no data source \"ds_9\"; it has ds_0, ds_1; did you mean ds_0?"},
		{"doctor -rule testdata/rule.yaml -dsn ds_0=" + dsn + " -dsn ds_0=" + dsn, "-dsn ds_0=… is given twice"},
		{"doctor -rule testdata/rule.yaml -dsn " + dsn + " -dsn " + dsn, "say of each which data source it is, as -dsn ds_0=…"},
		{"doctor -rule testdata/rule.yaml -dsn env:NOT_SET_HERE", "NOT_SET_HERE is not set"},
		{"doctor -rule testdata/rule.yaml -dsn ds_0=" + canary + "@host:3306", "-dsn ds_0 is not a data source name"},
		{"doctor -rule testdata/rule.yaml -timeout 0s -dsn " + dsn, "-timeout"},
		{"migrate", "give the database with -dsn"},
		{"migrate -dsn a=" + dsn + " -dsn b=" + dsn, "give one -dsn"},
		{"init", "give the database with -dsn"},
		{"doctr", "did you mean doctor?"},
	} {
		status, stdout, stderr := runTool(t, strings.Fields(c.args)...)
		if status != statusUsage || stdout != "" || !strings.Contains(stderr, c.want) || strings.Contains(stderr, canary) {
			t.Errorf("%s\nhave: status %d\n%s%s\nwant: status 2, %s", c.args, status, stdout, stderr, c.want)
		}
	}
	for _, command := range []string{"init", "migrate"} {
		if status, stdout, stderr := runTool(t, command, "-dsn", dsn); status != statusError || stdout != "" || !strings.Contains(stderr, "tcp(127.0.0.1:1)/shop cannot be reached") || strings.Contains(stderr, canary) {
			t.Errorf("have: status %d\n%s%s", status, stdout, stderr)
		}
	}
}

// TestDocs_databases compares what the documentation shows of these commands with what
// they print.
func TestDocs_databases(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "databases.txt"))
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, file := range []string{"cli.md", "migrating.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "```text\n")[1:] {
			if session, _, _ := strings.Cut(part, "```"); strings.HasPrefix(session, "$ shardkey") {
				if shown++; !strings.Contains(string(golden), session) {
					t.Errorf("%s shows what is not printed:\n%s", file, session)
				}
			}
		}
	}
	if shown < 3 {
		t.Errorf("%d sessions are shown", shown)
	}
}
