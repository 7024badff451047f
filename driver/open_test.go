package driver

import (
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/rule"
)

// Health, readiness and figures are there while the database is away.
func TestOpen_withoutServer(t *testing.T) {
	if err := RegisterRule(t.Name(), benchRule(t)); err != nil {
		t.Fatal(err)
	}
	defer DeregisterRule(t.Name())
	db, c, err := Open("u:secret@tcp(127.0.0.1:1)/app?shardkeyRule=" + t.Name())
	if err != nil {
		t.Fatal(err)
	}
	if err := db.PingContext(t.Context()); err == nil {
		t.Fatal("have: a server\nwant: none")
	}
	if ConnectorOf(db) != c || c.Health()["snowflake"].Err != nil {
		t.Errorf("have: %v, %v\nwant: the connector, whose generator is well", ConnectorOf(db), c.Health())
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

// The DSN goes before Open's options, and these before the registered ones.
func TestOptions_order(t *testing.T) {
	const name = "options of a program"
	if err := RegisterRule(t.Name(), benchRule(t)); err != nil {
		t.Fatal(err)
	}
	defer DeregisterRule(t.Name())
	first, second := slog.New(slog.NewTextHandler(io.Discard, nil)), slog.New(slog.NewTextHandler(io.Discard, nil))
	if err := RegisterOptions(name, WithServer(ServerMariaDB), WithStatements(StatementsOff), WithLogger(first), nil, WithUnlisted(rule.UnlistedPass)); err != nil {
		t.Fatal(err)
	}
	dsn := "u@tcp(127.0.0.1:1)/app?shardkeyRule=" + t.Name() + "&shardkeyOptions=options%20of%20a%20program"
	db, c, err := Open(dsn+"&shardkeyServer=mysql&shardkeyUnlisted=warn", WithStatements(StatementsAll), WithLogger(second))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if c.servers.kind != ServerMySQL || c.kept.mode != StatementsAll || c.logger != second || c.unlisted.policy != rule.UnlistedWarn {
		t.Errorf("have: %v, %v, unlisted %v\nwant: the DSN's server and unlisted, and Open's statements and logger", c.servers.kind, c.kept.mode, c.unlisted.policy)
	}
	other, err := sql.Open("shardkey", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if c := ConnectorOf(other); c.servers.kind != ServerMariaDB || c.kept.mode != StatementsOff || c.logger != first || c.unlisted.policy != rule.UnlistedPass {
		t.Errorf("have: %v, %v, unlisted %v\nwant: the registered options", c.servers.kind, c.kept.mode, c.unlisted.policy)
	}
}

func TestOptions_errors(t *testing.T) {
	if err := RegisterOptions(""); err == nil {
		t.Error("an empty name is registered")
	}
	if err := RegisterOptions("known", WithServer("postgres")); err != nil {
		t.Fatal(err)
	}
	if err := RegisterRule(t.Name(), benchRule(t)); err != nil {
		t.Fatal(err)
	}
	defer DeregisterRule(t.Name())
	for value, want := range map[string]string{
		"unknown": "parameter shardkeyOptions: no options of this name were given to driver.RegisterOptions (registered: ",
		"known":   "parameter shardkeyServer: ",
	} {
		if _, err := sql.Open("shardkey", "u@tcp(h:1)/app?shardkeyRule="+t.Name()+"&shardkeyOptions="+value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nhave: %v\nwant: %s", value, err, want)
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
