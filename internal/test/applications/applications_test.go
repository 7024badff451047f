// Package applications runs the tests of public programs and libraries that use MySQL: with
// go-sql-driver, with shardkey without their tables, and with keys generated for all their
// AUTO_INCREMENT columns.
package applications

import (
	"bufio"
	"context"
	"database/sql"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

var only = flag.String("programs", "", "a regular expression for the modules to test")

// limit is the time for one run of a program's tests.
const limit = 10 * time.Minute

// ids is the database of the generators, and schema that of the tables of a program.
var ids, schema = fmt.Sprint("applications_ids_", os.Getpid()), fmt.Sprint("applications_schema_", os.Getpid())

// otherRule names no table of a program.
const otherRule = `rules:
- !SHARDING
  tables:
    no_such_table: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 7}}
`

func TestApplications(t *testing.T) {
	skipUnlessSet(t)
	tool := filepath.Join(t.TempDir(), "shardkey")
	runWith(t, os.Environ(), root, "go", "build", "-o", tool, "./cmd/shardkey") // in go.work
	for i := range programs {
		p := &programs[i]
		if !regexp.MustCompile(*only).MatchString(p.module) {
			continue
		}
		t.Run(path.Base(regexp.MustCompile(`/v\d+$`).ReplaceAllString(p.module, "")), func(t *testing.T) {
			binaries := p.build(t)
			onServer(t, "mysql", func(t *testing.T) { p.test(t, binaries, tool) })
			if p.mariadb {
				onServer(t, "mariadb", func(t *testing.T) { p.test(t, binaries, tool) })
			}
		})
	}
}

func skipUnlessSet(t *testing.T) {
	if os.Getenv("SHARDKEY_APPLICATIONS") == "" {
		t.Skip("SHARDKEY_APPLICATIONS is not set: make applications runs this")
	}
}

// onServer runs a test on the shared server of a name.
func onServer(t *testing.T, name string, test func(*testing.T)) {
	var each func(*testing.T)
	each = func(t *testing.T) {
		if !testserver.Each(t, each) && testserver.Name(t) == name {
			test(t)
		}
	}
	t.Run(name, each)
}

// test runs the three arms of a program and compares them.
func (p *program) test(t *testing.T, binaries []binary, tool string) {
	a := &arms{p, &client{t: t, dsn: testserver.SQL(t)}, binaries, t.TempDir()}
	defer a.c.drop(append(p.databases, ids)...)
	plain := a.report('a', "")
	if count(plain) == 0 {
		t.Error("no test passes with go-sql-driver")
	}
	for _, name := range lost(plain, a.report('b', otherRule)) {
		t.Errorf("%s passes with go-sql-driver, not with shardkey", name)
	}
	rule := p.rule(a.c, tool, a.log('a'))
	if rule == "" {
		fmt.Printf("%s has no AUTO_INCREMENT\n", p.module)
		return
	}
	missing := lost(plain, a.report('c', a.c.ruleForTests(rule, "too small")))
	p.compareReasons(t, plain, a.notFrom1(missing, a.c.ruleForTests(rule, "Name: snowflake")))
}

// arms are the runs of a program's tests.
type arms struct {
	*program
	c        *client
	binaries []binary
	dir      string
}

// log returns the file to which the tests of an arm write what happens.
func (a *arms) log(arm rune) string { return filepath.Join(a.dir, string(arm)+".log") }

// report runs an arm and prints its result.
func (a *arms) report(arm rune, rule string) map[string]bool {
	start := time.Now()
	passed := a.run(arm, rule)
	connectors, keys := evidence(a.c.t, a.log(arm))
	report := fmt.Sprintf("%s %s on %s, arm %c: %d of %d tests pass, %d keys in %s", a.module, a.version,
		testserver.Name(a.c.t), arm, count(passed), len(passed), keys, time.Since(start).Round(time.Second))
	fmt.Println(report)
	if arm != 'a' && connectors == 0 || arm == 'c' && keys == 0 {
		a.c.t.Errorf("%s: shardkey isn't used", report)
	}
	return passed
}

// run runs the tests, and reports for each whether it passed. Skipped tests are left out.
func (a *arms) run(arm rune, rule string, args ...string) map[string]bool {
	a.c.recreate(append(a.databases, ids)...)
	a.c.exec(ids, leafAlloc(rule)...)
	for i, tables := range a.tables {
		a.c.exec(a.databases[i]+"?multiStatements=true", tables)
	}
	file := ""
	if rule != "" {
		file = filepath.Join(a.dir, string(arm)+".yaml")
		write(a.c.t, file, rule)
	}
	passed := map[string]bool{}
	for _, b := range a.binaries {
		a.runBinary(b, file, a.log(arm), args, passed)
	}
	return passed
}

// notFrom1 returns the tests that don't pass with keys that count from 1 either. Each runs alone,
// since tests that create a table again expect 1 again.
func (a *arms) notFrom1(names []string, rule string) (still []string) {
	for _, name := range names {
		alone := "^" + strings.ReplaceAll(regexp.QuoteMeta(name), "/", "$/^") + "$"
		if !a.run('1', rule, "-test.run="+alone)[name] {
			still = append(still, name)
		}
	}
	if len(names) > 0 {
		fmt.Printf("%s: of %d tests that don't pass in arm c, %d pass with keys from 1\n",
			a.module, len(names), len(names)-len(still))
	}
	return still
}

func count(tests map[string]bool) (n int) {
	for _, ok := range tests {
		if ok {
			n++
		}
	}
	return n
}

// lost returns the tests that pass in a but not in b, without those of which a subtest is lost.
func lost(a, b map[string]bool) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if !a[name] || b[name] {
			continue
		}
		names = slices.DeleteFunc(names, func(outer string) bool { return strings.HasPrefix(name, outer+"/") })
		names = append(names, name)
	}
	return names
}

