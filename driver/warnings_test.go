package driver

import (
	"bytes"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/rule"
)

func TestDSN_ruleWarnings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rule.yaml")
	text := "rules:\n- !SHARDING\n  tables:\n    t: {keyGenerateStrategy: {column: id, keyGeneratorName: k}, colour: red}\n  keyGenerators: {k: {type: TEST}}\n"
	noError(t, os.WriteFile(path, []byte(text), 0o600))
	var log bytes.Buffer
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	for _, c := range []struct{ param, want string }{
		{"", ""},
		{"&shardkeyRuleWarnings=log", ""},
		{"&shardkeyRuleWarnings=error", `shardkey: DSN: parameter shardkeyRuleWarnings: the rule has 1 warnings, the first being: ` + path + `:4:65: unknown key "colour" in table "t": it is ignored`},
		{"&shardkeyRuleWarnings=loud", `parameter shardkeyRuleWarnings: "loud" is unknown; it must be one of log, error`},
	} {
		log.Reset()
		db, err := sql.Open("shardkey", "u:p@tcp(127.0.0.1:1)/app?shardkeyRule="+path+c.param)
		if err == nil {
			_ = db.Close()
		}
		var wrong *rule.Error
		switch {
		case c.want == "" && (err != nil || !strings.Contains(log.String(), `unknown key \"colour\"`)):
			t.Errorf("%s\nhave: %v, logged: %s\nwant: a line in the log", c.param, err, log.String())
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || log.Len() > 0):
			t.Errorf("%s\nhave: %v, logged: %s\nwant: %s", c.param, err, log.String(), c.want)
		case c.param == "&shardkeyRuleWarnings=error" && (!errors.As(err, &wrong) || wrong.Line != 4):
			t.Errorf("have: %v\nwant: a *rule.Error in its chain", err)
		}
	}
}

func TestDSN_unlistedTakesThreeWords(t *testing.T) {
	for policy, want := range map[string]string{"": "refuse", "refuse": "refuse", "warn": "warn", "pass": "pass"} {
		u := unlisted{policy: policy}
		equal(t, u.policyFor(&rule.UnlistedTableError{Like: new(rule.Table)}), want, policy)
	}
	path := filepath.Join(t.TempDir(), "rule.yaml")
	text := "rules: [!SHARDING {tables: {t: {keyGenerateStrategy: {column: id, keyGeneratorName: k}}}, keyGenerators: {k: {type: TEST}}}]"
	noError(t, os.WriteFile(path, []byte(text), 0o600))
	_, err := sql.Open("shardkey", "u:p@tcp(127.0.0.1:1)/app?shardkeyUnlisted=ignore&shardkeyRule="+path)
	if want := `parameter shardkeyUnlisted: "ignore" is unknown; it must be one of refuse, warn, pass`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("have: %v\nwant: %s", err, want)
	}
}
