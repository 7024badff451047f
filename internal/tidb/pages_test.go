package tidb_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/internal/tidb"
	"github.com/shardkey/shardkey/rewrite"
)

// TestPages_sqlParses parses the SQL in the docs.
func TestPages_sqlParses(t *testing.T) {
	pages := must.Get(filepath.Glob("../../docs/*/*.md"))(t)
	blocks := 0
	for _, page := range pages {
		text := must.Get(os.ReadFile(page))(t)
		for _, m := range regexp.MustCompile("(?ms)^ *```sql\n(.*?)^ *```").FindAllStringSubmatch(string(text), -1) {
			blocks++
			if stmts, err := tidb.Parse(m[1], rewrite.Options{}); err != nil || len(stmts) == 0 {
				t.Errorf("%s: %v\n%s", page, err, m[1])
			}
		}
	}
	if blocks < 4 {
		t.Errorf("have: %d blocks\nwant: more", blocks)
	}
}
