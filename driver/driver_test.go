package driver

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

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

func TestOpen_refuses(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	noError(t, os.WriteFile(bad, []byte("rules:\n- !SHARDING\n  tables: []\n"), 0o600))
	tests := []struct {
		value string
		is    error
		want  string
	}{
		{"", ErrNoRule, "add ?shardkeyRule="},
		{"?shardkeyRule=nowhere/rule.yaml", fs.ErrNotExist, `"nowhere/rule.yaml" is neither a registered rule`},
		{"?shardkeyRule=" + bad, nil, "bad.yaml:3"},
		{"?shardkeyRule=" + t.TempDir(), nil, "the rule does not load"},
		{"?shardkeyRul=x", nil, "did you mean shardkeyRule?"},
	}
	for _, tt := range tests {
		db, err := sql.Open("shardkey", "u:s3cr3t@tcp(127.0.0.1:1)/app"+tt.value)
		if err == nil {
			_ = db.Close()
			t.Errorf("%s: no error", tt.value)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s\nhave: %v\nwant: %s", tt.value, err, tt.want)
		}
		if tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: %v is not %v", tt.value, err, tt.is)
		}
	}
}

// Instrumenting wrappers open the empty DSN to get the driver.
func TestOpen_emptyDSN(t *testing.T) {
	db := must(sql.Open("shardkey", ""))(t)
	defer db.Close()
	if _, ok := db.Driver().(Driver); !ok {
		t.Errorf("the driver is %T", db.Driver())
	}
	if err := db.Ping(); !errors.Is(err, ErrNoRule) {
		t.Errorf("have: %v\nwant: ErrNoRule", err)
	}
}

func TestRegisterRule_refuses(t *testing.T) {
	if err := RegisterRule("", testRule(t)); err == nil {
		t.Error("an empty name is taken")
	}
	if err := RegisterRule("x", nil); !errors.Is(err, ErrNoRule) {
		t.Errorf("nil rule: %v", err)
	}
}

// TestDriver_openIsOneConnection: Driver.Open makes a connector for one
// connection, and that connection's Close ends it.
func TestDriver_openIsOneConnection(t *testing.T) {
	base := &fakeBase{kind: "minimal"}
	c := must(Wrap(fakeDriver{base}, taggedRule(t, "t", 7)).Open("name"))(t)
	liveOf(t, "open", 7, 1)
	noError(t, c.Close())
	liveOf(t, "closed", 7, 0)
	if base.calls[0] != "open name" || base.open != 0 {
		t.Errorf("the base saw %s", lines(base.calls))
	}
}

func TestWrap_refuses(t *testing.T) {
	if _, err := Wrap(nil, testRule(t)).Open("x"); err == nil {
		t.Error("a nil driver opens")
	}
	if _, err := Wrap(fakeDriver{&fakeBase{}}, nil).Open("x"); !errors.Is(err, ErrNoRule) {
		t.Errorf("nil rule: %v", err)
	}
	if _, err := Wrap(mysql.MySQLDriver{}, testRule(t)).Open("not a DSN"); err == nil || strings.Contains(err.Error(), "shardkey") {
		t.Errorf("have: %v\nwant: the base's own error", err)
	}
}

// The generators of a wrapped MySQL driver may use its data source.
func TestWrap_dsnOfTheHost(t *testing.T) {
	tests := []struct{ name, want string }{
		{"u:p@tcp(h:1)/app", "u:p@tcp(h:1)/app"},
		{"sqlmock_db_0", ""},
		{"", ""},
	}
	for _, tt := range tests {
		equal(t, mysqlDSN(tt.name), tt.want, tt.name)
	}
}
