package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// shopTables creates the tables for the sessions of doctor, migrate and init.
const shopTables = `
CREATE TABLE customer (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY COMMENT 'of the shop', name VARCHAR(50));
CREATE TABLE t_order_0 (order_id BIGINT NOT NULL PRIMARY KEY, customer_id INT UNSIGNED NOT NULL);
CREATE TABLE t_order_1 LIKE t_order_0;
CREATE TABLE t_order_2 LIKE t_order_0;
CREATE TABLE rating (customer_id INT UNSIGNED NOT NULL, stars TINYINT,
  CONSTRAINT fk_rating FOREIGN KEY (customer_id) REFERENCES customer (id) ON DELETE CASCADE);
CREATE TABLE country (code CHAR(2) PRIMARY KEY);
INSERT INTO customer (name) VALUES ('first');
`

// execute runs statements on a database.
func execute(t *testing.T, dsn, text string) {
	t.Helper()
	cfg := parsed(t, dsn)
	cfg.MultiStatements = true
	must.Get(must.Open(t, "mysql", cfg.FormatDSN()).Exec(text))(t, text)
}

func parsed(t *testing.T, dsn string) *mysql.Config {
	t.Helper()
	return must.Get(mysql.ParseDSN(dsn))(t)
}

// shop returns a database with the tables of the shop.
func shop(t *testing.T) (dsn string) {
	t.Helper()
	dsn = testserver.Database(t)
	execute(t, dsn, shopTables)
	return dsn
}

// TestDatabases_golden compares the output of doctor, migrate and init with databases.txt,
// without the parts that differ between servers.
func TestDatabases_golden(t *testing.T) {
	if testserver.Each(t, TestDatabases_golden) {
		return
	}
	dsn := shop(t)
	if testserver.Has(t, testserver.MariaDB, "CREATE SEQUENCE") {
		execute(t, dsn, "CREATE SEQUENCE numbers")
	}
	compareDatabase(t, dsn, "databases.txt")
}

// compareDatabase runs a golden session on a database.
func compareDatabase(t *testing.T, dsn, file string) {
	t.Helper()
	t.Chdir("testdata")
	t.Setenv(ruleVariable, "")
	t.Setenv("SHOP_DSN", dsn+"?shardkeyRule=rule.yaml&parseTime=true&sql_mode=%27STRICT_TRANS_TABLES%27")
	want := must.Get(os.ReadFile(file))(t)
	cfg := parsed(t, dsn)
	have := session(t, string(want), systemClock)
	have = strings.NewReplacer(cfg.DBName, "shop", cfg.Addr, "127.0.0.1:3306").Replace(have)
	for expr, to := range map[string]string{
		`\bint\(1[01]\)`: "int", `\bbigint\(20\)`: "bigint", `\b\d{19}\b`: "1331129790836506623",
		`(?:MySQL|MariaDB|Vitess) [^,]+, sql_mode [A-Z_,]*`: "MySQL 9.7.0, sql_mode STRICT_TRANS_TABLES",
	} {
		have = regexp.MustCompile(expr).ReplaceAllString(have, to)
	}
	compare(t, file, escaped(have), string(want))
}

// escaped escapes the characters that a test's file should not have.
func escaped(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "<%U>", r)
		}
	}
	return b.String()
}

