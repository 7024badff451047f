// Package linear checks that functions that read statements and rules take time in proportion to
// their length. Time isn't measured: the test runs again, with packages that count their steps and
// the bytes that they pass over.
package linear

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/linear/steps"
	"github.com/shardkey/shardkey/internal/test/must"
)

const module = "github.com/shardkey/shardkey/"

// counted are the packages that count their steps.
var counted = []string{"debug", "driver", "driver/internal", "rewrite", "rule", "spi", "internal/columntype", "internal/nearest", "internal/sqltoken", "internal/tidb", "cmd/shardkey/internal/lint"}

// entry is a function that reads a statement or a rule.
type entry struct {
	name string
	read func(t *testing.T, text string)
}

// growth is the largest factor by which steps and allocated bytes may grow when the length doubles.
const growth = 2.5

// TestEntries: each way to read a statement takes time in proportion to its length.
func TestEntries(t *testing.T) {
	if !steps.Counted {
		again(t)
		return
	}
	for _, e := range entries(t) {
		for _, shape := range shapes(t) {
			const bytes = 9 << 10 // longer than the statements that a connection remembers
			t.Run(e.name+"/"+shape.name, func(t *testing.T) { e.grows(t, shape.statement, bytes) })
		}
	}
	for _, r := range rules {
		t.Run("rule/"+r.name, func(t *testing.T) { (&entry{"rule", readRule}).grows(t, r.rule, 500) })
	}
}

// grows compares texts of n parts and of twice as many.
func (e *entry) grows(t *testing.T, text func(n int) string, n int) {
	t.Helper()
	e.measure(t, text(n/2)) // what is done once
	once, twice := e.measure(t, text(n)), e.measure(t, text(2*n))
	for i, what := range []string{"steps", "bytes allocated"} {
		if have := twice[i] / once[i]; have > growth {
			t.Errorf("%s for %d and %d parts\nhave: %.0f and %.0f, %.2f times\nwant: at most %v times",
				what, n, 2*n, once[i], twice[i], have, growth)
		}
	}
}

// measure returns the steps and allocated bytes of one call.
func (e *entry) measure(t *testing.T, text string) [2]float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := steps.N
	e.read(t, text)
	if n = steps.N - n; n == 0 {
		t.Error("no steps were counted")
	}
	runtime.ReadMemStats(&after)
	const fewSteps, fewBytes = 1000, 2 << 20 // of which growth doesn't matter
	return [2]float64{float64(n) + fewSteps, float64(after.TotalAlloc-before.TotalAlloc) + fewBytes}
}

// nested is set in the environment of the run that counts.
const nested = "SHARDKEY_TEST_LINEAR"

// again runs the calling test in packages that count their steps.
func again(t *testing.T) {
	t.Helper()
	if os.Getenv(nested) != "" {
		t.Fatal("the overlay has no effect")
	}
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	data, err := json.Marshal(map[string]any{"Replace": countingSources(t)})
	if err == nil {
		err = os.WriteFile(overlay, data, 0o600)
	}
	must.Do(t, err)
	cmd := exec.Command("go", "test", "-count=1", "-overlay", overlay, "-run", "^"+t.Name()+"$", ".")
	cmd.Env = append(os.Environ(), nested+"=true")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// countingSources returns the files that count, by the names of the files that they replace.
func countingSources(t *testing.T) map[string]string {
	t.Helper()
	out := must.Get(exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,Dir,GoFiles,ForTest", ".").Output())(t)
	replace, dir := map[string]string{}, t.TempDir()
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Dir, ForTest string
			GoFiles                  []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return replace
		} else if err != nil {
			t.Fatal(err)
		}
		path, ours := strings.CutPrefix(strings.Fields(p.ImportPath)[0], module)
		for _, name := range p.GoFiles {
			file := filepath.Join(p.Dir, name)
			source, err := os.ReadFile(file)
			if err != nil || replace[file] != "" || !ours {
				continue
			}
			switch {
			case path == "internal/test/linear/steps":
				source = []byte(strings.Replace(string(source), "Counted = false", "Counted = true", 1))
			case isCounted(path) && !strings.HasSuffix(name, "_test.go"):
				source = counting(t, file, source)
			default:
				continue
			}
			to := filepath.Join(dir, fmt.Sprintf("%d_%s", len(replace), name))
			must.Do(t, os.WriteFile(to, source, 0o600))
			replace[file] = to
		}
	}
}

func isCounted(path string) bool {
	return slices.ContainsFunc(counted, func(dir string) bool {
		return path == dir || strings.HasPrefix(path, dir+"/internal/") || filepath.Dir(path) == dir
	})
}

// counting returns a source file that counts a step for each call and each round of a loop.
func counting(t *testing.T, name string, source []byte) []byte {
	t.Helper()
	fset := token.NewFileSet()
	f := must.Get(parser.ParseFile(fset, name, source, parser.SkipObjectResolution))(t)
	insert := map[int]string{}
	at := func(pos token.Pos) int { return fset.Position(pos).Offset }
	insert[at(f.Name.End())] = `; import linearSteps "` + module + `internal/test/linear/steps"`
	for _, i := range f.Imports {
		if i.Path.Value == `"strings"` && i.Name == nil {
			insert[at(i.Pos())] = `strings "` + module + `internal/test/linear/strings" //`
		}
	}
	const step = " linearSteps.N++; "
	blocks := 0
	ast.Inspect(f, func(n ast.Node) bool {
		var body *ast.BlockStmt
		switch n := n.(type) {
		case *ast.FuncDecl:
			body = n.Body
		case *ast.FuncLit:
			body = n.Body
		case *ast.ForStmt:
			body = n.Body
		case *ast.RangeStmt:
			body = n.Body
		}
		if body != nil {
			insert[at(body.Lbrace)+1] = step
			blocks++
		}
		return true
	})
	if blocks == 0 {
		insert[len(source)] = "\nvar _ = &linearSteps.N\n"
	}
	return inserted(source, insert)
}

// inserted returns a source with additions at offsets.
func inserted(source []byte, more map[int]string) (out []byte) {
	for i := range len(source) + 1 {
		out = append(out, more[i]...)
		if i < len(source) {
			out = append(out, source[i])
		}
	}
	return out
}
