package driver

import (
	"strings"
	"testing"
)

// TestPlan_parsesOnce counts the texts that are parsed.
func TestPlan_parsesOnce(t *testing.T) {
	ours, _ := one(t)
	c := must(ours.Conn(t.Context()))(t)
	defer c.Close()
	var connector *Connector
	noError(t, c.Raw(func(raw any) error { connector = ConnectorOf(raw); return nil }))
	long := "INSERT INTO ruled (a) VALUES (1)" + strings.Repeat(", (2)", maxLiteralBytes/5+1)
	for _, of := range []struct {
		name, query string
		args        []any
		want        int64
	}{
		{"kind of keys not known yet", "INSERT INTO ruled (a) VALUES (?)", []any{1}, 1},
		{"kind of keys known", "INSERT INTO ruled (a) VALUES (?)", []any{1}, 1},
		{"bound, cached", "INSERT INTO ruled (a) VALUES (?)", []any{1}, 0},
		{"literal", "INSERT INTO ruled (a) VALUES (1)", nil, 1},
		{"literal, of the connection", "INSERT INTO ruled (a) VALUES (1)", nil, 0},
		{"too long for the cache", long, nil, 1},
		{"too long for the cache, again", long, nil, 1},
		{"columns not known yet", "INSERT INTO ruled VALUES (NULL, ?)", []any{1}, 1},
		{"columns known", "INSERT INTO ruled VALUES (NULL, ?), (NULL, 2)", []any{1}, 1},
		{"upsert", "INSERT INTO ruled (a) VALUES (?) ON DUPLICATE KEY UPDATE a = 3", []any{1}, 1},
		{"query", "INSERT INTO ruled (a) SELECT 1", nil, 1},
		{"no rule", "INSERT INTO nowhere (a) VALUES (1)", nil, 1},
		{"no rule, again", "INSERT INTO nowhere (a) VALUES (1)", nil, 1},
		{"no rule, cached", "INSERT INTO nowhere (a) VALUES (1)", nil, 0},
		{"no insert", "SELECT 1", nil, 0},
	} {
		plans := connector.rules.Load().plans
		before := plans.parses.Load()
		_, _ = c.ExecContext(t.Context(), of.query, of.args...)
		equal(t, plans.parses.Load()-before, of.want, of.name)
	}
}

// The first key shows that a custom generator makes integers: from then on a statement on the
// same connection carries LAST_INSERT_ID(key).
func TestPlan_kindOfTheFirstKey(t *testing.T) {
	side := newAnswering(t, "direct", [][2]string{{"id", "bigint(20)"}}, "mysql")
	side.base.answer = cannedAnswer{Affected: 1}
	const query = "INSERT INTO t_boxed (a) VALUES (?)"
	for range 2 {
		must(side.conn.ExecContext(t.Context(), query, benchArgs[:1]))(t)
	}
	if have := side.base.calls[len(side.base.calls)-1]; !strings.Contains(have, "LAST_INSERT_ID(?)") {
		t.Errorf("have: %s\nwant: LAST_INSERT_ID(?)", have)
	}
}