// hostileTables have names that end a line, a comment or quotes, or that control a terminal. The
// vertical bars are backquotes.
var hostileTables = strings.NewReplacer("|", "`", "LF", "\n", "ESC", "\x1b]0;title\a", "RLO", "\u202e", "CSI", "\u009b1m",
	"LS", "\u2028").Replace(`
CREATE TABLE precious (id CHAR(1) PRIMARY KEY);
CREATE TABLE r_0 (|idLFDROP TABLE precious; #x| BIGINT AUTO_INCREMENT PRIMARY KEY, v INT);
CREATE TABLE r_1 LIKE r_0;
CREATE TABLE customer (id INT AUTO_INCREMENT PRIMARY KEY, |noteLFDROP TABLE precious; #x| INT);
CREATE TABLE |aLF  b: {column: id}LF#ESC| (id INT AUTO_INCREMENT PRIMARY KEY, |*/ # -- RLO| INT);
CREATE TABLE |c*#\"'LSCSI| (|d||ESC| SMALLINT AUTO_INCREMENT PRIMARY KEY, customer_id INT);
CREATE TABLE |childLFDROP TABLE precious; #x| (
  |xLF  CONSTRAINT ||f|| FOREIGN KEY (||a||); DROP TABLE precious; #| INT,
  |yLF  ||z|| int NOT NULL; DROP TABLE precious; #| INT, customer_id INT, z INT,
  CONSTRAINT |fLFDROP TABLE precious; #ESC| FOREIGN KEY (customer_id) REFERENCES customer (id) ON DELETE SET NULL,
  CONSTRAINT g FOREIGN KEY (z) REFERENCES customer (id) ON UPDATE CASCADE);
CREATE TABLE kind (k ENUM('aLFDROP TABLE precious; #', 'ESC') PRIMARY KEY);
`)

// TestHostileNames prints names that were made to be executed, or to control a terminal. Outside of
// quotes no character of theirs does either. The script of migrate changes these tables, and no other.
func TestHostileNames(t *testing.T) {
	if testserver.Each(t, TestHostileNames) {
		return
	}
	dsn := testserver.Database(t)
	execute(t, dsn, hostileTables)
	compareDatabase(t, dsn, "hostile.txt")
	status, content, stderr := runTool(t, "init", "--dsn", dsn)
	must.Equal(t, status, 0, stderr)
	r := must.Get(rule.Parse("rule.yaml", []byte(content)))(t, content)
	if tables := r.Tables(); len(tables) != 1 || tables[0].Logical != "customer" {
		t.Errorf("have: %+v\nwant: customer only", tables)
	}
	for _, args := range [][]string{{"migrate"}, {"migrate", "--drop-auto-increment"}} {
		status, script, stderr := runTool(t, append(args, "--dsn", dsn)...)
		must.Equal(t, status, 0, stderr)
		execute(t, dsn, script)
	}
	columns := "SELECT GROUP_CONCAT(DATA_TYPE, EXTRA ORDER BY DATA_TYPE) FROM information_schema.COLUMNS" +
		" WHERE TABLE_SCHEMA = DATABASE() AND (COLUMN_KEY = 'PRI' OR COLUMN_NAME = 'customer_id')"
	var types string
	must.Do(t, must.Open(t, "mysql", dsn).QueryRow(columns).Scan(&types))
	must.Equal(t, types, "bigint,bigint,bigint,bigint,bigint,bigint,bigint,char,enum")
}

// TestHostileNames_ofStatements passes names in statements and arguments to the commands without a
// database.
func TestHostileNames_ofStatements(t *testing.T) {
	const name = "t\nDROP TABLE precious; #\x1b]0;x\a\u202e\u009b"
	file := write(t, "INSERT INTO t_order VALUES (`"+name+"`);\nINSERT INTO `"+name+"` (a) VALUES (`"+name+"`);\n"+
		"INSERT INTO `"+name+"`.t_order (user_id) VALUES (1);\nUPDATE t_order SET order_id = `"+name+"`;\nINSERT INTO t_order (order_id) SELECT * FROM `"+name+"`")
	must.Do(t, os.Rename(file, file+".sql"))
	t.Chdir("testdata")
	for _, args := range [][]string{
		{"plan", "INSERT INTO `" + name + "` (a) VALUES (1)"},
		{"plan", "INSERT INTO t_order (`" + name + "`, order_id) VALUES (1, `" + name + "`)"},
		{"plan", "INSERT INTO `" + name + "`.t_order (user_id) VALUES (1)"},
		{"plan", "--columns", name, "INSERT INTO t_order VALUES (1)"},
		{"plan", "INSERT INTO t_order (user_id) SELECT `" + name + "` FROM t"},
		{"lint", file + ".sql"},
		{"decode", name}, {"decode", "--generator", name, "1"},
		{"generate", "--table", name}, {"generate", "--type", name}, {"generate", "--type", "UUID", "--prop", name + "=1"},
		{"workers", name}, {"check", name}, {"init", "--from", name},
	} {
		for _, output := range []string{"text", "json"} {
			_, stdout, stderr := runTool(t, append(args, "-o", output)...)
			before, sent, _ := strings.Cut(stdout, "\nsent") // in which the name is quoted as before
			_, after, _ := strings.Cut(sent, "\nassumed")
			if have := before + after + stderr; have != escaped(have) {
				t.Errorf("%q\nhave: %q\nwant: printable characters", args, have)
			}
		}
	}
}

