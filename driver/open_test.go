package driver

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	testcases "github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
)

// Health, readiness and statistics are available while the database is down.
func TestOpen_withoutServer(t *testing.T) {
	noError(t, RegisterRule(t.Name(), benchRule(t)))
	defer DeregisterRule(t.Name())
	db, c, err := Open("u:secret@tcp(127.0.0.1:1)/app?shardkeyRule=" + t.Name())
	noError(t, err)
	if err := db.PingContext(t.Context()); err == nil {
		t.Fatal("have: a server\nwant: none")
	}
	if health := c.Stats().Generators[0].Health; ConnectorOf(db) != c || health.Err != nil {
		t.Errorf("have: %v, %v\nwant: the connector, whose generator is well", ConnectorOf(db), health)
	}
	equal(t, c.host.DSN.Reveal(), "u:secret@tcp(127.0.0.1:1)/app", "the generators do not know the DSN")
	if err := db.Close(); err != nil || ConnectorOf(db) != c {
		t.Errorf("after Close\nhave: %v, %v\nwant: the connector", ConnectorOf(db), err)
	}
}

// refusedDSN fails the test unless err contains want and not the DSN's password.
func refusedDSN(t *testing.T, err error, want string) {
	t.Helper()
	if _, ok := errors.AsType[*DSNError](err); !ok || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("have: %v\nwant: a *DSNError with %s", err, want)
	}
}

func TestOpen_refuses(t *testing.T) {
	noError(t, RegisterRule("orders", testRule(t)))
	defer DeregisterRule("orders")
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	write(t, bad, "rules:\n- !SHARDING\n  tables: []\n")
	kinds := map[string]error{"": nil, "ErrNoRule": ErrNoRule, "ErrNotExist": fs.ErrNotExist}
	for _, c := range append(testcases.Read(t, "testdata/refused.txt", 3), [][]string{
		{"it isn't shown because it contains an @", "u:x@/?shardkeyRule=s3cr3t@" + strings.Repeat("h", 5000), ""}, // too long for a file
		{"bad.yaml:3", "u:s3cr3t@tcp(h:1)/app?shardkeyRule=" + bad, ""},
		{"cannot load the rule", "u:s3cr3t@tcp(h:1)/app?shardkeyRule=" + t.TempDir(), ""},
	}...) {
		want, dsn := c[0], c[1]
		is, known := kinds[c[2]]
		equal(t, known, true, c[2], "is known:")
		t.Run(dsn, func(t *testing.T) {
			db, conn, err := Open(dsn)
			if refusedDSN(t, err, want); db != nil || conn != nil || is != nil && !errors.Is(err, is) {
				t.Errorf("have: %v, %v, %v\nwant: %v", db, conn, err, is)
			}
			if dsn != "" { // instrumenting wrappers open an empty DSN
				_, err := sql.Open("shardkey", dsn)
				refusedDSN(t, err, want)
			}
		})
	}
}

// A DSN parameter overrides an option, and a later option an earlier one.
func TestOptions_order(t *testing.T) {
	noError(t, RegisterRule(t.Name(), benchRule(t)))
	defer DeregisterRule(t.Name())
	path := ruleFile(t, benchRuleYAML)
	db, c, err := Open("u@tcp(127.0.0.1:1)/app?shardkeyRule="+path+"&shardkeyServer=mysql&shardkeyReload=off",
		Config{Server: "vitess", Statements: "off", Reload: time.Minute}, Config{Statements: "always", Verify: "off"}, nil)
	noError(t, err)
	defer db.Close()
	if want := (Config{Rule: path, Server: "mysql", Statements: "always", Verify: "off"}); c.config != want {
		t.Errorf("have: %+v\nwant: %+v", c.config, want)
	}
}

