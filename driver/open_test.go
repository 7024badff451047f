package driver

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Health, readiness and figures are there while the database is away.
func TestOpen_withoutServer(t *testing.T) {
	noError(t, RegisterRule(t.Name(), benchRule(t)))
	defer DeregisterRule(t.Name())
	db, c, err := Open("u:secret@tcp(127.0.0.1:1)/app?shardkeyRule=" + t.Name())
	if err != nil {
		t.Fatal(err)
	}
	if err := db.PingContext(t.Context()); err == nil {
		t.Fatal("have: a server\nwant: none")
	}
	if ConnectorOf(db) != c || healthOf(c)["snowflake"].Err != nil {
		t.Errorf("have: %v, %v\nwant: the connector, whose generator is well", ConnectorOf(db), healthOf(c))
	}
	if c.host.DSN.Reveal() != "u:secret@tcp(127.0.0.1:1)/app" {
		t.Error("the generators do not know the DSN")
	}
	if err := db.Close(); err != nil || ConnectorOf(db) != c {
		t.Errorf("after Close\nhave: %v, %v\nwant: the connector", ConnectorOf(db), err)
	}
}

func TestOpen_errors(t *testing.T) {
	for _, c := range []struct{ dsn, want string }{
		{"", "shardkey: DSN: it is empty; no sharding rule"},
		{"u@tcp(h:1)/app", "no sharding rule"},
		{"u@tcp(h:1)/app?shardkeyRule=nowhere.yaml", "nowhere.yaml"},
		{"u@tcp(h:1)/app?shardkeyRule=nobody&shardkeyRul=x", "did you mean shardkeyRule?"},
	} {
		db, conn, err := Open(c.dsn)
		if db != nil || conn != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q\nhave: %v, %v, %v\nwant: %s", c.dsn, db, conn, err, c.want)
		}
		var wrong *DSNError
		if !errors.As(err, &wrong) {
			t.Errorf("%q\nhave: %T\nwant: a *DSNError", c.dsn, err)
		}
	}
}

// A parameter of the DSN overrides an option, and a later option an earlier one.
func TestOptions_order(t *testing.T) {
	noError(t, RegisterRule(t.Name(), benchRule(t)))
	defer DeregisterRule(t.Name())
	path := filepath.Join(t.TempDir(), "rule.yaml")
	write(t, path, benchRuleYAML)
	logger := slog.New(slog.DiscardHandler)
	db, c, err := Open("u@tcp(127.0.0.1:1)/app?shardkeyRule="+path+"&shardkeyServer=mysql&shardkeyReload=off",
		Config{Server: "tidb", Statements: "off", Reload: time.Minute}, Config{Statements: "always", Unlisted: "warn"}, nil, WithLogger(logger))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if want := (Config{Server: "mysql", Statements: "always", Unlisted: "warn"}); c.config != want || c.logger != logger {
		t.Errorf("have: %+v\nwant: %+v", c.config, want)
	}
}

func TestConfig_errors(t *testing.T) {
	for want, config := range map[string]Config{
		`shardkeyServer: "mysq" is unknown; it must be one of auto, mysql, mariadb, vitess, tidb, other; did you mean mysql?`: {Server: "mysq"},
		`shardkeyUnlisted: "x" is unknown`:               {Unlisted: "x"},
		`shardkeyRuleWarnings: "x" is unknown`:           {RuleWarnings: "x"},
		`shardkeyVerify: "x" is unknown`:                 {Verify: "x"},
		`shardkeyStatements: "all" is unknown`:           {Statements: "all"},
		`shardkeyReload: "1ms" must be off or`:           {Reload: time.Millisecond},
		`shardkeyReload: "-1s" must be off or`:           {Reload: -time.Second},
		`the rule bench.yaml was not loaded from a file`: {Reload: time.Second},
	} {
		_, err := NewConnector(&fakeBase{}, benchRule(t), config)
		var wrong *DSNError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("have: %v\nwant: %s", err, want)
		}
	}
}

func TestEnvRule_sharesItsGenerators(t *testing.T) {
	const dsn = "u@tcp(127.0.0.1:1)/app?shardkeyRule=env:SHARDKEY_TEST_RULE"
	t.Setenv("SHARDKEY_TEST_RULE", benchRuleYAML)
	var opened [2]*Connector
	for i := range opened {
		db, c, err := Open(dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		opened[i] = c
	}
	if opened[0].Rule() != opened[1].Rule() || opened[0].Lookup("", "t_order").Generator != opened[1].Lookup("", "t_order").Generator {
		t.Error("two databases with the same rule have generators of their own")
	}
	t.Setenv("SHARDKEY_TEST_RULE", strings.ReplaceAll(benchRuleYAML, "t_order", "t_item"))
	db, c, err := Open(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if c.Lookup("", "t_item") == nil || c.Lookup("", "t_order") != nil {
		t.Error("the variable's new text is not read")
	}
}

func TestEnvRule_errors(t *testing.T) {
	t.Setenv("SHARDKEY_TEST_EMPTY", " \n")
	t.Setenv("SHARDKEY_TEST_BAD", strings.Replace(benchRuleYAML, "column:", "colunm:", 1))
	t.Setenv("SHARDKEY_TEST_PATH", filepath.Join("conf", "rule.yaml"))
	t.Setenv("SHARDKEY_TEST_GOOD", benchRuleYAML)
	for value, want := range map[string]string{
		"env:SHARDKEY_TEST_UNSET": "the environment variable SHARDKEY_TEST_UNSET is not set",
		"env:SHARDKEY_TEST_EMPTY": "the environment variable SHARDKEY_TEST_EMPTY is empty",
		"env:SHARDKEY_TEST_BAD":   "env:SHARDKEY_TEST_BAD:5:37: ",
		"env:SHARDKEY_TEST_PATH":  "(it is to have the rule's text, not its path)",
		"env:":                    "env: is followed by no variable's name",
		"env:a b":                 "env: is followed by no variable's name",
		"env:SHARDKEY_TEST_GOOD&shardkeyReload=10s": "the rule env:SHARDKEY_TEST_GOOD was not loaded from a file: there is nothing to look at",
	} {
		_, _, err := Open("u:s3cr3t@tcp(h:1)/app?shardkeyRule=" + value)
		var wrong *DSNError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s\nhave: %v\nwant: %s", value, err, want)
		}
	}
}