// TestDocs_databases compares the output of these commands in the documentation with
// databases.txt.
func TestDocs_databases(t *testing.T) {
	golden, shown := page(t, "cmd/shardkey/testdata/databases.txt"), 0
	for _, path := range []string{"docs/reference/cli.md", "docs/guides/from-auto-increment.md"} {
		for _, part := range strings.Split(page(t, path), "```text\n")[1:] {
			if session, _, _ := strings.Cut(part, "```"); strings.HasPrefix(session, "$ shardkey") {
				shown++
				for part := range strings.SplitSeq(session, "\n…\n") { // lines that the page leaves out
					if !strings.Contains(golden, part) {
						t.Errorf("%s shows what is not printed:\n%s", path, part)
					}
				}
			}
		}
	}
	if shown < 3 {
		t.Errorf("%d sessions are shown", shown)
	}
}

// The output of migrate can be piped into a server while programs still use
// AUTO_INCREMENT. Only --drop-auto-increment removes AUTO_INCREMENT.
func TestMigrate_piped(t *testing.T) {
	if testserver.Each(t, TestMigrate_piped) {
		return
	}
	dsn := shop(t)
	t.Setenv("SHOP_DSN", dsn)
	for _, c := range []struct {
		args []string
		kept bool
	}{{nil, true}, {[]string{"--drop-auto-increment"}, false}} {
		status, stdout, stderr := runTool(t, append([]string{"migrate", "--dsn", "env:SHOP_DSN"}, c.args...)...)
		if status != 0 {
			t.Fatalf("have: status %d\n%s", status, stderr)
		}
		execute(t, dsn, stdout)
		status, stdout, stderr = runTool(t, "migrate", "--dsn", "env:SHOP_DSN", "customer", "-o", "json")
		var plan struct{ Widen, AutoIncrement []string }
		if err := json.Unmarshal([]byte(stdout), &plan); err != nil || status != 0 {
			t.Fatalf("have: status %d, %v\n%s%s", status, err, stdout, stderr)
		}
		if len(plan.Widen) > 0 || len(plan.AutoIncrement) > 0 != c.kept {
			t.Errorf("%v\nhave: %+v\nwant: a BIGINT, AUTO_INCREMENT kept: %v", c.args, plan, c.kept)
		}
	}
}

// TestDSN_sameInEachCommand passes the same values of --dsn to each command that connects.
func TestDSN_sameInEachCommand(t *testing.T) {
	if testserver.Each(t, TestDSN_sameInEachCommand) {
		return
	}
	dsn := testserver.Database(t)
	execute(t, dsn, "CREATE TABLE t_order (order_id BIGINT NOT NULL PRIMARY KEY);"+
		"CREATE TABLE customer (id BIGINT AUTO_INCREMENT PRIMARY KEY)")
	file := write(t, strings.NewReplacer("t_order:", "t_order:\n      actualDataNodes: ds_0.t_order\n      ", "$A",
		"{type: SQL, props: {namespace: orders}}").Replace(clusterRule))
	full := dsn + "?shardkeyRule=" + file + "&parseTime=true&shardkeyServer=auto"
	t.Setenv("SOME_DSN", full)
	t.Setenv(ruleVariable, file)
	inFile := write(t, full+"\n")
	for _, command := range [][]string{
		{"doctor"}, {"migrate", "customer"}, {"init"}, {"workers"}, {"generate", "--table", "t_order"},
	} {
		for _, given := range []string{
			full, "env:SOME_DSN", "@" + inFile, "ds_0=" + full, "ds_0=env:SOME_DSN", "ds_0=@" + inFile,
		} {
			status, stdout, stderr := runTool(t, append(command, "--dsn", given)...)
			found := command[0] == "doctor" && status == statusError && stderr == "" // the tests' servers aren't durable
			if strings.Contains(stdout+stderr, "shardkeyRule") || status != 0 && !found {
				t.Errorf("%s --dsn %s\nhave: status %d\n%s%s", command, given, status, stdout, stderr)
			}
		}
	}
}

