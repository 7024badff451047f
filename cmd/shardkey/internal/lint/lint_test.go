package lint

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
)

// unconnected is a connector that can't connect.
type unconnected struct{}

func (unconnected) Connect(context.Context) (sqldriver.Conn, error) {
	return nil, driver.ErrNoConnection
}
func (unconnected) Driver() sqldriver.Driver { return nil }

// linter returns a Linter for a rule with tables.
func linter(t testing.TB, tables string) *Linter {
	t.Helper()
	r := must.Get(rule.Parse("rule.yaml", []byte(`rules: [!SHARDING {tables: {`+tables+`},
  keyGenerators: {keys: {type: SNOWFLAKE, props: {worker-id: 1}}},
  shardingAlgorithms: {a: {type: MOD, props: {sharding-count: 2}}}}]`)))(t)
	quiet := driver.WithLogger(slog.New(slog.DiscardHandler))
	c := must.Get(driver.NewConnector(unconnected{}, r, driver.Config{Server: "other"}, quiet))(t)
	t.Cleanup(func() { _ = c.Close() })
	return &Linter{Connector: c, Progress: func(string) {}}
}

const (
	plainTable   = `t: {keyGenerateStrategy: {column: id, keyGeneratorName: keys}}`
	shardedTable = `{actualDataNodes: "ds.%s", keyGenerateStrategy: {column: id, keyGeneratorName: keys},
    tableStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: a}}}`
)

func TestLint_updatesOfShardingColumns(t *testing.T) {
	l := linter(t, "t: "+fmt.Sprintf(shardedTable, "t_${0..1}"))
	for _, c := range []struct {
		text    string
		changed bool
	}{
		{"UPDATE t SET user_id = 5 WHERE id = 1", true},
		{"UPDATE t_1 AS x SET x.USER_ID = ? WHERE id = 1", true},
		{"UPDATE t SET a = 5 WHERE user_id = 1", false},
		{"UPDATE t SET user_id = user_id WHERE id = 1", false},
		{"UPDATE other SET user_id = 5", false},
		{"INSERT INTO t (user_id) VALUES (1) ON DUPLICATE KEY UPDATE user_id = 7", true},
		{"INSERT INTO t (user_id) VALUES (1) ON DUPLICATE KEY UPDATE user_id = VALUES(user_id)", false},
	} {
		changed := slices.ContainsFunc(l.Statement(c.text), func(f Finding) bool {
			return f.Outcome == Changed && strings.Contains(strings.ToLower(f.Reason), "user_id")
		})
		if changed != c.changed {
			t.Errorf("%s\nhave: %v\nwant changed: %v", c.text, l.Statement(c.text), c.changed)
		}
	}
}

func TestLint_computedTables(t *testing.T) {
	// The tables of log aren't known before run time.
	l := linter(t, "t: "+fmt.Sprintf(shardedTable, "t_${0..1}")+", log: "+fmt.Sprintf(shardedTable, "log_${*}"))
	l.Names = []string{"t_0", "t_1"}
	for text, want := range map[string]int{
		"INSERT INTO t_% (a) VALUES (1)":         1,
		"INSERT INTO app.T_%(a) VALUES (1)":      1,
		"INSERT INTO %_1 SET a = 1":              1,
		"INSERT INTO log_% (a) VALUES (1)":       1,
		"INSERT INTO u_% (a) VALUES (1)":         0,
		"INSERT INTO t_2% (a) VALUES (1)":        1, // a similar table that the rule doesn't list
		"UPDATE t_% SET user_id = 5":             1,
		"UPDATE t_% SET user_id = user_id":       0,
		"UPDATE t_% SET a = 5 WHERE user_id = %": 0,
		"SELECT 'INSERT INTO t_%'":               0,
		"% INTO t_% (a) VALUES (1)":              1,
		"INSERT % INTO t_% (a) VALUES (1)":       1,
		"INSERT% INTO t_% (a) VALUES (1)":        1,
		"INSERT INTO other SELECT a FROM t_%":    0,
	} {
		found := l.composed(strings.ReplaceAll(text, "%", hole))
		if len(found) != want || slices.ContainsFunc(found, func(f Finding) bool {
			return f.Outcome != Unknown || !f.IsProblem() || !strings.Contains(f.String(), "unknown: table computed at run time") || strings.Contains(f.String(), hole)
		}) {
			t.Errorf("%s\nhave: %v\nwant: %d unknown", text, found, want)
		}
	}
}

