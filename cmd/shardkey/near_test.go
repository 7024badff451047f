package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/shardkey/shardkey/rule"
)

// TestLint_unlistedTables lints INSERTs into tables that no rule lists.
func TestLint_unlistedTables(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rule.yaml")
	text := `rules: [!SHARDING {tables: {
  t_order: {actualDataNodes: "ds.t_order_${0..1}", keyGenerateStrategy: {column: id}},
  t_open: {keyGenerateStrategy: {column: id, unlisted: pass}}}}]`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := newProgram(nil, io.Discard, io.Discard, nil).openOffline(file, "other", "")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	for text, want := range map[string]string{
		"INSERT INTO t_order_2 (a) VALUES (1)": "refused",
		"INSERT INTO t_order_1 (a) VALUES (1)": "filled",
		"INSERT INTO t_open_1 (a) VALUES (1)":  "",
		"INSERT INTO t_other (a) VALUES (1)":   "",
	} {
		have := ""
		for _, f := range o.linter().Statement(text) {
			have += string(f.Outcome)
		}
		if have != want {
			t.Errorf("%s\nhave: %q\nwant: %q", text, have, want)
		}
	}
}

func TestNearestTable_keepsNumbers(t *testing.T) {
	r, err := rule.Parse("rule.yaml", []byte("rules: [!SHARDING {tables: {t_order: {keyGenerateStrategy: {column: id}}, t_order_item: {keyGenerateStrategy: {column: id}}}}]"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"t_ordr": "t_order", "t_ordr_12": "t_order_12", "torder": "t_order", "t_order_itme_1": "t_order_item_1",
		"t_order__12": "", "t_other": "", "x": "", "1": "",
	} {
		if have := nearestTable(r, name); have != want {
			t.Errorf("%s\nhave: %q\nwant: %q", name, have, want)
		}
	}
}
