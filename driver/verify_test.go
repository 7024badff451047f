package driver

import (
	"database/sql"
	"errors"
	"fmt"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/rewrite"
)

// verified opens a rule for table ruled with a fake server.
func verified(t *testing.T, v string) (*sql.DB, *fakedb.Server, *Connector) {
	t.Helper()
	if secondParser == nil {
		t.Skip("built without the second parser")
	}
	base := &fakedb.Server{}
	db, c := openFake(t, base, taggedRule(t, "ruled", 0), Config{Server: "other", Verify: v})
	return db, base, c
}

// anotherText replaces the plan of a statement with the plan of another.
func anotherText(text string) func(rewrite.Options, *rewrite.Plan) *rewrite.Plan {
	return func(opts rewrite.Options, _ *rewrite.Plan) *rewrite.Plan {
		p, err := rewrite.Parse(text, opts)
		if err != nil {
			panic(err)
		}
		return p
	}
}

// TestVerify_refusesFaults introduces faults into plans, and checks that nothing of the statement
// reaches the underlying driver.
func TestVerify_refusesFaults(t *testing.T) {
	const query = "INSERT INTO ruled (a, id) /* c */ VALUES (?, NULL), (?, ?)"
	for _, f := range []struct {
		name  string
		plant func(rewrite.Options, *rewrite.Plan) *rewrite.Plan
	}{
		{"wrong table", func(_ rewrite.Options, p *rewrite.Plan) *rewrite.Plan { p.Insert.Name = "other"; return p }},
		{"wrong column", func(_ rewrite.Options, p *rewrite.Plan) *rewrite.Plan {
			p.Insert.Table = &rewrite.Table{Key: "a"}
			return p
		}},
		{"no insert", func(_ rewrite.Options, p *rewrite.Plan) *rewrite.Plan { p.Insert = nil; return p }},
		{"wrong number of values", func(_ rewrite.Options, p *rewrite.Plan) *rewrite.Plan { p.Insert.Invalid = true; return p }},
		{"wrong place of the key", anotherText("INSERT INTO ruled (id, a) /* c */ VALUES (?, NULL), (?, ?)")},
		{"lost comment", anotherText("INSERT INTO ruled (a, id) VALUES (?, NULL), (?, ?)")},
		{"swapped keys", anotherText("INSERT INTO ruled (a, id) /* c */ VALUES (?, ?), (?, NULL)")},
		{"a row too few", anotherText("INSERT INTO ruled (a, id) /* c */ VALUES (?, NULL)")},
		{"a key too many", anotherText("INSERT INTO ruled (a, id) /* c */ VALUES (?, NULL), (?, NULL)")},
	} {
		t.Run(f.name, func(t *testing.T) {
			db, base, c := verified(t, "on")
			right := c.verifier.read
			c.verifier.read = func(text string, opts rewrite.Options, p *rewrite.Plan) (bool, error) {
				return right(text, opts, f.plant(opts, p))
			}
			_, execErr := db.Exec(query, 1, 2, 3)
			_, queryErr := db.Query(query, 1, 2, 3)
			st, stmtErr := db.Prepare(query)
			if stmtErr == nil {
				_, stmtErr = st.Exec(1, 2, 3)
			}
			for way, err := range map[string]error{"Exec": execErr, "Query": queryErr, "Prepare": stmtErr} {
				if e, ok := errors.AsType[*StatementError](err); !ok || e.Reason != ReasonUnverified || e.Line == 0 || !errors.Is(err, ErrUnsupportedStatement) {
					t.Errorf("%s\nhave: %#v\nwant: reason %s", way, err, ReasonUnverified)
				}
			}
			if i := slices.IndexFunc(base.Calls, func(call string) bool { return strings.Contains(call, "INSERT") }); i >= 0 {
				t.Errorf("the base saw: %s", base.Calls[i])
			}
			if have := c.Stats().Verification; have.Refused < 3 || have.Agreed+have.Unknown > 0 {
				t.Errorf("have: %+v\nwant: all refused", have)
			}
		})
	}
}

