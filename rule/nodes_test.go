package rule

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/must"
)

// expand returns the data nodes of an expression as "schema.table" or "table".
func expand(text string) ([]string, error) {
	var all []string
	err := dataNodes(text, func(n node) error {
		if n.schema != "" {
			n.table = n.schema + "." + n.table
		}
		all = append(all, n.table)
		return nil
	})
	return all, err
}

func TestDataNodes_expand(t *testing.T) {
	for _, c := range cases.Read(t, "testdata/nodes.txt", 2) {
		want, text := c[0], c[1]
		all, err := expand(text)
		have := strings.Join(all, " ")
		if err != nil {
			have = "!"
		}
		must.Equal(t, have, want, text, err)
	}
}

func TestDataNodes_errorsStayShort(t *testing.T) {
	long := strings.Repeat("ü", 5000)
	for _, text := range []string{
		"${" + long + "}", "${" + long, "${[" + long + "]}", "${" + long + "..1}", "ds.${'" + long + "'}.a.b", long + "{",
		"ds.t" + strings.Repeat("${1}", 1<<16),
		"ds." + strings.Repeat("t", 1<<16) + "_${*}",
		"ds.t_${" + strings.Repeat("(", 1<<16) + "1" + strings.Repeat(")", 1<<16) + "}",
		"ds.t_${" + strings.Repeat("1+", 1<<16) + "1}" + strings.Repeat("x", 300),
	} {
		if _, err := expand(text); err == nil || len(err.Error()) > 400 {
			t.Errorf("%.40s…\nhave: %.500v\nwant: a short error", text, err)
		}
	}
}

func TestDataNodes_areBounded(t *testing.T) {
	for _, text := range []string{
		"ds.t_${0..1048576}",
		"ds_${0..1024}.t_${0..1023}",
		"${0..1023}.${0..1023}.${0..1023}.${0..1023}",
		strings.Repeat("ds.t_${0..524288},", 2),
	} {
		count := 0
		err := dataNodes(text, func(node) error { count++; return nil })
		if !errors.Is(err, errTooManyNodes) || count > maxNodes {
			t.Errorf("%.40s\nhave: %d nodes, %v\nwant: %v", text, count, err, errTooManyNodes)
		}
	}
	count := 0
	err := dataNodes("ds_${0..1023}.t_${0..1023}", func(node) error { count++; return nil })
	if err != nil || count != maxNodes {
		t.Errorf("have: %d nodes, %v\nwant: %d", count, err, maxNodes)
	}
}

// vectors are the results of ShardingSphere's own expressions and algorithms in Groovy, and data
// nodes of published rule files.
type vectors struct {
	DataNodes []struct {
		Expression string
		Nodes      []string
		Error      string
	}
	AutoTables []struct {
		LogicTable, ActualDataSources, Type string
		Props                               map[string]string
		Amount                              int64
		Nodes                               []string
	}
	RealDataNodes []string
}

