package rule

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

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

func loadVectors(t *testing.T) (v vectors) {
	t.Helper()
	data, err := os.ReadFile("testdata/shardvectors.json")
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
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
	for _, v := range loadVectors(t).DataNodes {
		want, ok := otherwise[v.Expression]
		if !ok {
			want = strings.Join(v.Nodes, " ")
		}
		all, err := expandText(v.Expression)
		have := strings.Join(all, " ")
		if err != nil {
			have = "error"
		}
		if have != want {
			t.Errorf("%s\nhave: %s (%v)\nwant: %s", v.Expression, have, err, want)
		}
	}
}

func TestDataNodes_ofRealFiles(t *testing.T) {
	for _, text := range loadVectors(t).RealDataNodes {
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
	for _, v := range loadVectors(t).AutoTables {
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

func TestAutoTables_countsThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		typ, props string
		want       string
	}{
		{"MOD", "sharding-cout=4", "sharding-count is missing"},
		{"HASH_MOD", "sharding-count=four", `sharding-count: expected an integer of at least 1, found "four"`},
		{"MOD", "sharding-count=0", `sharding-count: expected an integer of at least 1, found "0"`},
		{"BOUNDARY_RANGE", "", "sharding-ranges is missing"},
		{"BOUNDARY_RANGE", "sharding-ranges=1;2", "expected integers separated by commas"},
		{"VOLUME_RANGE", "range-lower=1,range-upper=9", "sharding-volume is missing"},
		{"VOLUME_RANGE", "range-lower=1,range-upper=9,sharding-volume=10", "range-upper is less"},
		{"AUTO_INTERVAL", "datetime-lower=2020-01-01,datetime-upper=2020-01-02 00:00:00,sharding-seconds=4", `found "2020-01-01"`},
		{"AUTO_INTERVAL", "datetime-lower=2021-01-01 00:00:00,datetime-upper=2020-01-02 00:00:00,sharding-seconds=4", "datetime-upper is before"},
		{"CLASS_BASED", "strategy=STANDARD", "expected an algorithm of type MOD, "},
	} {
		a := algorithm{typ: c.typ, props: map[string]word{}}
		sep := ","
		if strings.Contains(c.props, ";") {
			sep = "|"
		}
		for one := range strings.SplitSeq(c.props, sep) {
			name, value, _ := strings.Cut(one, "=")
			a.props[name] = word{text: value}
		}
		if count, err := a.autoTables(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s\nhave: %d, %v\nwant: %s", c.typ, c.props, count, err, c.want)
		}
	}
}
