package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

// TestNames_receivers checks that a receiver of one letter stands for one type in its package.
func TestNames_receivers(t *testing.T) {
	touchSources(t)
	type receiver struct{ dir, name string }
	types := map[receiver]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
			return err
		}
		files := token.NewFileSet()
		for _, d := range must.Get(parser.ParseFile(files, path, nil, parser.SkipObjectResolution))(t).Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || len(f.Recv.List[0].Names) == 0 || len(f.Recv.List[0].Names[0].Name) != 1 {
				continue
			}
			r, of := receiver{filepath.Dir(path), f.Recv.List[0].Names[0].Name}, typeName(f.Recv.List[0].Type)
			if other := types[r]; other != "" && other != of {
				t.Errorf("%s: %s is the receiver of %s and %s", files.Position(f.Pos()), r.name, other, of)
			}
			types[r] = of
		}
		return nil
	})
	must.Do(t, err)
}

// typeName returns the name of a receiver's type.
func typeName(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return typeName(of.X)
	case *ast.IndexExpr:
		return typeName(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}

// TestFiles_size checks that git has no file that is larger than what people write, such as a program.
func TestFiles_size(t *testing.T) {
	const most = 512 << 10
	if _, err := os.Stat(".git"); err != nil {
		t.Skip("only a git checkout shows which files belong to the repository: ", err)
	}
	names := must.Get(exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z").Output())(t)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if info, err := os.Lstat(name); err == nil && info.Size() > most {
			t.Errorf("%s has %d bytes\nwant: at most %d", name, info.Size(), most)
		}
	}
}
