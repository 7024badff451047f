package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/registry"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
	"github.com/spf13/pflag"
)

// page returns the content of a document. path is relative to the repository's root.
func page(t *testing.T, path string) string {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(path))))(t)
	return string(text)
}

// allPages returns the paths of the documents that contain rules and commands.
func allPages(t *testing.T) (paths []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*/*.md", "examples/*.md"} {
		found := must.Get(filepath.Glob(filepath.Join("..", "..", pattern)))(t)
		for _, path := range found {
			paths = append(paths, strings.TrimPrefix(filepath.ToSlash(path), "../../"))
		}
	}
	if len(paths) < 20 {
		t.Fatalf("have: %q\nwant: more", paths)
	}
	return paths
}

// required are the required properties of each type.
var required = map[string]map[string]any{
	"LEAF_SEGMENT":   {"leaf.key": "orders", "dsn": "a:b@tcp(127.0.0.1:1)/c"},
	"TICKET":         {"dsns": "a:b@tcp(127.0.0.1:1)/c"},
	"REDIS":          {"addr": "127.0.0.1:1"},
	"LEAF_SNOWFLAKE": {"leaf.key": "orders", "leaf.zk.list": "127.0.0.1:1"},
	"SQL":            {"dsn": "a:b@tcp(127.0.0.1:1)/c"},
	"FILE":           {"path": "/var/lib/workers"},
	"ETCD":           {"endpoints": "127.0.0.1:1"},
	"ZOOKEEPER":      {"servers": "127.0.0.1:1"},
	"STATIC":         {"worker-id": "1"},
}

var inBackticks = regexp.MustCompile("`([^`]+)`")

// TestConfiguration_everyTypeAndProperty compares the properties that each registered type
// reads with the tables of its section.
func TestConfiguration_everyTypeAndProperty(t *testing.T) {
	generators, assigners, ok := strings.Cut(page(t, "docs/reference/configuration.md"), "\n## Worker-ID assigners\n")
	_, generators, also := strings.Cut(generators, "\n## Generators\n")
	if !ok || !also {
		t.Fatal("docs/reference/configuration.md has no Generators and Worker-ID assigners")
	}
	check := func(text string, types []string, make func(typ string, props spi.Props) error) {
		sections := map[string]string{}
		for _, s := range strings.Split("\n"+text, "\n### ")[1:] {
			title, body, _ := strings.Cut(s, "\n")
			sections[strings.TrimSuffix(title, " as an assigner")] = body
		}
		for _, typ := range types {
			if typ == "TOLD" { // registered by secrets_test.go
				continue
			}
			body, ok := sections[typ]
			delete(sections, typ)
			props := maps.Clone(required[typ])
			if props == nil {
				props = map[string]any{}
			}
			props["no-such-property"] = "1"
			p := must.Get(spi.NewProps(props, spi.Host{}))(t)
			wrong := (*spi.PropError)(nil)
			if err := make(typ, p); !errors.As(err, &wrong) || !wrong.Unknown {
				t.Errorf("%s with a property that it does not have\nhave: %v\nwant: a PropError", typ, err)
				continue
			}
			known := wrong.Known
			if typ == "LEAF_SNOWFLAKE" { // which reads it only to refuse it
				known = slices.DeleteFunc(slices.Clone(known), func(name string) bool { return name == "namespace" })
			}
			documented := propertiesOf(body)
			if has := slices.Index(documented, "own-database"); has >= 0 { // read only without a database
				documented = slices.Delete(documented, has, has+1)
			}
			slices.Sort(known)
			if !ok || !slices.Equal(documented, known) {
				t.Errorf("docs/reference/configuration.md, %s (there: %t)\nhave: %q\nwant: %q", typ, ok, documented, known)
			}
		}
		for title := range sections {
			t.Errorf("docs/reference/configuration.md has a section %s, which is no type", title)
		}
	}
	check(generators, registry.Types(registry.KeyGenerators), func(typ string, p spi.Props) error {
		_, err := spi.NewKeyGenerator(typ, p)
		return err
	})
	check(assigners, registry.Types(registry.WorkerIDAssigners), func(typ string, p spi.Props) error {
		_, err := spi.NewWorkerIDAssigner(typ, p)
		return err
	})
}

// propertiesOf returns the names in the first column of a section's tables.
func propertiesOf(section string) (names []string) {
	for _, row := range regexp.MustCompile(`(?m)^\|([^|]*)\|`).FindAllStringSubmatch(section, -1) {
		for _, m := range inBackticks.FindAllStringSubmatch(row[1], -1) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return names
}

// notRules matches YAML in the pages that is no rule, but a file of another program.
var notRules = regexp.MustCompile(`(?m)^(kind|apiVersion|groups|spring|scrape_configs|services):`)

// TestPages_rulesLoad loads every rule in the pages. It completes rules that are shown in
// part.
func TestPages_rulesLoad(t *testing.T) {
	for _, name := range []string{"WORKER_ID", "LEAF_PASSWORD", "TICKET_PASSWORD"} {
		t.Setenv(name, "7")
	}
	for _, name := range []string{"SHARDKEY_STORE_DSN", "SHOP_STORE"} {
		t.Setenv(name, "app:pass@tcp(db:3306)/ids")
	}
	files := 0
	for _, path := range allPages(t) {
		for _, m := range regexp.MustCompile("(?ms)^ *```yaml\n(.*?)^ *```").FindAllStringSubmatch(page(t, path), -1) {
			if notRules.MatchString(m[1]) {
				continue
			}
			files++
			text := wholeRule(m[1])
			if _, err := rule.Parse(path, []byte(text)); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
		}
	}
	if files < 20 {
		t.Errorf("have: %d files\nwant: more", files)
	}
}

// wholeRule completes a part of a rule: its tables, generators or assigners.
func wholeRule(text string) string {
	if regexp.MustCompile(`(?m)^ *(rules|shardingRule):`).MatchString(text) {
		return text
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	indent := len(lines[0]) - len(strings.TrimLeft(lines[0], " "))
	for i, line := range lines {
		lines[i] = "  " + line[min(indent, len(line)):]
	}
	text = strings.Join(lines, "\n") + "\n"
	has := func(key string) bool { return strings.Contains(text, "  "+key+":\n") }
	whole := "rules:\n- !SHARDING\n"
	if !has("keyGenerators") && !has("workerIdAssigners") {
		whole += "  tables:\n" + strings.ReplaceAll("  "+strings.TrimRight(text, "\n"), "\n", "\n  ") + "\n"
		text = ""
	}
	whole += text
	if !has("tables") && text != "" {
		whole += "  tables:\n"
		names := []string{"snowflake"}
		if has("keyGenerators") {
			names = nil
			for _, m := range regexp.MustCompile(`(?m)^    (\w+):(?: +\{|\n +)type: [A-Z_]+`).FindAllStringSubmatch(strings.Split(text, "  workerIdAssigners:")[0], -1) {
				names = append(names, m[1])
			}
		}
		for _, name := range names {
			whole += fmt.Sprintf("    t_%s: {keyGenerateStrategy: {column: id, keyGeneratorName: %[1]s}}\n", name)
		}
	}
	if !has("keyGenerators") {
		whole += "  keyGenerators:\n    snowflake: {type: SNOWFLAKE, props: {worker-id: 1}}\n"
	}
	if !has("workerIdAssigners") && strings.Contains(whole, "worker-id-assigner: cluster") {
		whole += "  workerIdAssigners:\n    cluster: {type: FILE, props: {path: /var/lib/workers}}\n"
	}
	return whole
}

// TestPages_commandsParse parses each command line of shardkey in the pages: its command,
// flags and arguments. TestDocs_sessions runs the sessions of docs/reference/cli.md.
func TestPages_commandsParse(t *testing.T) {
	commands := 0
	for _, path := range allPages(t) {
		text := strings.ReplaceAll(page(t, path), "go run -C cmd/shardkey . ", "shardkey ")
		var lines []string
		for _, m := range regexp.MustCompile("(?ms)^ *```(?:sh|console|text)\n(.*?)^ *```").FindAllStringSubmatch(text, -1) {
			lines = append(lines, regexp.MustCompile(`(?m)^ *(?:\$ |-- )?shardkey [a-z].*$`).FindAllString(m[1], -1)...)
		}
		for _, m := range inBackticks.FindAllStringSubmatch(regexp.MustCompile("(?ms)^ *```.*?^ *```").ReplaceAllString(text, ""), -1) {
			if strings.HasPrefix(m[1], "shardkey ") {
				lines = append(lines, m[1])
			}
		}
		for _, line := range lines {
			commands++
			_, line, _ = strings.Cut(line, "shardkey ")
			for _, end := range []string{" | ", " > ", " < ", "  #"} {
				line, _, _ = strings.Cut(line, end)
			}
			root := newProgram(nil, nil, nil, newStill()).rootCommand()
			root.InitDefaultHelpCmd()
			root.InitDefaultCompletionCmd()
			command, rest, err := root.Find(split(t, line))
			if err == nil {
				err = command.ParseFlags(rest)
			}
			if err == nil && command.Args != nil {
				err = command.ValidateArgs(command.Flags().Args())
			}
			if err != nil && !errors.Is(err, pflag.ErrHelp) {
				t.Errorf("%s: shardkey %s: %v", path, line, err)
			}
		}
	}
	if commands < 15 {
		t.Errorf("have: %d command lines\nwant: more", commands)
	}
}

// TestRefusals_documented plans the statements of docs/reference/sql.md and sql-differences.md. Those
// that the pages list as refused must fail with the message that they quote. The alternatives must
// succeed.
func TestRefusals_documented(t *testing.T) {
	text := page(t, "docs/reference/sql.md")
	file := filepath.Join(t.TempDir(), "rule.yaml")
	_, after, _ := strings.Cut(text, "```yaml\n")
	ruleText, _, _ := strings.Cut(after, "```")
	must.Do(t, os.WriteFile(file, []byte(ruleText), 0o600))
	rows := 0
	for _, text := range []string{text, page(t, "docs/reference/sql-differences.md")} {
		_, table, _ := strings.Cut(text, "\n## What is refused\n")
		table, _, ok := strings.Cut(table, "\nThese depend on the ")
		if !ok {
			t.Fatal("a page has no table of refusals")
		}
		for _, row := range regexp.MustCompile("(?m)^\\| `.*$").FindAllString(table, -1) {
			rows += testRefusal(t, file, row)
		}
	}
	if rows < 15 {
		t.Errorf("have: %d statements\nwant: more", rows)
	}
}

// testRefusal tests a row of refused statements, and returns their number.
func testRefusal(t *testing.T, file, row string) (statements int) {
	t.Helper()
	plan := func(statement string) (int, string) {
		status, stdout, stderr := runTool(t, "plan", "--rule", file, "--columns", "order_id,user_id", statement)
		return status, stdout + stderr
	}
	cells := strings.Split(strings.ReplaceAll(row, `\|`, "\x00"), " | ")
	if len(cells) != 3 {
		t.Errorf("%s\nhave: %d cells\nwant: 3", row, len(cells))
		return 0
	}
	quoted := inBackticks.FindAllStringSubmatch(cells[1], -1) // of each statement; the last one also of those behind it
	for i, m := range inBackticks.FindAllStringSubmatch(cells[0], -1) {
		statements++
		status, out := plan(strings.ReplaceAll(m[1], "\x00", "|"))
		if status != 1 || !strings.Contains(out, "refused: ") {
			t.Errorf("%s\nhave: %d %s\nwant: refused", m[1], status, out)
		}
		if words := quoted[min(i, len(quoted)-1)][1]; !strings.Contains(out, words) {
			t.Errorf("%s\nhave: %s\nwant: %q in it", m[1], out, words)
		}
	}
	for _, m := range inBackticks.FindAllStringSubmatch(cells[2], -1) {
		if !strings.HasPrefix(m[1], "INSERT") {
			continue
		}
		if status, out := plan(m[1]); status != 0 || !strings.Contains(out, "a key") {
			t.Errorf("instead: %s\nhave: %d %s\nwant: filled", m[1], status, out)
		}
	}
	return statements
}
