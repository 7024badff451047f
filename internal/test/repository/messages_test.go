package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

// TestLogs_messages checks that the table of docs/reference/logs.md has each log message of the
// libraries, with the level and attributes that the code passes, and no others.
func TestLogs_messages(t *testing.T) {
	page := pages(t)["docs/reference/logs.md"]
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| ([A-Z]+) \\| `([^`]+)` \\|([^|]*)\\|.*$").FindAllStringSubmatch(page, -1) {
		rows[m[2]] = m[1] + m[3]
	}
	seen := 0
	for path, text := range files(t, func(name string) bool { return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") }) {
		dir, _, _ := strings.Cut(path, "/")
		if !slices.Contains([]string{"driver", "keygen", "rule", "spi", "gormshardkey", "otelshardkey"}, dir) {
			continue
		}
		ast.Inspect(must.Get(parser.ParseFile(token.NewFileSet(), path, text, 0))(t), func(n ast.Node) bool {
			m, ok := logged(n)
			if !ok {
				return true
			}
			seen++
			row, documented := rows[m.text]
			if !documented || m.level != "" && !strings.HasPrefix(row, m.level) {
				t.Errorf("%s\nhave: %q\nwant: %s %q in docs/reference/logs.md", path, row, m.level, m.text)
			}
			for _, attr := range m.attrs {
				must.Contain(t, row, "`"+attr+"`", m.text)
			}
			return true
		})
	}
	if seen != len(rows) || seen < 25 {
		t.Errorf("have: %d messages in docs/reference/logs.md\nwant: %d", len(rows), seen)
	}
}

// message is a call of a logger.
type message struct {
	level, text string
	attrs       []string // those that are literals
}

// logged returns the message of a call such as logger.Warn("shardkey: lease lost", "worker_id", id).
func logged(n ast.Node) (m message, ok bool) {
	call, _ := n.(*ast.CallExpr)
	if call == nil {
		return m, false
	}
	method, _ := call.Fun.(*ast.SelectorExpr)
	if method == nil {
		return m, false
	}
	if name := strings.TrimSuffix(method.Sel.Name, "Context"); slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, name) {
		m.level = strings.ToUpper(name)
	} else if name != "Log" && name != "LogAttrs" && name != "NewRecord" {
		return m, false
	}
	rest := call.Args
	for ; len(rest) > 0 && m.text == ""; rest = rest[1:] {
		if text, ok := strings.CutPrefix(literal(rest[0]), "shardkey: "); ok {
			m.text = text
		}
	}
	for i := 0; i < len(rest); i += 2 {
		if attr := literal(rest[i]); attr != "" {
			m.attrs = append(m.attrs, attr)
		}
	}
	return m, m.text != ""
}

func literal(x ast.Expr) string {
	if lit, ok := x.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		text, _ := strconv.Unquote(lit.Value)
		return text
	}
	return ""
}