func TestSplit_asTheClientDoes(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"a; b ;c", []string{"a", "b", "c"}},
		{"a ';' b; -- c; d\ne", []string{"a ';' b", "-- c; d\ne"}},
		{"a `;` b; c", []string{"a `;` b", "c"}},
		{";; ;", nil},
		{"-- only a comment", nil},
		{"DELIMITER $$\na; b$$\ndelimiter ;\nc; d", []string{"a; b", "c", "d"}},
		{"CREATE TRIGGER x BEGIN a; IF b THEN c; END IF; CASE d WHEN 1 THEN e; END CASE; END; f", []string{
			"CREATE TRIGGER x BEGIN a; IF b THEN c; END IF; CASE d WHEN 1 THEN e; END CASE; END", "f"}},
		{"CREATE PROCEDURE p() SELECT CASE 1 WHEN 1 THEN 2 END; f", []string{"CREATE PROCEDURE p() SELECT CASE 1 WHEN 1 THEN 2 END", "f"}},
		{"CREATE TRIGGER x BEGIN never; ends", []string{"CREATE TRIGGER x BEGIN never; ends"}},
		{"BEGIN; a; END", []string{"BEGIN", "a", "END"}},
	} {
		var have []string
		for _, s := range linter(t, plainTable).split(c.text) {
			have = append(have, strings.TrimSpace(c.text[s.start:s.end]))
		}
		must.EqualSlices(t, have, c.want, c.text)
	}
}

// Of a generated file without SQL, only the declarations are read.
func TestLoad_generatedFiles(t *testing.T) {
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Chdir(filepath.Join("..", "..", "testdata", "lint", "app"))
	l := linter(t, plainTable)
	if err := l.Packages([]string{"./native"}, false); err != nil || len(l.Summary().Warnings) > 0 {
		t.Errorf("have: %v, %q\nwant: no errors", err, l.Summary().Warnings)
	}
}

func FuzzStatement(f *testing.F) {
	for _, text := range []string{
		"INSERT INTO t (a) VALUES (1)", "PREPARE s FROM '", "EXECUTE IMMEDIATE \"INSERT INTO t (a) VALUES (1)\"", "CREATE TABLE t AS SELECT 1",
		"LOAD DATA INFILE 'x' INTO TABLE t (a)", "UPDATE t SET id = 1", "CREATE TRIGGER x BEFORE INSERT ON y FOR EACH ROW INSERT INTO t (a) VALUES (1)",
		"INSERT INTO `t", "/*! INSERT INTO t", "UPDATE t AS x, u SET x.id = 1, u.id = 2",
	} {
		f.Add(text, byte(0))
	}
	l := linter(f, plainTable)
	f.Fuzz(func(t *testing.T, text string, mode byte) {
		l.Mode = sqltoken.Mode(mode & 3)
		l.split(text)
		for _, found := range l.Statement(text) {
			if found.offset < 0 || found.offset > len(text) || found.Reason == "" {
				t.Errorf("%q\nhave: %+v", text, found)
			}
		}
	})
}

func isOutcomes(comment string) bool {
	return !slices.ContainsFunc(strings.Fields(comment), func(word string) bool {
		return !slices.Contains([]string{"computed", "unknown", "filled", "foreign", "passed"}, word)
	})
}

// TestLint_forms lints statements that are built in many ways. The comment at the end of a
// line is the expected outcome there.
func TestLint_forms(t *testing.T) {
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Chdir(filepath.Join("..", "..", "testdata", "lint", "app"))
	l := linter(t, `t_order: {actualDataNodes: "ds.t_order_${0..15}", keyGenerateStrategy: {column: order_id, keyGeneratorName: keys}}`)
	l.Names = []string{"t_order", "t_order_0", "t_order_15"}
	must.Do(t, l.Packages([]string{"./forms"}, false))
	if w := l.Summary().Warnings; len(w) > 0 {
		t.Errorf("have: %q\nwant: no errors in the packages", w)
	}
	have := map[string][]string{}
	for _, f := range l.Findings() {
		outcome := string(f.Outcome)
		if f.computed {
			outcome = "computed"
		}
		place := fmt.Sprintf("%s:%d", f.File, f.Line)
		have[place] = append(have[place], outcome)
		if f.computed != f.IsProblem() || f.computed && !strings.Contains(f.Reason, "t_order") {
			t.Errorf("have: %s", f)
		}
	}
	for _, file := range []string{"forms/forms.go", "forms/builders.go", "forms/dialects.go"} {
		text := must.Get(os.ReadFile(file))(t)
		for i, line := range strings.Split(string(text), "\n") {
			_, want, _ := strings.Cut(line, "// ")
			if !isOutcomes(want) {
				want = ""
			}
			must.Equal(t, strings.Join(have[fmt.Sprintf("%s:%d", file, i+1)], " "), want, file, i+1, strings.TrimSpace(line))
		}
	}
}
