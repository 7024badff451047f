package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// Every variant of a workload inserts the same number of rows, with keys of its own.
func TestWorkloads(t *testing.T) {
	withRule(t)
	cfg := must.Get(mysql.ParseDSN(testserver.SQL(t)))(t)
	admin := must.Open(t, "mysql", cfg.FormatDSN())
	for _, w := range workloads() {
		if w.interpolate {
			continue // the same programs
		}
		counts := map[string]string{}
		for _, i := range w.variants {
			counts[variants[i].name] = rowsOf(t, subject{admin: admin, cfg: cfg}, &program{workload: w, variant: i})
		}
		for name, have := range counts {
			must.Equal(t, have, counts[variants[plain].name], w.name, name)
		}
	}
}

// rowsOf runs two turns of a program and returns a description of the table's rows.
func rowsOf(t *testing.T, s subject, p *program) string {
	t.Helper()
	must.Do(t, (options{}).startProgram(s, p), p.name, variants[p.variant].name)
	defer s.admin.Exec("DROP DATABASE " + schema(p.variant))
	defer p.db.Close()
	for range 2 {
		must.Get(p.turn(0, 3))(t, p.name, variants[p.variant].name)
	}
	var rows, small, sum, least int64
	schema := schema(p.variant)
	orders := "(SELECT id, user_id + amount AS n, note FROM " + schema + ".t_order UNION ALL SELECT id, user_id, note FROM " + schema +
		".t_other UNION ALL SELECT id, CRC32(CONCAT_WS(',', c0, c1, c2, c3, c4, c9)), 'none' FROM " + schema + ".t_nullable) AS orders"
	must.Do(t, s.admin.QueryRow("SELECT COUNT(*), SUM(id <= 1000), SUM(n), MIN(CHAR_LENGTH(note)) FROM "+orders).Scan(&rows, &small, &sum, &least))
	return fmt.Sprintf("%d rows, %d with stored keys, sum of values %d, notes of %d", rows, small, sum, least)
}

func TestSentQuery(t *testing.T) {
	withRule(t)
	have, err := sentQuery(2)
	want := strings.Replace(insertQuery(2, true), "(?, ?, ?, ?)", "(?, ?, ?, LAST_INSERT_ID(?))", 1)
	fold := func(s string) string { return strings.NewReplacer(" ", "", "`", "").Replace(s) }
	if err != nil || fold(have) != fold(want) {
		t.Errorf("have: %s, %v\nwant: %s", have, err, want)
	}
}

func withRule(t *testing.T) {
	t.Helper()
	must.Do(t, registerRule())
	t.Cleanup(func() { driver.DeregisterRule("bench") })
}