// compareReasons compares the tests that don't pass in arm c with testdata/reasons.txt. Its lines have
// a program, a test, which may end in @ and a server, and a reason.
func (p *program) compareReasons(t *testing.T, plain map[string]bool, names []string) {
	reasons := map[string]bool{}
	for line := range strings.Lines(read(t, "testdata/reasons.txt")) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == p.module {
			if test, server, _ := strings.Cut(f[1], "@"); server == "" || server == testserver.Name(t) {
				reasons[test] = true
			}
		}
	}
	for _, name := range names {
		if !reasons[name] {
			t.Errorf("%s passes with go-sql-driver, not with generated keys; testdata/reasons.txt has no reason", name)
		}
	}
	for name := range reasons {
		if plain[name] && !slices.Contains(names, name) {
			t.Errorf("testdata/reasons.txt has %s, which passes", name)
		}
	}
}

// runBinary adds the results of one binary to passed. After a panic it runs the remaining
// tests.
func (a *arms) runBinary(b binary, rule, log string, more []string, passed map[string]bool) {
	c := a.c
	skip := a.skip
	for {
		ctx, cancel := context.WithTimeout(c.t.Context(), limit)
		args := c.expand(b.args)
		if strings.HasSuffix(b.file, ".test") {
			args = append(append(args, more...), "-test.skip="+skip)
		}
		cmd := exec.CommandContext(ctx, b.file, args...)
		cmd.Dir, cmd.WaitDelay = b.dir, time.Second
		cmd.Env = append(os.Environ(), c.expand(a.env)...)
		cmd.Env = append(cmd.Env, "APPLICATIONS_DSN="+c.dsn, "APPLICATIONS_LOG="+log,
			"APPLICATIONS_RULE="+rule, "APPLICATIONS_IDS="+ids)
		out, err := cmd.CombinedOutput()
		cancel()
		keep(c.t, filepath.Base(log)+"."+filepath.Base(b.file)+".txt", string(out))
		panicked := false
		for _, m := range outcome.FindAllSubmatch(out, -1) {
			passed[string(m[2])] = string(m[1]) == "PASS"
			panicked = panicked || len(m[3]) > 0
			if test, _, _ := strings.Cut(string(m[2]), "/"); !strings.Contains(skip, "^"+test+"$") {
				skip = strings.TrimPrefix(skip+"|^"+test+"$", "|")
			}
		}
		if panicked && len(more) == 0 {
			continue
		}
		if err != nil && cmd.ProcessState.ExitCode() != 1 {
			c.t.Logf("%s: %v\n%s", b.file, err, out[max(0, len(out)-2000):])
		}
		return
	}
}

