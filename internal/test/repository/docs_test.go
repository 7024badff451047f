package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/internal/test/must"
)

// pages returns the documents of the repository by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := files(t, func(name string) bool { return filepath.Ext(name) == ".md" })
	if len(all) < 20 {
		t.Fatalf("have: %d pages\nwant: more", len(all))
	}
	return all
}

// files returns the files outside testdata whose names match, by their paths. They are opened by
// their absolute paths: go test resolves others in the directory in which the test started, and
// would repeat a result after a change.
func files(t *testing.T, match func(name string) bool) map[string]string {
	t.Helper()
	all := map[string]string{}
	root := must.Get(os.Getwd())(t)
	must.Do(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "bin" || name == ".git"):
			return fs.SkipDir
		case !d.IsDir() && match(name):
			content, err := os.ReadFile(path)
			all[filepath.ToSlash(path[len(root)+1:])] = string(content)
			return err
		}
		return nil
	}))
	return all
}

var (
	block   = regexp.MustCompile("(?ms)^ *```(\\w*)\n(.*?)^ *```")
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	link    = regexp.MustCompile(`(?:\]\(|src(?:set)?=")([^)"\s]+)[)"]`)
)

// prose returns a page without its code blocks.
func prose(text string) string { return block.ReplaceAllString(text, "") }

