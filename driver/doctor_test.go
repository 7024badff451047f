package driver_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/rule"
)

const doctorRule = `
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds_${0..1}.t_order_${0..1},ds_1.t_order_2
      keyGenerateStrategy: {column: order_id, keyGeneratorName: g}
  keyGenerators:
    g: {type: SNOWFLAKE, props: {worker-id: 7, max-vibration-offset: 1}}
`

// TestDoctor_ofAConnector looks at one of the two databases of a rule, which is known
// by its tables.
func TestDoctor_ofAConnector(t *testing.T) {
	if testserver.Each(t, TestDoctor_ofAConnector) {
		return
	}
	dsn := testserver.Database(t)
	r, err := rule.Parse("doctor.yaml", []byte(doctorRule))
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.RegisterRule("doctor "+t.Name(), r); err != nil {
		t.Fatal(err)
	}
	defer driver.DeregisterRule("doctor " + t.Name())
	db, err := sql.Open("shardkey", dsn+"?shardkeyRule=doctor "+t.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for i, c := range []struct{ change, want string }{
		{"CREATE TABLE t_order_0 (order_id BIGINT PRIMARY KEY, x INT)", "(t_order_1): the table is not there"}, // ds_0, of which less is missing
		{"CREATE TABLE t_order_1 LIKE t_order_0", ""},
		{"CREATE TABLE t_order_2 LIKE t_order_0", ""}, // ds_1
		{"ALTER TABLE t_order_2 MODIFY order_id INT", "key-type t_order.order_id (t_order_2)"},
	} {
		if _, err := db.Exec(c.change); err != nil {
			t.Fatal(err)
		}
		report := driver.ConnectorOf(db).Doctor(t.Context())
		err := report.Err()
		switch {
		case c.want == "" && (err != nil || len(report.Findings) < 2 || strings.Count(report.String(), "\n") != 1):
			t.Errorf("%s\nhave: %v\n%s\nwant: none but ok", c.change, err, report)
		case c.want != "" && (!errors.Is(err, driver.ErrUnfit) || !strings.Contains(err.Error(), c.want) || !strings.Contains(report.String(), "  fix: ")):
			t.Errorf("%s\nhave: %v\n%s\nwant: %s", c.change, err, report, c.want)
		}
		text, err := json.Marshal(report)
		if err != nil || !strings.HasPrefix(string(text), `{"findings":[{"severity":"ok","check":"server","what":`) {
			t.Errorf("%d: %s, %v", i, text, err)
		}
	}
	// No key and no connection was used up.
	if n := db.Stats().OpenConnections; n != 1 {
		t.Errorf("have: %d connections", n)
	}
	for name, h := range driver.ConnectorOf(db).Health() {
		if h.Issued != 0 {
			t.Errorf("%s has issued %d keys", name, h.Issued)
		}
	}
}

func TestDoctor_closed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "doctor.yaml")
	writeFile(t, file, doctorRule)
	db, err := sql.Open("shardkey", "u:secret-word@tcp(127.0.0.1:1)/d?shardkeyRule="+file)
	if err != nil {
		t.Fatal(err)
	}
	c := driver.ConnectorOf(db)
	if text := c.Doctor(t.Context()).String(); !strings.Contains(text, "error: reachable: it cannot be asked: ") || strings.Contains(text, "secret-word") {
		t.Errorf("have: %s", text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if text := c.Doctor(ctx).String(); !strings.Contains(text, "error: reachable: it did not answer in time: ") {
		t.Errorf("have: %s", text)
	}
	db.Close()
	if err := c.Doctor(t.Context()).Err(); !errors.Is(err, driver.ErrUnfit) || !strings.Contains(err.Error(), "closed") {
		t.Errorf("have: %v", err)
	}
}