// The parameters of an application's DSN don't change what init, migrate and doctor find.
func TestDSN_parametersChangeNothing(t *testing.T) {
	if testserver.Each(t, TestDSN_parametersChangeNothing) {
		return
	}
	dsn := testserver.Database(t)
	execute(t, dsn, "CREATE TABLE customer (id BIGINT AUTO_INCREMENT PRIMARY KEY); CREATE TABLE t_order_0 (id INT AUTO_INCREMENT PRIMARY KEY);"+
		"CREATE TABLE t_order_1 LIKE t_order_0")
	rule := write(t, "rules:\n- !SHARDING\n  tables:\n    t_order:\n      actualDataNodes: ds_0.t_order_${0..1}\n"+
		"      keyGenerateStrategy: {column: id, keyGeneratorName: s}\n  keyGenerators: {s: {type: SNOWFLAKE, props: {worker-id: 1}}}\n")
	for _, args := range [][]string{{"init"}, {"migrate"}, {"doctor", "--rule", rule}} {
		found := func(param string) string {
			_, stdout, stderr := runTool(t, append(args, "--dsn", dsn+"?"+param)...)
			return ofProgram.ReplaceAllString(stdout, "") + stderr
		}
		want := found("")
		for _, param := range testserver.Params {
			must.Equal(t, found(param), want, args[0], "with", param)
		}
	}
}

// ofProgram matches what doctor prints about the program's sql_mode, a key of today, and the totals.
var ofProgram = regexp.MustCompile(`(?m)^info: sql-mode.*\n  why:.*\n  fix:.*\n|\d{10,}|^\d+ errors?, .*\n`)

// TestInit_passesCheckAndDoctor checks the rule that init prints for two databases.
func TestInit_passesCheckAndDoctor(t *testing.T) {
	if testserver.Each(t, TestInit_passesCheckAndDoctor) {
		return
	}
	ids := testserver.StartSQL(t) // durable
	execute(t, ids.DSN(), "CREATE DATABASE ids")
	cfg := parsed(t, ids.DSN())
	cfg.DBName = "ids"
	t.Setenv("SHARDKEY_IDS_DSN", cfg.FormatDSN())
	var dsns []string
	for _, name := range []string{"ds_0", "ds_1"} {
		dsn := testserver.Database(t)
		execute(t, dsn, "CREATE TABLE t_order_0 (id BIGINT PRIMARY KEY, x INT); CREATE TABLE t_order_1 LIKE t_order_0;"+
			"CREATE TABLE t_log_202601 (id BIGINT PRIMARY KEY); CREATE TABLE t_log_202602 LIKE t_log_202601;")
		dsns = append(dsns, "--dsn", name+"="+dsn)
	}
	run := func(want string, args ...string) string {
		t.Helper()
		status, stdout, stderr := runTool(t, args...)
		if status != 0 || !strings.Contains(stdout, want) {
			t.Fatalf("%s\nhave: status %d\n%s%s", args[0], status, stdout, stderr)
		}
		return stdout
	}
	file := write(t, run("rules:", append([]string{"init"}, dsns...)...))
	run("t_order", "check", "--strict", file)
	run("ok: table ds_1 t_order.id (t_order_0, t_order_1)", append([]string{"doctor", "--rule", file, "-v"}, dsns...)...)
	for _, table := range []string{"t_order", "t_log_202603"} {
		run("", "generate", "--rule", file, "--table", table)
	}
}