// anchor returns GitHub's anchor for a heading.
func anchor(heading string) string {
	heading = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// TestDocs_linksLeadSomewhere checks links inside the repository, to files and to headings.
func TestDocs_linksLeadSomewhere(t *testing.T) {
	all := pages(t)
	anchors := map[string][]string{}
	for path, text := range all {
		for _, m := range heading.FindAllStringSubmatch(prose(text), -1) {
			anchors[path] = append(anchors[path], anchor(m[1]))
		}
	}
	for path, text := range all {
		for _, m := range link.FindAllStringSubmatch(prose(text), -1) {
			to, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			target := path
			if to != "" {
				target = filepath.Join(filepath.Dir(path), to)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s leads nowhere", path, m[0])
			} else if fragment != "" && filepath.Ext(target) == ".md" && !slices.Contains(anchors[target], fragment) {
				t.Errorf("%s: %s: %s has no such heading; it has %q", path, m[0], target, anchors[target])
			}
		}
	}
}

// TestDocs_linksOfComments checks the links to pages in doc comments. pkg.go.dev shows a path in the
// repository as text.
func TestDocs_linksOfComments(t *testing.T) {
	page := regexp.MustCompile(`^\s*//.*?(https://github.com/shardkey/shardkey/blob/main/)?(docs/[\w/-]+\.md)`)
	links := 0
	for file, text := range files(t, func(name string) bool { return filepath.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") }) {
		if dir, _, _ := strings.Cut(file, "/"); slices.Contains([]string{"bench", "cmd", "examples", "internal"}, dir) {
			continue
		}
		for line := range strings.Lines(text) {
			m := page.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			links++
			if _, err := os.Stat(m[2]); err != nil || m[1] == "" {
				t.Errorf("%s: have: %swant: a link of the comment to a page", file, line)
			}
		}
	}
	if links < 10 {
		t.Errorf("have: %d links\nwant: more", links)
	}
}

// TestDocs_areInTheIndex checks that docs/README.md links to every page, docs/decisions/README.md to
// every decision, and examples/README.md to every example.
func TestDocs_areInTheIndex(t *testing.T) {
	all := pages(t)
	for path := range all {
		index := "docs/README.md"
		if strings.HasPrefix(path, "docs/decisions/") && path != "docs/decisions/README.md" {
			index = "docs/decisions/README.md"
		}
		to, ok := strings.CutPrefix(path, filepath.Dir(index)+"/")
		if ok && path != index && !strings.Contains(all[index], "]("+to+")") {
			t.Errorf("%s does not lead to %s", index, path)
		}
	}
	mains := must.Get(filepath.Glob("examples/*/main.go"))(t)
	more := must.Get(filepath.Glob("examples/*/*/main.go"))(t)
	for _, main := range append(mains, more...) {
		dir := strings.TrimPrefix(filepath.Dir(main), "examples/")
		if !strings.Contains(all["examples/README.md"], "go run -C examples ./"+dir+"`") {
			t.Errorf("examples/README.md does not say how to run %s", dir)
		}
	}
}

// translations maps the English pages to the Chinese ones.
var translations = map[string]string{
	"README.md":                          "README.zh.md",
	"docs/start/quickstart.md":           "docs/zh/quickstart.md",
	"docs/guides/from-shardingsphere.md": "docs/zh/from-shardingsphere.md",
	"docs/guides/from-generators.md":     "docs/zh/from-generators.md",
	"docs/help/faq.md":                   "docs/zh/faq.md",
	"docs/guides/shards.md":              "docs/zh/shards.md",
	"docs/guides/kubernetes.md":          "docs/zh/kubernetes.md",
	"docs/guides/gorm.md":                "docs/zh/gorm.md",
	"docs/guides/from-auto-increment.md": "docs/zh/from-auto-increment.md",
	"docs/start/choose.md":               "docs/zh/choose.md",
	"docs/reference/sql.md":              "docs/zh/sql.md",
}

// targets returns the pages that a page links to. Chinese pages have their English paths.
func targets(page, text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range link.FindAllStringSubmatch(prose(text), -1) {
		to, _, _ := strings.Cut(m[1], "#")
		if to == "" || strings.Contains(to, "://") {
			continue
		}
		to = filepath.Join(filepath.Dir(page), to)
		for english, chinese := range translations {
			if to == chinese {
				to = english
			}
		}
		found[to] = true
	}
	return found
}

// TestDocs_chinese compares each Chinese page with the English one. They must link to each other
// and to the same pages.
func TestDocs_chinese(t *testing.T) {
	all := pages(t)
	for path := range all {
		if strings.HasPrefix(path, "docs/zh/") && !slices.Contains(slices.Collect(maps.Values(translations)), path) {
			t.Errorf("%s is a translation of no page", path)
		}
	}
	for english, chinese := range translations {
		have, want := targets(chinese, all[chinese]), targets(english, all[english])
		if !have[english] || !want[english] {
			t.Errorf("%s and %s do not lead to one another", english, chinese)
		}
		for to := range want {
			if !have[to] {
				t.Errorf("%s does not lead to %s, as %s does", chinese, to, english)
			}
		}
	}
}

// TestDocs_commandsExist checks that the programs, modules and make targets in the pages exist.
// The tests of cmd/shardkey check the commands of shardkey.
func TestDocs_commandsExist(t *testing.T) {
	makefile := must.Get(os.ReadFile("Makefile"))(t)
	var (
		program = regexp.MustCompile(`go run -C (\w+) \./([\w/]+)`)
		module  = regexp.MustCompile(`go (?:get|install) github\.com/shardkey/shardkey/?([\w/]*)`)
		target  = regexp.MustCompile("(?m)(?:^|`)make ([a-z][a-z0-9-]*)")
		tests   = regexp.MustCompile(`go test \./([\w/]+)`)
	)
	seen := 0
	for path, text := range pages(t) {
		var paths []string
		for _, m := range program.FindAllStringSubmatch(text, -1) {
			paths = append(paths, filepath.Join(m[1], m[2]))
		}
		for _, m := range append(module.FindAllStringSubmatch(text, -1), tests.FindAllStringSubmatch(text, -1)...) {
			paths = append(paths, filepath.FromSlash("./"+m[1]))
		}
		for _, dir := range paths {
			seen++
			if files, err := filepath.Glob(filepath.Join(dir, "*.go")); err != nil || len(files) == 0 {
				t.Errorf("%s: there is no program or package %s", path, dir)
			}
		}
		for _, m := range target.FindAllStringSubmatch(text, -1) {
			seen++
			must.Contain(t, string(makefile), "\n"+m[1]+":", path, "make has no target", m[1])
		}
	}
	if seen < 30 {
		t.Errorf("have: %d commands\nwant: more", seen)
	}
}

// TestDocs_testsExist checks that the tests that the pages run are in the package that they name.
func TestDocs_testsExist(t *testing.T) {
	command := regexp.MustCompile(`(?m)\bgo test .*$`)
	dir, run := regexp.MustCompile(` \./([\w/]+)`), regexp.MustCompile(`-run '?([\w|]+)`)
	seen := 0
	tests := files(t, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	for path, text := range pages(t) {
		for _, line := range command.FindAllString(text, -1) {
			in, names := dir.FindStringSubmatch(line), run.FindStringSubmatch(line)
			if in == nil || names == nil || names[1] == "XXX" {
				continue
			}
			for name := range strings.SplitSeq(names[1], "|") {
				seen++
				is := regexp.MustCompile(`(?m)^func \w*` + name)
				found := slices.ContainsFunc(slices.Collect(maps.Keys(tests)), func(file string) bool {
					return filepath.ToSlash(filepath.Dir(file)) == strings.TrimSuffix(in[1], "/") && is.MatchString(tests[file])
				})
				if !found {
					t.Errorf("%s: %s\nhave: no test %s in %s", path, line, name, in[1])
				}
			}
		}
	}
	if seen < 8 {
		t.Errorf("have: %d tests\nwant: more", seen)
	}
}

// TestDocs_errorsAreInOperating checks that the table of docs/reference/errors.md has a row for
// each exported error, and no others.
func TestDocs_errorsAreInOperating(t *testing.T) {
	page := pages(t)["docs/reference/errors.md"]
	_, table, ok := strings.Cut(page, "\n## Errors\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\|[^|]*\|`).FindAllString(table, -1) {
		for _, name := range regexp.MustCompile("`([a-z]+\\.\\w+)`").FindAllStringSubmatch(m, -1) {
			rows[name[1]] = false
		}
	}
	errs := 0
	for _, s := range loadSources(t) {
		for _, name := range s.errors() {
			errs++
			if _, ok := rows[name]; !ok {
				t.Errorf("docs/reference/errors.md, Errors, has no row for %s", name)
			}
			rows[name] = true
		}
	}
	for name, found := range rows {
		if !found {
			t.Errorf("docs/reference/errors.md, Errors, has a row for %s, which there is not", name)
		}
	}
	if !ok || errs < 25 {
		t.Errorf("have: %d errors\nwant: more", errs)
	}
}

// errors returns the names of a library's variables Err… and types …Error.
func (s *source) errors() (names []string) {
	for _, name := range s.pkg.Scope().Names() {
		obj := s.pkg.Scope().Lookup(name)
		_, isType := obj.(*types.TypeName)
		_, isVar := obj.(*types.Var)
		if obj.Exported() && (isType && strings.HasSuffix(name, "Error") || isVar && strings.HasPrefix(name, "Err")) {
			names = append(names, path.Base(s.dir)+"."+name)
		}
	}
	return names
}

// TestSupport_queries checks that docs/reference/support.md, for users of proxies, lists the
// queries that the driver adds.
func TestSupport_queries(t *testing.T) {
	page := must.Get(os.ReadFile("docs/reference/support.md"))(t)
	files := must.Get(filepath.Glob("driver/internal/*/*.go"))(t)
	query := regexp.MustCompile(`^(SELECT @@\w+|SELECT \w+\(\)|SELECT LAST_INSERT_ID\(|SELECT \* FROM|SHOW VITESS_SHARDS|SHOW (FULL )?COLUMNS|SHOW TRIGGERS|` +
		`SET [a-z_]+)`)
	found := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed := must.Get(parser.ParseFile(token.NewFileSet(), file, nil, 0))(t)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if q := query.FindString(strings.Trim(lit.Value, "\"`")); q != "" {
					found[q] = true
				}
			}
			return true
		})
	}
	if len(found) < 11 {
		t.Fatalf("have: %d queries\nwant: more", len(found))
	}
	for q := range found {
		if !strings.Contains(string(page), q) {
			t.Errorf("have: docs/reference/support.md without %s", q)
		}
	}
}

