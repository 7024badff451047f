package rule

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

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

// TestPages_everyKeyIsNamed checks that docs/reference/rule-files.md names every key of a rule
// file, including ignored keys.
func TestPages_everyKeyIsNamed(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/rule-files.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n## Keys\n")
	text, _, ok := strings.Cut(text, "\n## Check it\n")
	if !ok {
		t.Fatal("docs/reference/rule-files.md has no Keys")
	}
	var named []string
	for _, m := range regexp.MustCompile("`([A-Za-z]+):?`").FindAllStringSubmatch(text, -1) {
		named = append(named, m[1])
	}
	want := slices.Concat(strategyKeys, []string{"type", "props", "keyGenerateType", "logicTable", "keyGenerateColumn", "keyGenerateSequence", "shardingRule"})
	// Java classes, and keys under maps that shardkey doesn't read.
	below := []string{"auditorNames", "allowHintDisable", "routeCache", "softValues", "initialCapacity", "maximumSize", "allowedMaxSqlLength",
		"preciseAlgorithmClassName", "rangeAlgorithmClassName", "algorithmClassName"}
	var add func(o keyTree)
	add = func(o keyTree) {
		for key, inner := range o {
			if key != "*" && !slices.Contains(below, key) {
				want = append(want, key)
			}
			add(inner)
		}
	}
	for _, o := range []keyTree{fileObject, ruleObject, ruleObject4, tableObject, tableObject4, autoTableObject} {
		add(o)
	}
	for _, key := range want {
		if !slices.Contains(named, key) {
			t.Errorf("docs/reference/rule-files.md, Keys, does not name %s", key)
		}
	}
	if len(want) < 70 {
		t.Errorf("have: %d keys\nwant: more", len(want))
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
		if have := databaseName(dsn); have != want {
			t.Errorf("%s\nhave: %s\nwant: %s", dsn, have, want)
		}
	}
}