func TestConfig_errors(t *testing.T) {
	for want, config := range map[string]Config{
		`shardkey: Config.Server: expected one of auto, mysql, mariadb, vitess, other, found "mysq"; did you mean mysql?`: {Server: "mysq"},
		`shardkey: Config.Verify: expected one of on, off, found "x"`:                                                     {Verify: "x"},
		`shardkey: Config.Statements: expected one of auto, always, off, found "all"`:                                     {Statements: "all"},
		`shardkey: Config.Reload: expected off or a duration from 10ms to 24h0m0s such as 5s, found "1ms"`:                {Reload: time.Millisecond},
		`shardkey: Config.Reload: expected off or a duration from 10ms to 24h0m0s such as 5s, found "-1s"`:                {Reload: -time.Second},
		`the rule bench.yaml was not loaded from a file`:                                                                  {Reload: time.Second},
	} {
		_, err := NewConnector(&fakedb.Server{}, benchRule(t), config)
		refusedDSN(t, err, want)
	}
}

func TestOpen_withRule(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "rule file.yaml")
	noError(t, os.WriteFile(path, []byte("rules: [!SHARDING {tables: {t: {keyGenerateStrategy: {column: id, keyGeneratorName: k}}}, keyGenerators: {k: {type: TEST}}}]"), 0o600))
	noError(t, RegisterRule("orders/a", testRule(t)))
	defer DeregisterRule("orders/a")
	for _, value := range []string{path, strings.ReplaceAll(path, "/", "%2F"), "orders/a", "orders%2fa"} {
		db, err := sql.Open("shardkey", "u:p@tcp(127.0.0.1:1)/app?parseTime=true&shardkeyRule="+value)
		if err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		if _, ok := db.Driver().(Driver); !ok {
			t.Errorf("the driver is %T", db.Driver())
		}
		check(t, db.Close())
	}
}

// Instrumenting wrappers open the empty DSN to get the driver.
func TestOpen_emptyDSN(t *testing.T) {
	db := must(sql.Open("shardkey", ""))(t)
	defer db.Close()
	if _, ok := db.Driver().(Driver); !ok {
		t.Errorf("the driver is %T", db.Driver())
	}
	isError(t, db.Ping(), ErrNoRule)
}

func TestRegisterRule_refuses(t *testing.T) {
	fails(t, RegisterRule("", testRule(t)), "an empty name is taken")
	isError(t, RegisterRule("x", nil), ErrNoRule, "nil rule")
}

// TestDriver_openIsOneConnection checks that closing the only connection of Driver.Open closes its
// connector.
func TestDriver_openIsOneConnection(t *testing.T) {
	base := &fakedb.Server{Kind: fakedb.Minimal}
	c := must(Wrap(fakedb.Driver{Server: base}, taggedRule(t, "t", 7)).Open("name"))(t)
	liveOf(t, "open", 7, 1)
	noError(t, c.Close())
	liveOf(t, "closed", 7, 0)
	if base.Calls[0] != "open name" || base.Conns != 0 {
		t.Errorf("the base saw %s", lines(base.Calls))
	}
}

// The connections of a wrapper without OpenConnector share a connector. A program that found it can use
// it while the pool has no connection.
func TestOpen_connectionsShareAConnector(t *testing.T) {
	base := &fakedb.Server{}
	d := Wrap(fakedb.Driver{Server: base}, taggedRule(t, "t", 8))
	db := sql.OpenDB(opener{driver: noDriver{}, open: func() (driver.Conn, error) { return d.Open("name") }})
	defer db.Close()
	db.SetMaxIdleConns(-1)
	one, two := must(db.Conn(t.Context()))(t), must(db.Conn(t.Context()))(t)
	c := ConnectorOf(one)
	equal(t, ConnectorOf(two), c, "of a second connection")
	other := must(d.Open("other"))(t)
	equal(t, ConnectorOf(other) == c, false, "the same connector for another name")
	noError(t, other.Close())
	noError(t, one.Close())
	liveOf(t, "one connection", 8, 1)
	noError(t, two.Close())
	liveOf(t, "no connection", 8, 0)

	noError(t, c.Ready(t.Context()), "without a connection")
	equal(t, len(must(c.NextKeys(t.Context(), "t", 2))(t)), 2, "keys without a connection")
	liveOf(t, "no connection again", 8, 0)
	base.Faults = []fakedb.Fault{{At: "connect", Err: fakedb.Err}}
	isError(t, db.PingContext(t.Context()), fakedb.Err)
	liveOf(t, "a failed connection", 8, 0)
	equal(t, len(opened.connectors), 0, "connectors of no connection")
}

