package driver

import (
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

func offlineConnector(t *testing.T, base *fakeBase, opts ...Option) *Connector {
	t.Helper()
	r := must(rule.Parse(t.Name(), []byte(`
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds.t_order_${0..3}
      tableStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: m4}}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}
    t_user:
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
    t_token:
      keyGenerateStrategy: {column: id, keyGeneratorName: uuid}
  shardingAlgorithms: {m4: {type: MOD, props: {sharding-count: 4}}}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 3}}
    uuid: {type: UUID}
`)))(t)
	c := must(NewConnector(base, r, opts...))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestPlan_isWhatIsSent(t *testing.T) {
	for _, text := range []string{
		"INSERT INTO t_order (user_id) VALUES (?)",
		"INSERT INTO t_order_1 (user_id) VALUES (1), (5)",
		"INSERT INTO t_order (order_id, user_id) VALUES (NULL, ?), (?, ?)",
		"INSERT INTO t_token (name) VALUES (?)",
		"UPDATE t_order SET user_id = 1",
		"INSERT INTO other (a) VALUES (?)",
	} {
		base := &fakeBase{kind: "direct"}
		c := offlineConnector(t, base, Config{Server: "other"})
		p, err := c.Plan(text)
		if err != nil {
			t.Errorf("%s\nhave: %v\nwant: no error", text, err)
			continue
		}
		if len(base.calls) > 0 || healthOf(c)["snowflake"].Issued != 0 || c.Stats().Verification != (Verification{}) {
			t.Errorf("%s: it asked %q, made %d keys, counted %+v", text, base.calls, healthOf(c)["snowflake"].Issued, c.Stats().Verification)
		}
		db := sql.OpenDB(c)
		args := make([]any, strings.Count(text, "?"))
		for i := range args {
			args[i] = 1
		}
		mustExec(t, db, text, args...)
		if !p.Literal && !strings.Contains(strings.Join(base.calls, "\n"), p.Query) {
			t.Errorf("%s\nhave: %q\nsent: %q", text, p.Query, base.calls)
		}
		_ = db.Close()
	}
}

func TestPlan_refusesAsExec(t *testing.T) {
	var log strings.Builder
	c := offlineConnector(t, &fakeBase{kind: "direct"}, Config{Server: "mysql"}, WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	for _, text := range []string{
		"INSERT INTO t_order_4 (user_id) VALUES (1)",
		"INSERT INTO t_order (user_id VALUES (1)",
		"INSERT INTO t_order_1 (user_id) VALUES (1), (6), (?)",
		"INSERT INTO t_order VALUES (1)",
	} {
		if p, err := c.Plan(text); !errors.Is(err, ErrUnsupportedStatement) && !errors.Is(err, ErrWrongShard) {
			t.Errorf("%s\nhave: %v, %v\nwant: refused", text, p, err)
		}
	}
	var at *StatementError
	var wrong *WrongShardError
	if _, err := c.Plan("INSERT INTO t_order_1 (user_id) VALUES (?), (6)"); !errors.As(err, &at) || !errors.As(err, &wrong) || at.Row != 2 || wrong.Meant.Table != "t_order_2" {
		t.Errorf("have: %v\nwant: row 2 belongs to t_order_2", err)
	}
	if c.Stats().Verification != (Verification{}) || log.Len() > 0 {
		t.Errorf("counted %+v, logged %s", c.Stats().Verification, log.String())
	}
}

func TestPlan_ofAServerThatNobodyHasAsked(t *testing.T) {
	const text = "INSERT INTO t_order (user_id) VALUES (1) ON DUPLICATE KEY UPDATE user_id = 2"
	for server, reports := range map[string]bool{"auto": true, "mysql": true, "mariadb": true, "other": false} {
		p, err := offlineConnector(t, &fakeBase{}, Config{Server: server}).Plan(text)
		if err != nil || strings.Contains(p.Query, "LAST_INSERT_ID(") != reports {
			t.Errorf("%s\nhave: %v\nwant: reports by LAST_INSERT_ID(): %v", server, err, reports)
		}
	}
}

func TestPlan_withAnotherPolicyForUnlistedTables(t *testing.T) {
	for _, policy := range []string{"warn", "pass"} {
		c := offlineConnector(t, &fakeBase{}, Config{Unlisted: policy}, WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
		if p, err := c.Plan("INSERT INTO t_order_4 (user_id) VALUES (1)"); err != nil || len(p.Inserts) != 0 {
			t.Errorf("%v: have %v, want: it passes", policy, err)
		}
	}
}

func TestPlan_afterClose(t *testing.T) {
	c := offlineConnector(t, &fakeBase{})
	_ = c.Close()
	if _, err := c.Plan("SELECT 1"); !errors.Is(err, spi.ErrClosed) {
		t.Errorf("have: %v\nwant: %v", err, spi.ErrClosed)
	}
}
