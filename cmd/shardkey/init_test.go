package main

import (
	"os"
	"strings"
	"testing"
)

// TestInit_from converts a file, whether the result loads here or not.
func TestInit_from(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(content string) {
		if err := os.WriteFile("a.yml", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const old = "dataSources: {ds: {password: x}}\nshardingRule: {tables: {t: {keyGeneratorColumnName: id}}}\n"
	write(old)
	status, out, stderr := runTool(t, "init", "--from", "a.yml")
	if status != 0 || stderr != "" || !strings.Contains(out, "\n- !SHARDING {tables: {t: {keyGenerateStrategy: {column: id}}}}\n# Not carried over:\n#   a.yml:1: dataSources: ") {
		t.Errorf("have: %d %s%s\nwant: the rule, and what is left", status, out, stderr)
	}
	if status, out, _ = runTool(t, "init", "--from", "a.yml", "-o", "json"); status != 0 || !strings.Contains(out, `{"name":"a.yml:1","why":"dataSources: `) {
		t.Errorf("have: %d %s\nwant: the rule in JSON", status, out)
	}
	write(strings.Replace(old, "Name: id", "Name: id, keyGeneratorClass: a.B", 1))
	status, out, stderr = runTool(t, "init", "--from", "a.yml")
	if status != 1 || !strings.Contains(out, "type: a.B") || !strings.Contains(stderr, "a.yml:2:76: unknown key generator type") {
		t.Errorf("have: %d %s%s\nwant: the rule, and an error", status, out, stderr)
	}
	if status, _, stderr = runTool(t, "init", "--from", "a.yml", "t_order"); status != 2 {
		t.Errorf("have: %d %s\nwant: wrong use", status, stderr)
	}
}
