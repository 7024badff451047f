package driver

import (
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/testserver"
)

// TestReadme_asShown does what the README's first program does, with its rule.
func TestReadme_asShown(t *testing.T) {
	if testserver.Each(t, TestReadme_asShown) {
		return
	}
	readme := must(os.ReadFile("../README.md"))(t)
	_, after, _ := strings.Cut(string(readme), "```yaml\n")
	text, _, _ := strings.Cut(after, "```")
	inserts := regexp.MustCompile(`"(INSERT [^"]*)", (\d+(?:, \d+)*)\)`).FindAllStringSubmatch(string(readme), -1)
	if len(inserts) != 2 {
		t.Fatalf("have: %q\nwant: two INSERTs", inserts)
	}
	file := filepath.Join(t.TempDir(), "rule.yaml")
	write(t, file, text)
	dsn := testserver.Database(t)
	sep := "?"
	if strings.Contains(dsn, "?") {
		sep = "&"
	}
	db := must(sql.Open("shardkey", dsn+sep+"shardkeyRule="+url.PathEscape(file)))(t)
	defer db.Close()
	create := regexp.MustCompile(`(?m)^CREATE TABLE t_order_1 .*?\)` + "(;|$)").FindString(string(readme))
	mustExec(t, db, create)
	for _, m := range inserts {
		var args []any
		for arg := range strings.SplitSeq(m[2], ", ") {
			args = append(args, arg)
		}
		var keys Keys
		res := must(db.ExecContext(WithKeys(t.Context(), &keys), m[1], args...))(t)
		id, err := res.LastInsertId()
		values := keys.Values()
		if err != nil || len(values) != len(args) || values[0] != id || id < 1e18 {
			t.Errorf("%s\nhave: %d, %v, %v\nwant: a key for each of %d rows", m[1], id, err, values, len(args))
		}
	}
}