// noDriver shows nothing of the driver that it wraps.
type noDriver struct{ driver.Driver }

func TestWrap_refuses(t *testing.T) {
	fails(t, errOf(Wrap(nil, testRule(t)).Open("x")), "a nil driver opens")
	isError(t, errOf(Wrap(fakedb.Driver{Server: &fakedb.Server{}}, nil).Open("x")), ErrNoRule, "nil rule")
	if _, err := Wrap(mysql.MySQLDriver{}, testRule(t)).Open("not a DSN"); err == nil || strings.Contains(err.Error(), "shardkey") {
		t.Errorf("have: %v\nwant: the base's own error", err)
	}
}

func TestParseDSN_parts(t *testing.T) {
	for _, c := range testcases.Read(t, "testdata/dsns.txt", 3) {
		rule, base, in := c[0], c[1], c[2]
		var c Config
		equal(t, must(c.parse(in))(t, in), base, in)
		equal(t, c.Rule, ruleName(rule), in)
		again := must(ParseDSN(must(ParseDSN(in))(t, in).FormatDSN()))(t, in)
		equal(t, again.Rule, c.Rule, in, "again")
		equal(t, again.FormatDSN(), must(ParseDSN(in))(t).FormatDSN(), in, "again")
		must(mysql.ParseDSN(base))(t, in)
	}
}

// FuzzParseDSN checks that an accepted DSN has the same meaning for go-sql-driver without
// shardkey's parameters, that no DSN causes a panic, and that a formatted Config is parsed as it was.
func FuzzParseDSN(f *testing.F) {
	f.Add("u", "p", "h:1", "app", "conf/rule.yaml", "parseTime=true&shardkeyReload=5s")
	f.Add("u", "a/b?c=d&e@(f", "h", "", "/a?b", "")
	f.Add("u", "p", "h", "a", "100%&x@y=z ключ", "shardkeyServer=other&shardkeyVerify=off&collation=utf8mb4_bin&x=%2F")
	f.Add("", "@/?shardkeyRule=x", "[::1]:3306", "a?b", "+ %2F", "shardkeyStatements=always")
	f.Fuzz(func(t *testing.T, user, password, addr, name, rule, params string) {
		checkFormatted(t, user+password+addr+name+rule+params)
		checkFormatted(t, fmt.Sprintf("%s:%s@tcp(%s)/%s?%s&shardkeyRule=%s", user, password, addr, name, params, rule))
		cfg := mysql.NewConfig()
		cfg.User, cfg.Passwd, cfg.Net, cfg.Addr, cfg.DBName = user, password, "tcp", addr, name
		text := cfg.FormatDSN()
		back, err := mysql.ParseDSN(text)
		if err != nil || back.User != user || rule == "" || strings.ContainsAny(addr, "()?@/") {
			return
		}
		have, err := ParseDSN((&Config{MySQL: cfg, Rule: rule}).FormatDSN())
		if err != nil || have.Rule != rule || have.MySQL.FormatDSN() != back.FormatDSN() {
			t.Fatalf("%s with %q\nhave: %+v, %v", text, rule, have, err)
		}
	})
}

// checkFormatted checks that a DSN, if it is accepted, is formatted as one with the same meaning.
func checkFormatted(t *testing.T, dsn string) {
	t.Helper()
	c, err := ParseDSN(dsn)
	if err != nil {
		return
	}
	if again, err := mysql.ParseDSN(c.MySQL.FormatDSN()); err != nil || again.FormatDSN() != c.MySQL.FormatDSN() {
		return // go-sql-driver itself doesn't format it
	}
	text := c.FormatDSN()
	again, err := ParseDSN(text)
	if err != nil {
		t.Fatalf("%q\nformatted: %q\nhave: %v", dsn, text, err)
	}
	equal(t, again.MySQL.FormatDSN(), c.MySQL.FormatDSN(), dsn, text)
	again.MySQL = c.MySQL
	equal(t, *again, *c, dsn, text)
}