// similarTables have names that differ in numbers, but aren't all shards.
const similarTables = `
CREATE TABLE issue3915 (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT);
CREATE TABLE issue3754 (id INT PRIMARY KEY, n INT);
CREATE TABLE oauth2 (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT);
CREATE TABLE oauth1 (token VARCHAR(20) PRIMARY KEY, n INT);
CREATE TABLE user_0 (id BIGINT PRIMARY KEY, n INT);
CREATE TABLE user_1 LIKE user_0;
CREATE TABLE user2 (id BIGINT PRIMARY KEY);
CREATE TABLE t_order_0 (id BIGINT PRIMARY KEY, n INT);
CREATE TABLE t_order_1 LIKE t_order_0;
CREATE TABLE t_order_2025_1 (id BIGINT PRIMARY KEY, archived INT);
CREATE TABLE price_2025 (id INT NOT NULL, region INT NOT NULL, amount INT, PRIMARY KEY (id, region));
CREATE TABLE price_2026 (id INT AUTO_INCREMENT PRIMARY KEY, region INT NOT NULL, amount INT);
CREATE TABLE log_1 (id INT NOT NULL, day INT NOT NULL, PRIMARY KEY (id, day));
CREATE TABLE log_2 (id INT NOT NULL AUTO_INCREMENT, day INT NOT NULL, PRIMARY KEY (id, day));
CREATE TABLE stat_1 (id INT);
CREATE TABLE stat_2 (id INT PRIMARY KEY);
CREATE TABLE level1 (id INT AUTO_INCREMENT PRIMARY KEY);
CREATE TABLE level2 (id INT AUTO_INCREMENT PRIMARY KEY, level1_id INT);
CREATE TABLE token (id INT AUTO_INCREMENT PRIMARY KEY, oauth2_id INT, user_id INT, level2Id INT);
`

// TestInit_refusesNoOtherTable checks that the rule of init refuses no INSERT into a table of the
// database, and that migrate finds the columns that refer to tables with digits at the end.
func TestInit_refusesNoOtherTable(t *testing.T) {
	if testserver.Each(t, TestInit_refusesNoOtherTable) {
		return
	}
	dsn := testserver.Database(t)
	execute(t, dsn, similarTables)
	for _, only := range [][]string{nil, {"t_order"}, {"user"}} {
		status, content, stderr := runTool(t, append([]string{"init", "--dsn", dsn}, only...)...)
		must.Equal(t, status, 0, stderr)
		r := must.Get(rule.Parse("rule.yaml", []byte(content)))(t, content)
		live := must.Get(r.Open(spi.Host{DSN: spi.NewSecret(dsn)}))(t)
		defer live.Close()
		for _, m := range regexp.MustCompile("TABLE ([a-z0-9_]+)").FindAllStringSubmatch(similarTables, -1) {
			if e := live.Unlisted("", m[1]); e != nil && e.Like.Unlisted == "refuse" {
				t.Errorf("%v: %v\n%s", only, e, content)
			}
		}
		if only != nil {
			continue
		}
		var have []string
		for _, table := range r.Tables() {
			have = append(have, fmt.Sprint(table.Logical, table.Actual, table.Unlisted))
		}
		must.EqualSlices(t, have, []string{"issue3915[issue3915]warn", "level1[level1]warn", "level2[level2]warn",
			"log[log_1 log_2]refuse", "oauth2[oauth2]warn", "price_2026[price_2026]warn", "t_order[t_order_0 t_order_1]pass",
			"token[token]warn", "user[user_0 user_1]pass"})
		if live.Unlisted("", "user_2") == nil || live.Lookup("", "price_2025") != nil {
			t.Errorf("have: user_2 is unknown, or price_2025 is known")
		}
	}
	status, script, stderr := runTool(t, "migrate", "--dsn", dsn)
	must.Equal(t, status, 0, stderr)
	for _, column := range []string{"MODIFY `oauth2_id` bigint", "MODIFY `level1_id` bigint", "MODIFY `level2Id` bigint"} {
		if !strings.Contains(script, column) {
			t.Errorf("have: %s\nwant: %s", script, column)
		}
	}
	execute(t, dsn, script)
	file := write(t, strings.NewReplacer("t_order:", "oauth2:", "column: order_id", "column: id", "$A",
		"{type: SQL, props: {namespace: orders}}").Replace(clusterRule))
	_, stdout, stderr := runTool(t, "doctor", "--rule", file, "--dsn", dsn)
	if strings.Contains(stdout+stderr, "oauth2_id") || strings.Contains(stdout, "warning: unlisted") {
		t.Errorf("doctor\nhave: %s%s", stdout, stderr)
	}
}

