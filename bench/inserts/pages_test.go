package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the ratios of bench/ratios.json to docs/understand/performance.md")

// TestPages_ratios compares the figures in the README and in docs/understand/performance.md with
// bench/ratios.json.
func TestPages_ratios(t *testing.T) {
	file, err := readNoted("../ratios.json")
	if err != nil {
		t.Fatal(err)
	}
	ratioOf := func(server, scene string) float64 {
		for _, r := range file.Ratios {
			if r.Server == server && r.Scene == scene && r.To == "go-sql-driver" {
				return r.Ratio
			}
		}
		t.Fatalf("no ratio of %s: %s", server, scene)
		return 0
	}

	const page, begin, end = "../../docs/understand/performance.md", "<!-- ratios: written by make bench-note -->\n", "<!-- end of ratios -->"
	text := read(t, page)
	before, rest, ok := strings.Cut(text, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no %q … %q", page, begin, end)
	}
	table := "| your program | shardkey's speed, MySQL 9.7 | MariaDB 10.11 |\n| --- | --- | --- |\n"
	for _, row := range []struct{ scene, name string }{
		{"default DSN", "default DSN, one connection"},
		{"default DSN, 16 connections", "default DSN, 16 connections"},
		{"default DSN, batches of 100", "default DSN, batches of 100 rows"},
		{"prepared once", "prepares its statements once"},
		{"interpolateParams", "`interpolateParams=true`"},
		{"interpolateParams, shardkeyStatements=always", "the same, with `shardkeyStatements=always`"},
	} {
		table += fmt.Sprintf("| %s | %.2f | %.2f |\n", row.name, ratioOf("MySQL", row.scene), ratioOf("MariaDB", row.scene))
	}
	if want := before + begin + table + end + after; text != want {
		if !*update {
			t.Errorf("%s differs from bench/ratios.json: run go test ./bench/inserts -update", page)
		} else if err := os.WriteFile(page, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	}

	var level []float64 // ratios for programs that prepare or interpolate
	for _, server := range []string{"MySQL", "MariaDB"} {
		level = append(level, ratioOf(server, "prepared once"), ratioOf(server, "interpolateParams"))
		if r := ratioOf(server, "default DSN"); r < 1.75 || r > 2.5 {
			t.Errorf("%s: the default DSN is %.2f times as fast, and the README says twice", server, r)
		}
	}
	least, most := slices.Min(level), slices.Max(level)
	for page, sentence := range map[string]string{
		"../../README.md":    fmt.Sprintf("(%.2f to %.2f of the speed)", least, most),
		"../../README.zh.md": fmt.Sprintf("（%.2f 至 %.2f 倍）", least, most),
	} {
		if !strings.Contains(read(t, page), sentence) {
			t.Errorf("%s\nhave: another figure\nwant: %s", page, sentence)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