// dataSourceName matches a DSN in prose or code.
var dataSourceName = regexp.MustCompile("[^\\s\"'`(=<>|@,]+@tcp\\([^)]*\\)/[^\\s\"'`|,;)]*")

// TestDocs_dataSourceNames parses each DSN of the documentation and the examples with go-sql-driver,
// as programs and libraries do before they open it. A parameter by itself must not break one.
func TestDocs_dataSourceNames(t *testing.T) {
	found := 0
	for path, text := range files(t, func(name string) bool { return slices.Contains([]string{".md", ".go"}, filepath.Ext(name)) }) {
		if filepath.Ext(path) == ".go" && !strings.HasPrefix(path, "examples/") && filepath.Base(path) != "doc.go" {
			continue
		}
		for _, dsn := range dataSourceName.FindAllString(text, -1) {
			found++
			if _, err := mysql.ParseDSN(strings.ReplaceAll(dsn, "%%", "%")); err != nil {
				t.Errorf("%s: %s: %v", path, dsn, err)
			}
		}
		for _, m := range regexp.MustCompile("shardkeyRule=([^\\s\"'`&]*)").FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "/") {
				t.Errorf("%s: %s\nwant: %%2F for a slash", path, m[0])
			}
		}
	}
	if found < 25 {
		t.Errorf("have: %d DSNs\nwant: those of all pages", found)
	}
}

// TestDocs_size counts the words of the English pages for users, outside of code and without the targets
// of links. A reader finishes short pages only: a page that grows lets another one shrink.
func TestDocs_size(t *testing.T) {
	target, word := regexp.MustCompile(`\]\([^)]*\)`), regexp.MustCompile(`\S*\w\S*`)
	count := func(text string) int { return len(word.FindAllString(target.ReplaceAllString(prose(text), "]"), -1)) }
	all := pages(t)
	words := 0
	for path, text := range all {
		if strings.HasPrefix(path, "docs/") && !strings.HasPrefix(path, "docs/zh/") && !strings.HasPrefix(path, "docs/decisions/") {
			words += count(text)
		}
	}
	for what, c := range map[string]struct{ have, most int }{
		"docs, in English":      {words, 27000},
		"docs/reference/sql.md": {count(all["docs/reference/sql.md"]), 1250},
		"README.md, with code":  {len(strings.Fields(all["README.md"])), 900},
	} {
		if c.have > c.most {
			t.Errorf("%s\nhave: %d words\nwant: at most %d", what, c.have, c.most)
		}
	}
}
