package doctor_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/doctor"
	_ "github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// The state in the application's own database is examined with and without its host, also while the
// program that opened it generates keys.
func TestExamine_ownState(t *testing.T) {
	if testserver.EachAndOldest(t, TestExamine_ownState) {
		return
	}
	const worker = "CREATE TABLE shardkey_worker (namespace VARCHAR(64), worker_id INT, owner VARBINARY(64), " +
		"reserved_until BIGINT, free_from BIGINT, holder VARCHAR(255), since BIGINT, PRIMARY KEY (namespace, worker_id));"
	for _, c := range []struct{ name, rule, state, want string }{
		{"leases", leased(""), worker + "ALTER TABLE shardkey_worker ENGINE=MyISAM", "error: leases: a, table shardkey_worker%s: its engine is MyISAM"},
		{"segments", ruleOf(segments), "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) PRIMARY KEY, max_id BIGINT, step INT)",
			"error: segments: g, table leaf_alloc%s: it has no row"},
		{"tickets", ruleOf(tickets), "", "error: tickets: g, table Tickets64%s: the table does not exist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dsn := database(t)
			run(t, dsn, healthy+c.state)
			has := func(found []doctor.Finding, want string) bool {
				return slices.ContainsFunc(found, func(f doctor.Finding) bool { return strings.Contains(line(f), want) })
			}
			found := examineDBs(t, c.rule, map[string]*sql.DB{"": open(t, dsn)})
			if !has(found, fmt.Sprintf(c.want, "")) || !has(found, "ok: table t_order.order_id") {
				t.Errorf("without a host\nhave: %q\nwant: %s", found, c.want)
			}
			file := filepath.Join(t.TempDir(), "rule.yaml")
			must.Do(t, os.WriteFile(file, []byte(c.rule), 0o600))
			db := must.Get(sql.Open("shardkey", dsn+"&shardkeyRule="+file))(t)
			defer db.Close()
			r := must.Get(rule.Load(file))(t)
			if c.name == "leases" {
				must.Get(db.Exec("INSERT INTO t_order_0 (user_id) VALUES (1)"))(t)
			}
			cfg := must.Get(mysql.ParseDSN(dsn))(t)
			c.want = fmt.Sprintf(c.want, fmt.Sprintf(" at tcp(%s)/%s", cfg.Addr, cfg.DBName))
			hosts := map[string]spi.Host{"": {DSN: spi.NewSecret(dsn)}}
			report, err := doctor.Examine(t.Context(), db, r, doctor.Options{Hosts: hosts})
			if err != nil || !has(report.Findings, c.want) || c.name == "leases" && !has(report.Findings, "1 of 1024 worker IDs are held") {
				t.Errorf("with a host\nhave: %q, %v\nwant: %s", report.Findings, err, c.want)
			}
		})
	}
}

// What the user may not see is a finding of that table, and everything else is examined.
func TestExamine_partialPrivileges(t *testing.T) {
	if testserver.EachAndOldest(t, TestExamine_partialPrivileges) {
		return
	}
	dsn := database(t)
	run(t, dsn, "CREATE TABLE t_order_0 (order_id INT NOT NULL PRIMARY KEY); "+
		"CREATE TABLE t_order_1 (order_id INT NOT NULL AUTO_INCREMENT PRIMARY KEY)")
	own := user(t, dsn, "GRANT INSERT (order_id) ON DB.t_order_0 TO USER", "GRANT SELECT, INSERT ON DB.t_order_1 TO USER")
	var have []string
	for _, f := range examineDBs(t, ruleOf(snowflakes), map[string]*sql.DB{"": open(t, own)}) {
		if f.Severity != doctor.OK {
			have = append(have, fmt.Sprint(f.Severity, " ", f.Check, " ", f.Actual))
		}
	}
	want := []string{"warning rights [t_order_0]", "error key-type [t_order_0 t_order_1]", "info auto-increment [t_order_1]"}
	if !slices.Equal(have, want) {
		t.Errorf("have: %q\nwant: %q", have, want)
	}
}

// A pool is left as it was: no connection is kept, and none is left with another session.
func TestExamine_leavesThePool(t *testing.T) {
	dsn := database(t)
	run(t, dsn, healthy)
	db := open(t, dsn)
	db.SetMaxOpenConns(1)
	mode := func() (mode string) {
		must.Do(t, db.QueryRow("SELECT @@SESSION.sql_mode").Scan(&mode))
		return mode
	}
	before := mode()
	examineDBs(t, leased(""), map[string]*sql.DB{"": db})
	if after := mode(); after != before || before == "" || db.Stats().InUse != 0 {
		t.Errorf("have: sql_mode %q, %d connections in use\nwant: %q, 0", after, db.Stats().InUse, before)
	}
}

func TestExamine_wrongArguments(t *testing.T) {
	r := must.Get(rule.Parse("rule.yaml", []byte(strings.Replace(ruleOf(snowflakes), "t_order_$", "ds_${0..1}.t_order_$", 1))))(t)
	connector := must.Get(mysql.NewConnector(mysql.NewConfig()))(t)
	db := sql.OpenDB(connector)
	defer db.Close()
	for _, c := range []struct {
		name  string
		dbs   map[string]*sql.DB
		rule  *rule.Rule
		typed bool
	}{
		{"no rule", map[string]*sql.DB{"": db}, nil, true},
		{"an empty rule", map[string]*sql.DB{"": db}, new(rule.Rule), true},
		{"no database", map[string]*sql.DB{"": nil}, r, false},
		{"no databases", nil, r, false},
		{"another data source", map[string]*sql.DB{"ds_7": db}, r, true},
		{"one without a name among several", map[string]*sql.DB{"": db, "ds_1": db}, r, false},
	} {
		report, err := doctor.ExamineAll(t.Context(), c.dbs, c.rule)
		if typed := (*rule.Error)(nil); err == nil || errors.As(err, &typed) != c.typed || len(report.Findings) > 0 {
			t.Errorf("%s\nhave: %v, %v\nwant: an error", c.name, report, err)
		}
	}
}

// A data source that no database is given for is reported.
func TestExamineAll_notGiven(t *testing.T) {
	dsn := database(t)
	run(t, dsn, healthy)
	text := strings.Replace(ruleOf(snowflakes), "t_order_$", "ds_${0..1}.t_order_$", 1)
	have := remarks(examineDBs(t, text, map[string]*sql.DB{"DS_1": open(t, dsn)}))
	if len(have) != 1 || have[0] != "info: reachable ds_0: it was not examined: there is no database for it" {
		t.Errorf("have: %q", have)
	}
}
