package engines_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shardkey/shardkey/internal/test/engines"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// shopTables creates the tables for doctor, migrate and init.
var shopTables = []string{
	"CREATE TABLE customer (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY COMMENT 'of the shop', name VARCHAR(50))",
	"CREATE TABLE t_order_0 (order_id BIGINT NOT NULL PRIMARY KEY, customer_id INT UNSIGNED NOT NULL)",
	"CREATE TABLE t_order_1 (order_id BIGINT NOT NULL PRIMARY KEY, customer_id INT UNSIGNED NOT NULL)",
	"CREATE TABLE t_order_2 (order_id BIGINT NOT NULL PRIMARY KEY, customer_id INT UNSIGNED NOT NULL)",
	"CREATE TABLE rating (customer_id INT UNSIGNED NOT NULL, stars TINYINT, " +
		"CONSTRAINT fk_rating FOREIGN KEY (customer_id) REFERENCES customer (id) ON DELETE CASCADE)",
	"CREATE TABLE country (code CHAR(2) PRIMARY KEY)",
	"INSERT INTO customer (name) VALUES ('first')",
}

const shopRule = `rules:
- !SHARDING
  tables:
    customer: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}
    t_order: {actualDataNodes: "t_order_${0..1}", keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 1}}
`

// buildTool builds the command shardkey once.
var buildTool = sync.OnceValues(func() (path string, err error) {
	if toolDir, err = os.MkdirTemp("", "shardkey-tool-"); err != nil {
		return "", err
	}
	path = filepath.Join(toolDir, "shardkey")
	if out, err := exec.Command("go", "build", "-C", "../../../cmd/shardkey", "-o", path, ".").CombinedOutput(); err != nil {
		return "", errors.Join(err, errors.New(string(out)))
	}
	return path, nil
})

var toolDir string

// runTool runs the command shardkey and returns its exit status and output.
func runTool(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	path := must.Get(buildTool())(t)
	var out bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(toolDir)
	os.Exit(code)
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "rule.yaml")
	must.Do(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// Through vtgate the output is the same as on one server. For a keyspace with several shards, it
// reports that one shard was checked.
func TestTool_vitess(t *testing.T) {
	v := engines.StartVitess(t, testserver.KindMySQL,
		engines.Keyspace{Name: "shop", Shards: []string{"0"}, VSchema: `{}`},
		engines.Keyspace{Name: "app", Shards: []string{"-80", "80-"}, VSchema: `{"sharded": true,
			"vindexes": {"xxhash": {"type": "xxhash"}},
			"tables": {"t_order_0": {"column_vindexes": [{"column": "user_id", "name": "xxhash"}]},
			"t_order_1": {"column_vindexes": [{"column": "user_id", "name": "xxhash"}]}}}`})
	mustRun(t, v.SQL.DSN(), "CREATE DATABASE plain")
	dsns := []string{v.SQL.DSN() + "plain", v.DSN("shop")}
	for _, dsn := range dsns {
		mustRun(t, dsn, shopTables...)
	}
	file := writeFile(t, shopRule)
	for _, command := range [][]string{
		{"doctor", "-v", "--rule", file}, {"migrate"}, {"migrate", "--rule", file, "t_order"}, {"init"}, {"init", "t_order"},
	} {
		var outputs []string
		for _, dsn := range dsns {
			_, output := runTool(t, append(slices.Clone(command), "--dsn", dsn)...)
			outputs = append(outputs, ownWords.ReplaceAllString(output, "…"))
		}
		must.Equal(t, outputs[0], outputs[1], command, "through vtgate")
	}

	app := v.DSN("app")
	for _, table := range []string{"t_order_0", "t_order_1"} {
		mustRun(t, app, "CREATE TABLE "+table+" (order_id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, user_id BIGINT NOT NULL)")
	}
	const oneShard = "one shard; the other 1 shards were not examined"
	code, text := runTool(t, "init", "--dsn", app)
	if code != 0 || !strings.Contains(text, "actualDataNodes: t_order_${0..1}") {
		t.Fatalf("init\nhave: exit code %d\n%s", code, text)
	}
	file = writeFile(t, text)
	code, text = runTool(t, "doctor", "--rule", file, "--dsn", app)
	if code == 0 || !strings.Contains(text, "error: key-type t_order.order_id (t_order_0, t_order_1)") ||
		!strings.Contains(text, oneShard) {
		t.Errorf("doctor\nhave: exit code %d\n%s", code, text)
	}
	code, text = runTool(t, "migrate", "--rule", file, "--dsn", app)
	if code != 0 || !strings.Contains(text, oneShard) {
		t.Errorf("migrate\nhave: exit code %d\n%s", code, text)
	}
	mustRun(t, app, statements(text)...)
	if code, text := runTool(t, "doctor", "--rule", file, "--dsn", app); code != 0 {
		t.Errorf("doctor after migrate\nhave: exit code %d\n%s", code, text)
	}
}

// ownWords matches the parts of the output that differ between servers and databases, and
// generated keys.
var ownWords = regexp.MustCompile(`(?:MySQL|Vitess) [^,]+, sql_mode [A-Z_,]*|127\.0\.0\.1:\d+|\b(?:plain|shop)\b|\b\d{18,19}\b`)

// statements returns the SQL statements of a script without its comments.
func statements(script string) (all []string) {
	text := regexp.MustCompile(`(?m)^\s*--.*\n|^-- .*$`).ReplaceAllString(script, "")
	for statement := range strings.SplitSeq(text, ";") {
		if statement = strings.TrimSpace(statement); statement != "" {
			all = append(all, statement)
		}
	}
	return all
}

// On a Spider head, doctor and migrate report the names of the back ends that they don't check.
// On a back end they work as on one server.
func TestTool_spider(t *testing.T) {
	s := engines.StartSpider(t, 1, 2)
	must.Do(t, s.CreateTable("t_order", "order_id INT NOT NULL PRIMARY KEY, user_id BIGINT", "HASH (order_id)"))
	file := writeFile(t, `rules:
- !SHARDING
  tables:
    t_order: {keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 1}}
`)
	head := s.Heads[0].DSN() + "app"
	mustRun(t, head, "INSERT INTO t_order VALUES (1, 1), (2, 2), (3, 3)")
	for _, server := range append(slices.Clone(s.BackEnds), s.Heads...) {
		dsn := server.DSN() + "app"
		code, text := runTool(t, "migrate", "--rule", file, "--dsn", dsn, "t_order")
		isHead := server == s.Heads[0]
		if code != 0 || strings.Contains(text, "back ends b0, b1 were not examined") != isHead {
			t.Errorf("migrate\nhave: exit code %d\n%s", code, text)
		}
		mustRun(t, dsn, statements(text)...)
		code, text = runTool(t, "doctor", "-v", "--rule", file, "--dsn", dsn)
		reported := strings.Contains(text, "the tables on its back ends were not examined: b0, b1")
		if code != 0 || reported != isHead || strings.Contains(text, "ok: table") == isHead {
			t.Errorf("doctor\nhave: exit code %d\n%s", code, text)
		}
	}
	mustRun(t, head, "INSERT INTO t_order VALUES (1331129790836506623, 4)")
	code, text := runTool(t, "init", "--dsn", head, "t_order")
	if code != 0 || !strings.Contains(text, "t_order:") {
		t.Errorf("init\nhave: exit code %d\n%s", code, text)
	}
}