// A program with a mysql.Config needs no DSN.
func TestConfig_newConnector(t *testing.T) {
	cfg := must(mysql.ParseDSN(testserver.Database(t)))(t)
	noError(t, RegisterRule("of the config", snowflakeRule(t, "t")))
	defer DeregisterRule("of the config")
	c := must((&Config{MySQL: cfg, Rule: "of the config"}).NewConnector())(t)
	db := sql.OpenDB(c)
	defer db.Close()
	equal(t, ConnectorOf(db), c)
	mustExec(t, db, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	mustExec(t, db, "INSERT INTO t (a) VALUES (?)", 1)
	equal(t, number(t, db, "SELECT COUNT(*) FROM t WHERE id > 0"), 1, "rows with a key")

	cfg.Passwd = "hunter2"
	for want, c := range map[string]*Config{
		"Config.MySQL: it is nil": {Rule: "x"}, "Config.Rule: no sharding rule": {MySQL: cfg},
		"neither a registered rule": {MySQL: cfg, Rule: "no such file"}, "Config.Server: expected": {MySQL: cfg, Rule: "of the config", Server: "oracle"},
	} {
		_, err := c.NewConnector()
		failsWith(t, err, want)
		if !errors.As(err, new(*DSNError)) || strings.Contains(err.Error(), cfg.Passwd) {
			t.Errorf("have: %v\nwant: a DSNError without the password", err)
		}
	}
}

// A connector logs the warnings of its rule.
func TestOpen_logsWarnings(t *testing.T) {
	path := ruleFile(t, strings.Replace(benchRuleYAML, "{keyGenerateStrategy:", "{colour: red, keyGenerateStrategy:", 1))
	log := defaultLog(t)
	db, _, err := Open("u:p@tcp(127.0.0.1:1)/app?shardkeyRule=" + path)
	noError(t, err)
	check(t, db.Close())
	log.want(t, "opened", `unknown key \"colour\"`, 1)
}

// TestParams_areInTheDocs checks that docs/reference/configuration.md lists the parameters and their
// values.
func TestParams_areInTheDocs(t *testing.T) {
	page := string(must(os.ReadFile("../docs/reference/configuration.md"))(t))
	for _, p := range params {
		row := "| `" + p.name + "` | "
		if p.values != nil {
			row += "`" + strings.Join(p.values, "`, `") + "` |"
		}
		contains(t, page, row)
	}
}

// A server of unknown kind is queried for its shards, once for each connector.
func TestServer_queriedForItsShards(t *testing.T) {
	for _, c := range []struct {
		comment string
		shards  bool
		asked   int
		want    string
	}{
		{"", true, 1, `server: vitess ("8.0.40")`},
		{"", false, 1, `server: other ("8.0.40")`},
		{"MySQL Community Server - GPL", false, 0, `server: mysql ("8.0.40")`},
	} {
		base := &fakedb.Server{Version: "8.0.40", Comment: c.comment, Query: func(query string) (driver.Rows, error) {
			if c.shards && query == "SHOW VITESS_SHARDS" {
				return fakedb.Row("app/-80"), nil
			}
			return nil, driver.ErrSkip
		}}
		db, connector := openFake(t, base, snowflakeRule(t, "ruled"))
		contains(t, fmt.Sprint(connector), "server: auto, not asked yet", "before")
		for range 3 {
			mustExec(t, db, "INSERT INTO ruled (a) VALUES (1)")
		}
		contains(t, fmt.Sprint(connector), c.want)
		equal(t, base.Count("queryContext SHOW VITESS_SHARDS"), c.asked, c.comment, "asked", "times")
	}
}

// Connectors of one file share its rule, also after a reload.
func TestOpen_sharesTheRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := ruleFile(t, watched("t_order_${0..1}", 1))
		rules := map[*rule.Rule]bool{}
		var all []*Connector
		for range 20 {
			db := openWatched(t, path, "&shardkeyReload=1s")
			defer db.Close()
			all = append(all, ConnectorOf(db))
		}
		for _, c := range all {
			rules[c.Rule()] = true
		}
		write(t, path, watched("t_order_${0..2}", 1))
		time.Sleep(5 * time.Second)
		for _, c := range all {
			rules[c.Rule()] = true
		}
		equal(t, len(rules), 2, "rules of 20 connectors before and after a reload")
	})
}