// clusterRule is a rule in which $A stands for the worker-ID assigner.
const clusterRule = `rules:
- !SHARDING
  tables:
    t_order:
      keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id-assigner: cluster}}
  workerIdAssigners:
    cluster: $A
`

// tryWorkers leases a worker ID from an assigner, and checks the output of workers.
func tryWorkers(t *testing.T, assigner, dsn string, clock bool) {
	t.Helper()
	file := write(t, strings.ReplaceAll(clusterRule, "$A", assigner))
	t.Setenv(dsnVariable, dsn)
	look := func(state string, free int64) workerStore {
		t.Helper()
		status, stdout, stderr := runTool(t, "workers", "--rule", file, "-o", "json")
		var v workerStores
		err := json.Unmarshal([]byte(stdout), &v)
		if err != nil || status != 0 || stderr != "" || strings.Contains(stdout, canary) {
			t.Fatalf("have: status %d, %v\n%s%s", status, err, stdout, stderr)
		}
		s := *v.Stores[0]
		if has := len(s.Workers) == 1 && s.Workers[0].State == state; has != (state != "") || s.Generators[0].Free != free {
			t.Errorf("have: %+v\nwant: %q, %d free", s, state, free)
		}
		return s
	}
	look("", 1024)
	r := must.Get(rule.Load(file))(t)
	live := must.Get(r.Open(spi.Host{DSN: spi.NewSecret(dsn)}))(t)
	defer live.Close()
	must.Get(live.Lookup("", "t_order").Generator.GenerateKeys(t.Context(), spi.Column{}, 1))(t)
	if s := look("held", 1023); s.Workers[0].PID != int64(os.Getpid()) || (s.ClockAhead != nil) != clock {
		t.Errorf("have: %+v\nwant: held by process %d", s, os.Getpid())
	}
	must.Do(t, live.Close())
	look("free", 1024)
}

func TestWorkers_stores(t *testing.T) {
	for _, store := range []struct {
		typ, servers string
		start        func(testing.TB) string
		clock        bool
	}{
		{"REDIS", "addr", testserver.Redis, true},
		{"ETCD", "endpoints", testserver.Etcd, false},
		{"ZOOKEEPER", "servers", testserver.ZooKeeper, false},
	} {
		t.Run(store.typ, func(t *testing.T) {
			namespace := fmt.Sprintf("tool-%d", time.Now().UnixNano()) // no other test uses it
			tryWorkers(t, fmt.Sprintf("{type: %s, props: {%s: '%s', namespace: %s}}",
				store.typ, store.servers, store.start(t), namespace), "", store.clock)
		})
	}
}

func TestWorkers_sql(t *testing.T) {
	if testserver.Each(t, TestWorkers_sql) {
		return
	}
	tryWorkers(t, "{type: SQL, props: {}}", testserver.Database(t), true)
}

// A store that doesn't answer is an error with the generator's name. The other stores are
// shown.
func TestWorkers_withoutStore(t *testing.T) {
	file := write(t, strings.NewReplacer(
		"t_order:", "t_item: {keyGenerateStrategy: {column: id, keyGeneratorName: fixed}}\n    t_order:",
		"keyGenerators:", "keyGenerators:\n    fixed: {type: SNOWFLAKE, props: {worker-id: 7}}",
		"$A", "{type: SQL, props: {dsn: 'app:"+canary+"@tcp(127.0.0.1:1)/app'}}").Replace(clusterRule))
	status, stdout, stderr := runTool(t, "workers", "--rule", file)
	if status != statusError || !strings.Contains(stdout, "7       fixed") ||
		!strings.Contains(stderr, "generator snowflake: ") || strings.Contains(stderr, canary) {
		t.Errorf("have: status %d\n%s%s", status, stdout, stderr)
	}
}
