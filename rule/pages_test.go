package rule

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

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
