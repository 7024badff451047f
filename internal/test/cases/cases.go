// Package cases reads tables of test cases from files.
package cases

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

// Read returns the cases of a file, each with this number of columns. A line is a case, and tabs
// separate its columns. A column in double quotes is a Go string, and the last ones may be missing.
// Empty lines and lines that begin with # are skipped.
func Read(t testing.TB, file string, columns int) (cases [][]string) {
	t.Helper()
	for line := range strings.SplitSeq(string(must.Get(os.ReadFile(file))(t)), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		c := strings.Split(line, "\t")
		for i, cell := range c {
			if len(cell) > 1 && cell[0] == '"' && cell[len(cell)-1] == '"' {
				c[i] = must.Get(strconv.Unquote(cell))(t, file, line)
			}
		}
		if len(c) > columns {
			t.Fatalf("%s: %s\nhave: %d columns\nwant: %d", file, line, len(c), columns)
		}
		cases = append(cases, append(c, make([]string, columns-len(c))...))
	}
	must.Equal(t, len(cases) > 0, true, file, "has cases:")
	return cases
}