// outcome matches the result of a test, with a panic if it panicked.
var outcome = regexp.MustCompile(`\x16 *--- (PASS|FAIL): (\S+) \(.*\)\s*(panic: )?`)

// evidence returns the number of connectors and keys in a log.
func evidence(t *testing.T, log string) (connectors, keys int) {
	for line := range strings.Lines(read(t, log)) {
		if strings.HasPrefix(line, "connector") {
			connectors++
		} else if n, ok := strings.CutPrefix(line, "keys "); ok {
			more := must.Get(strconv.Atoi(strings.TrimSpace(n)))(t)
			keys += more
		}
	}
	return connectors, keys
}

// rule returns the rule that shardkey init writes for the tables that the program's tests create. A
// table whose definitions have different key columns is left out.
func (p *program) rule(c *client, tool, log string) string {
	c.recreate(schema)
	defer c.drop(schema)
	db := must.Get(sql.Open("mysql", c.dsn+schema+"?multiStatements=true"))(c.t)
	defer db.Close()
	columns, ambiguous := map[string]string{}, map[string]bool{}
	for _, query := range append(definitions(c.t, log), p.tables...) {
		if m := created.FindStringSubmatch(query); m != nil {
			_, _ = db.Exec("DROP TABLE IF EXISTS " + m[1])
		}
		_, _ = db.Exec(query) // may fail as in the tests, or refer to another database
		rows, err := db.Query("SELECT table_name, MAX(IF(extra LIKE '%auto_increment%', column_name, '')) " +
			"FROM information_schema.columns WHERE table_schema = DATABASE() GROUP BY table_name")
		must.Do(c.t, err)
		for rows.Next() {
			var table, column string
			must.Do(c.t, rows.Scan(&table, &column))
			if before, ok := columns[table]; ok && before != column {
				ambiguous[table] = true
			}
			columns[table] = column
		}
		must.Do(c.t, rows.Close())
	}
	for table := range ambiguous {
		must.Get(db.Exec("DROP TABLE `" + table + "`"))(c.t)
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(columns)), func(column string) bool { return column != "" }) {
		return ""
	}
	text := run(c.t, ".", tool, "init", "--dsn", c.dsn+schema)
	keep(c.t, "init.yaml", text)
	file := log + ".yaml"
	write(c.t, file, text)
	p.tools(c, tool, file, c.dsn+schema)
	return text
}