func TestVerify_countsTexts(t *testing.T) {
	long := "INSERT INTO ruled (a) VALUES (1)" + strings.Repeat(", (2)", maxLiteralBytes/5+1)
	for _, of := range []struct {
		mode            string
		agreed, unknown int64
	}{
		{"", 3, 1},
		{"on", 3, 1},
		{"off", 0, 0},
	} {
		t.Run(of.mode, func(t *testing.T) {
			db, _, c := verified(t, of.mode)
			mustExec(t, db, "INSERT INTO ruled (a) VALUES (0)") // makes the kind of the keys known
			before := c.Stats().Verification.Agreed
			for range 2 {
				mustExec(t, db, "INSERT INTO ruled (a) VALUES (?)", 1)
				mustExec(t, db, "INSERT INTO ruled (a) VALUES (1)")
				mustExec(t, db, "INSERT INTO free (a) VALUES (1)")
				mustExec(t, db, "INSERT INTO ruled (a) VALUES (?) AS new", 1)
				mustExec(t, db, "UPDATE ruled SET a = 1")
				mustExec(t, db, long)
			}
			have := c.Stats().Verification
			if have.Agreed -= before; have.Agreed != of.agreed || have.Unknown != of.unknown || have.Refused != 0 {
				t.Errorf("have: %+v\nwant: %+v", have, of)
			}
		})
	}
}

// TestVerify_isLeftOutByTag checks that the build tag excludes TiDB's parser, and that
// shardkeyVerify is then an error.
func TestVerify_isLeftOutByTag(t *testing.T) {
	deps, err := exec.Command("go", "list", "-deps", "-tags", "shardkey_noparser", ".").CombinedOutput()
	if err != nil || strings.Contains(string(deps), "pingcap") {
		t.Errorf("have: %v\n%s\nwant: no package of TiDB", err, deps)
	}
	saved := secondParser
	defer func() { secondParser = saved }()
	secondParser = nil
	failsWith(t, errOf(NewConnector(&fakedb.Server{}, testRule(t), Config{Verify: "on"})), "shardkey_noparser")
	c := must(NewConnector(&fakedb.Server{}, testRule(t)))(t)
	check(t, c.verifier.verify("x", rewrite.Options{}, nil))
}

// With more statements than the plan cache holds, each statement is verified once. With ON
// DUPLICATE KEY UPDATE, a later plan of the same statement may differ, and is verified again.
func TestVerify_onceThoughPlansAreForgotten(t *testing.T) {
	for _, test := range []struct {
		query string
		want  int64
	}{
		{"INSERT INTO ruled (a, b) VALUES (?, %d)", 10},
		{"INSERT INTO ruled (a, b) VALUES (?, %d) ON DUPLICATE KEY UPDATE b = 1", 30},
	} {
		t.Run(test.query, func(t *testing.T) {
			db, _, c := verified(t, "on")
			c.rules.Load().plans.most = 2
			for i := range 30 {
				mustExec(t, db, fmt.Sprintf(test.query, i%10), 1)
			}
			equal(t, c.Stats().Verification.Agreed, test.want, test.query)
		})
	}
}

func TestVersion_fromBuildInfo(t *testing.T) {
	vcs := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}}
	dep := func(version string, replace *debug.Module) []*debug.Module {
		return []*debug.Module{{Path: "example.com/other", Version: "v9.0.0"}, {Path: modulePath, Version: version, Replace: replace}}
	}
	for name, c := range map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"a program requires it":        {debug.BuildInfo{Main: debug.Module{Path: "example.com/user", Version: "v2.0.0"}, Deps: dep("v0.1.0", nil)}, "v0.1.0"},
		"it is the main module":        {debug.BuildInfo{Main: debug.Module{Path: modulePath, Version: "v0.1.0"}, Settings: vcs}, "v0.1.0"},
		"the installed tool":           {debug.BuildInfo{Main: debug.Module{Path: modulePath + "/cmd/shardkey", Version: "v0.1.1"}, Deps: dep("v0.1.0", nil)}, "v0.1.0"},
		"the tool in a clone":          {debug.BuildInfo{Main: debug.Module{Path: modulePath + "/cmd/shardkey", Version: "v0.1.2-0.20261123-0123456789ab+dirty"}, Deps: dep("(devel)", nil)}, "v0.1.2-0.20261123-0123456789ab+dirty"},
		"replaced by a directory":      {debug.BuildInfo{Main: debug.Module{Path: "example.com/user"}, Deps: dep("v0.1.0", &debug.Module{Path: "../shardkey"}), Settings: vcs}, "(devel)"},
		"replaced by another version":  {debug.BuildInfo{Main: debug.Module{Path: "example.com/user"}, Deps: dep("v0.1.0", &debug.Module{Path: "example.com/fork", Version: "v0.1.2"})}, "v0.1.2"},
		"the main module's own commit": {debug.BuildInfo{Main: debug.Module{Path: "github.com/shardkey/shardkeys"}, Deps: dep("", nil), Settings: vcs}, "(devel)"},
		"nothing is recorded":          {debug.BuildInfo{}, "(devel)"},
	} {
		t.Run(name, func(t *testing.T) { equal(t, versionOf(&c.info), c.want) })
	}
	if Version() == "" {
		t.Error("Version returns nothing")
	}
}
