package driver

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// shape is what the ruled key column is. The plain side's is always BIGINT
// AUTO_INCREMENT PRIMARY KEY.
type shape struct {
	name   string
	column string // the key column's type and attributes
	beside string // further columns
	keys   string // the kind of the generator's keys
	// noID says that insert ids cannot be compared: of keys that are no
	// integers, or where the server has another AUTO_INCREMENT column.
	noID bool
	// twice and once say that each case runs with each DSN, in two ways or in one. On
	// the other shapes it runs with one of the DSNs.
	twice, once bool
}

var shapes = []shape{
	{name: "BIGINT", column: "BIGINT NOT NULL PRIMARY KEY", keys: "wide", twice: true},
	{name: "AUTO_INCREMENT", column: "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY", keys: "wide", once: true},
	{name: "INT", column: "INT NOT NULL PRIMARY KEY", keys: "narrow"},
	{name: "VARCHAR", column: "VARCHAR(40) NOT NULL PRIMARY KEY", keys: "text", noID: true},
	{name: "CHAR(36)", column: "CHAR(36) NOT NULL PRIMARY KEY", keys: "long text", noID: true},
	{name: "BINARY(16)", column: "BINARY(16) NOT NULL PRIMARY KEY", keys: "bytes", noID: true},
	{name: "beside AUTO_INCREMENT", column: "BIGINT NOT NULL UNIQUE", beside: ", n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY INVISIBLE", keys: "wide", noID: true},
}

// can reports whether what becomes of a case is the same for a key of the shape
// as for an integer: one that is none can neither be 0 nor 100.
func (sh shape) can(c differentialCase) bool {
	return !sh.noID || !slices.ContainsFunc(c.steps, func(st step) bool { return namesKey.MatchString(st.text) })
}

// ways returns the ways to run the case at index i with a DSN's parameters. The ways
// take turns from case to case: prepared or not, inside a transaction or not.
func (sh shape) ways(i int, params string) []variant {
	interpolated := params == "interpolateParams=true"
	switch {
	case sh.twice || sh.once:
		if interpolated {
			i++ // the two DSNs run a case in different ways
		}
	case params == "" || interpolated:
		if interpolated == (i%2 == 0) {
			return nil
		}
		i /= 2
	}
	v := variant{shape: sh, params: params, prepared: i%2 == 1, tx: i/2%2 == 1}
	if !sh.twice {
		return []variant{v}
	}
	other := v
	other.prepared, other.tx = !v.prepared, !v.tx
	return []variant{v, other}
}

var namesKey = regexp.MustCompile("(?i)\\bid\\b|k``ey|LAST_INSERT_ID|identity|INTO t VALUES|INTO t \\(\\) VALUES \\(\\d|INTO t SELECT|RETURNING")

// ascending is a generator of keys far above those of AUTO_INCREMENT. Each
// table has a range of its own, in the order of the AUTO_INCREMENTs'.
type ascending struct {
	n    atomic.Int64
	kind string
}

// tableRange is the place of a table's keys among the others'.
var tableRange = map[string]int64{"t": 1, "child": 2, "we`ird": 3}

func (g *ascending) GenerateKeys(_ context.Context, c spi.Column, n int) ([]any, error) {
	keys := make([]any, n)
	for i, first := 0, g.n.Add(int64(n))-int64(n); i < n; i++ {
		at := first + int64(i)
		switch wide := tableRange[c.Table]*1_000_000_000_000 + at; g.kind {
		case "wide":
			keys[i] = wide
		case "narrow":
			keys[i] = tableRange[c.Table]*500_000_000 + at
		case "text":
			keys[i] = fmt.Sprintf("k%013d", wide)
		case "long text":
			keys[i] = fmt.Sprintf("k%035d", wide)
		case "bytes":
			keys[i] = fmt.Appendf(nil, "k%015d", wide)
		}
	}
	return keys, nil
}

// ascending64 makes the integers unboxed.
type ascending64 struct{ ascending }

func (g *ascending64) GenerateInt64Keys(ctx context.Context, c spi.Column, keys []int64) error {
	boxed, err := g.GenerateKeys(ctx, c, len(keys))
	for i, key := range boxed {
		keys[i] = key.(int64)
	}
	return err
}

func init() {
	spi.RegisterKeyGenerator("ASCENDING", func(p spi.Props) (spi.KeyGenerator, error) {
		kind := p.String("keys", "wide")
		if kind == "wide" || kind == "narrow" {
			return &ascending64{ascending{kind: kind}}, nil
		}
		return &ascending{kind: kind}, nil
	})
}

const differentialRule = `
rules:
- !SHARDING
  tables:
    t: {keyGenerateStrategy: {column: id, keyGeneratorName: asc}}
    child: {keyGenerateStrategy: {column: id, keyGeneratorName: asc}}
    "we` + "`" + `ird": {keyGenerateStrategy: {column: "k` + "`" + `ey", keyGeneratorName: asc}}
  keyGenerators:
    asc: {type: ASCENDING, props: {keys: %s}}
`

// side is one of the two ways to the server.
type side struct {
	name  string
	db    *sql.DB
	shape shape
	plain bool
}

// sides opens both ways to databases of their own with further DSN parameters.
func sides(t testing.TB, params string, sh shape) [2]side {
	t.Helper()
	r := must(rule.Parse("differential.yaml", fmt.Appendf(nil, differentialRule, sh.keys)))(t)
	name := "differential-" + strings.ReplaceAll(sh.keys, " ", "-")
	noError(t, RegisterRule(name, r))
	open := func(name, dsn string) *sql.DB {
		db := must(sql.Open(name, dsn))(t)
		t.Cleanup(func() { db.Close() })
		return db
	}
	plain := testserver.Database(t) + "?" + params
	ours := testserver.Database(t) + "?" + strings.TrimPrefix(params+"&shardkeyRule="+name, "&")
	both := [2]side{
		{"plain", open("mysql", strings.TrimSuffix(plain, "?")), sh, true},
		{"shardkey", open("shardkey", ours), sh, false},
	}
	for _, s := range both {
		s.createTables(t)
	}
	return both
}

func (s side) createTables(t testing.TB) {
	t.Helper()
	column, beside := "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY", ""
	if !s.plain {
		column, beside = s.shape.column, s.shape.beside
	}
	for _, ddl := range []string{
		"CREATE TABLE t (id " + column + ", a INT, u INT UNIQUE, s VARCHAR(60)" + beside + ") AUTO_INCREMENT = 1000000",
		"CREATE TABLE child (id " + column + ", t_id BIGINT, a INT" + beside + ") AUTO_INCREMENT = 2000000",
		"CREATE TABLE `we``ird` (`k``ey` " + column + ", `select` INT" + beside + ") AUTO_INCREMENT = 3000000",
		"CREATE TABLE free (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = 500",
		"CREATE TABLE src (id BIGINT, a INT, s VARCHAR(60))",
		"INSERT INTO src VALUES (1, 10, 'x'), (NULL, 20, 'y'), (3, 30, NULL), (0, 40, '')",
	} {
		mustExec(t, s.db, ddl)
	}
}