// tools runs the other commands on the rule of init, the tables and the program's source. doctor may
// find keys that are too narrow, but not after the statements of migrate. lint may report statements.
func (p *program) tools(c *client, tool, rule, dsn string) {
	migrated, doctor := false, []string{"doctor", "--rule", rule, "--dsn", dsn}
	for _, args := range [][]string{
		{"check", "--strict", rule}, doctor, {"lint", "--rule", rule, "./..."}, {"migrate", "--dsn", dsn}, doctor,
	} {
		ctx, cancel := context.WithTimeout(c.t.Context(), limit)
		cmd := exec.CommandContext(ctx, tool, args...)
		cmd.Dir, cmd.Env = p.dir, append(outside(), "CGO_ENABLED=1")
		start := time.Now()
		out, _ := cmd.CombinedOutput()
		cancel()
		keep(c.t, args[0]+".txt", string(out))
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		fmt.Printf("%s: shardkey %s takes %s: %s\n", p.module, args[0],
			time.Since(start).Round(time.Second/10), lines[len(lines)-1])
		code, most := cmd.ProcessState.ExitCode(), 1
		if args[0] == "check" || args[0] == "migrate" {
			most = 0
		}
		if code < 0 || code > most || migrated && strings.Contains("\n"+string(out), "\nerror: ") {
			c.t.Errorf("shardkey %s: exit status %d\n%s", args[0], code, out)
		} else if args[0] == "migrate" {
			c.exec(schema+"?multiStatements=true", string(out)+"SELECT 1")
			migrated = true
		}
	}
}

var created = regexp.MustCompile(`(?i)^\s*CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?([^\s(]+)`)

func definitions(t *testing.T, log string) (queries []string) {
	lines := bufio.NewScanner(strings.NewReader(read(t, log)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if quoted, ok := strings.CutPrefix(lines.Text(), "ddl "); ok {
			query := must.Get(strconv.Unquote(quoted))(t)
			queries = append(queries, query)
		}
	}
	return queries
}

// ruleForTests changes the rule of shardkey init: worker IDs need no database, and the columns on lines
// with a text get numbers from 1.
func (c *client) ruleForTests(text, numbers string) string {
	text, _, _ = strings.Cut(text, "  workerIdAssigners:")
	text = strings.Replace(text, "worker-id-assigner: cluster", "worker-id: 7", 1)
	var leaf strings.Builder
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if strings.Contains(line, "column: ") && strings.Contains(line, numbers) {
			name := fmt.Sprint("leaf_", i)
			lines[i] = strings.Replace(line, "Name: snowflake", "Name: "+name, 1)
			fmt.Fprintf(&leaf, "    %s: {type: LEAF_SEGMENT, props: {leaf.key: %s, dsn: %q}}\n", name, name, c.dsn+ids)
		}
	}
	return strings.Join(lines, "") + leaf.String()
}

// leafAlloc returns the statements for the segments of the generators in a rule.
func leafAlloc(rule string) []string {
	queries := []string{"CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) PRIMARY KEY, " +
		"max_id BIGINT NOT NULL, step INT NOT NULL, description VARCHAR(256), update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP)"}
	for _, m := range regexp.MustCompile(`leaf\.key: (\w+)`).FindAllStringSubmatch(rule, -1) {
		queries = append(queries, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('"+m[1]+"', 1, 10)")
	}
	return queries
}

// keep writes a file to the directory SHARDKEY_APPLICATIONS_KEEP, if it is set.
func keep(t *testing.T, name, text string) {
	if dir := os.Getenv("SHARDKEY_APPLICATIONS_KEEP"); dir != "" {
		write(t, filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "_")+"_"+name), text)
	}
}

// client is a connection to the server of a test.
type client struct {
	t   *testing.T
	dsn string // without a database
}

func (c *client) exec(database string, queries ...string) {
	c.t.Helper()
	db := must.Get(sql.Open("mysql", c.dsn+database))(c.t)
	defer db.Close()
	for _, query := range queries {
		must.Get(db.Exec(query))(c.t)
	}
}

func (c *client) recreate(databases ...string) {
	c.drop(databases...)
	for _, name := range databases {
		c.exec("", "CREATE DATABASE "+name)
	}
}

func (c *client) drop(databases ...string) {
	for _, name := range databases {
		c.exec("", "DROP DATABASE IF EXISTS "+name)
	}
}

// expand replaces $DSN in program.env and args.
func (c *client) expand(texts []string) (all []string) {
	for _, text := range texts {
		all = append(all, strings.ReplaceAll(text, "$DSN", strings.TrimSuffix(c.dsn, "/")))
	}
	return all
}