// expandText returns the strings that an expression stands for.
func expandText(text string) (all []string, err error) {
	budget := maxNodes
	for _, item := range splitInline(text) {
		err := product(item, &budget, func(node string) error { all = append(all, node); return nil })
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func TestDataNodes_asGroovyExpandsThem(t *testing.T) {
	// Intentional differences: numbers with leading zeros, which are octal in Groovy, and empty
	// expressions are errors.
	otherwise := map[string]string{
		"ds0.t_$->{01..03}": "error",
		"ds0.t_$->{08..09}": "error",
		"ds0.t_$->{[]}":     "error",
	}
	for _, v := range must.ReadJSON[vectors](t, "testdata/shardvectors.json").DataNodes {
		want, ok := otherwise[v.Expression]
		if !ok {
			want = strings.Join(v.Nodes, " ")
		}
		all, err := expandText(v.Expression)
		have := strings.Join(all, " ")
		if err != nil {
			have = "error"
		}
		must.Equal(t, have, want, v.Expression, err)
	}
}

func TestDataNodes_ofRealFiles(t *testing.T) {
	for _, text := range must.ReadJSON[vectors](t, "testdata/shardvectors.json").RealDataNodes {
		all, err := expandText(text)
		if strings.Contains(text, "{01..12}") && err != nil {
			continue
		}
		if err != nil || len(all) == 0 {
			t.Errorf("%s\nhave: %v, %v\nwant: nodes", text, all, err)
		}
	}
}

func TestAutoTables_asShardingSphereCountsThem(t *testing.T) {
	for _, v := range must.ReadJSON[vectors](t, "testdata/shardvectors.json").AutoTables {
		a := algorithm{typ: v.Type, props: map[string]word{}}
		for name, value := range v.Props {
			a.props[name] = word{text: value}
		}
		count, err := a.autoTables()
		if err != nil || count != v.Amount {
			t.Errorf("%s %v\nhave: %d, %v\nwant: %d", v.Type, v.Props, count, err, v.Amount)
		}
		var have, want []string
		spec := tableSpec{name: word{text: v.LogicTable}, autoCount: count}
		err = spec.written().each(spec.name.text, func(n node) error { have = append(have, n.table); return nil })
		for _, node := range v.Nodes {
			_, table, _ := strings.Cut(node, ".")
			want = append(want, table)
		}
		if err != nil || !slices.Equal(have, want) {
			t.Errorf("%s %v\nhave: %v, %v\nwant: %v", v.Type, v.Props, have, err, want)
		}
	}
}

// The errors of algorithms are tested in package sharding.
func TestAutoTables_countsThatCannotBe(t *testing.T) {
	for _, c := range []struct{ typ, props, want string }{
		{"MOD", "sharding-cout=4", "sharding-count is missing"},
		{"AUTO_INTERVAL", "datetime-lower=2020-01-01,datetime-upper=2020-01-02 00:00:00,sharding-seconds=4", `found "2020-01-01"`},
		{"AUTO_INTERVAL", "datetime-lower=2021-01-01 00:00:00,datetime-upper=2020-01-02 00:00:00,sharding-seconds=4", "datetime-upper is before"},
		{"CLASS_BASED", "strategy=STANDARD", "expected an algorithm of type MOD, "},
	} {
		a := algorithm{typ: c.typ, props: map[string]word{}}
		for one := range strings.SplitSeq(c.props, ",") {
			name, value, _ := strings.Cut(one, "=")
			a.props[name] = word{text: value}
		}
		must.FailWith(t, must.Err(a.autoTables()), c.want, c.typ, c.props)
	}
}

func TestExpandEnv_replacesVariables(t *testing.T) {
	t.Setenv("SK_A", "alpha")
	t.Setenv("SK_EMPTY", "")
	t.Setenv("SK_NESTED", "${SK_A}")
	t.Setenv("db.password", "dotted")
	for _, c := range []struct {
		text, want, err string
		used            bool
	}{
		{text: "", want: ""},
		{text: "plain $ {x} $x", want: "plain $ {x} $x"},
		{text: "${SK_A}", want: "alpha", used: true},
		{text: "<${SK_A}-${SK_A}>", want: "<alpha-alpha>", used: true},
		{text: "${SK_EMPTY}", want: "", used: true},
		{text: "${SK_NESTED}", want: "${SK_A}", used: true},
		{text: "${db.password}", want: "dotted", used: true},
		{text: "${SK_NONE::some::thing}", want: "some::thing", used: true},
		{text: "${SK_NONE::}", want: "", used: true},
		{text: "${SK_A::other}", want: "alpha", used: true},
		{text: "$${SK_A::other}", want: "alpha", used: true},
		{text: "$${SK_NONE::x}y", want: "xy", used: true},
		{text: `\${SK_A}`, want: "${SK_A}"},
		{text: `a\${b ${SK_A}`, want: "a${b alpha", used: true},
		{text: "$->{0..1}", want: "$->{0..1}"},
		{text: "${SK_NONE}", err: "SK_NONE is not set"},
		{text: "$${SK_NONE}", err: "SK_NONE is not set"},
		{text: "${SK_A", err: "expected the name"},
		{text: "${}", err: "expected the name"},
		{text: "${1A}", err: "expected the name"},
		{text: "${SK A}", err: "expected the name"},
		{text: "${SK_A}${x % 2}", err: "expected the name"},
	} {
		have, used, err := expandEnv(c.text)
		if have != c.want || used != c.used || (err == nil) != (c.err == "") {
			t.Errorf("%s\nhave: %q, %v, %v\nwant: %q, %v, %s", c.text, have, used, err, c.want, c.used, c.err)
		}
		if err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s\nhave: %v\nwant: %s", c.text, err, c.err)
		}
	}
}

func TestDatabaseName_ofDSNs(t *testing.T) {
	for dsn, want := range map[string]string{
		"":                                     "",
		"/":                                    "tcp(127.0.0.1:3306)/",
		"/app":                                 "tcp(127.0.0.1:3306)/app",
		"u@/app":                               "tcp(127.0.0.1:3306)/app",
		"u:p@tcp/app":                          "tcp(127.0.0.1:3306)/app",
		"u:p@tcp(DB.example:3306)/App":         "tcp(db.example:3306)/App",
		"u:p@tcp(db.example)/App?a=b&c=d":      "tcp(db.example:3306)/App",
		"u:p@ss:w(o)rd/@tcp(db:1)/app":         "tcp(db:1)/app",
		"u:p@tcp([2001:db8::1]:3307)/app":      "tcp([2001:db8::1]:3307)/app",
		"u:p@unix(/run/mysqld/Sock)/app":       "unix(/run/mysqld/Sock)/app",
		"u:p@unix/app":                         "unix(/tmp/mysql.sock)/app",
		"u:p@cloud(Project:Region:name)/app?x": "cloud(Project:Region:name)/app",
	} {
		must.Equal(t, databaseName(dsn), want, dsn)
	}
}
