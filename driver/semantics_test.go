package driver

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/spi"
)

// TestSemantics_asThePageSays runs the statements of docs/semantics.md, direct and
// prepared: what is reported is what the table says.
func TestSemantics_asThePageSays(t *testing.T) {
	if testserver.Each(t, TestSemantics_asThePageSays) {
		return
	}
	page := must(os.ReadFile("../docs/semantics.md"))(t)
	rows := regexp.MustCompile("(?m)^\\| `(.*?)` \\| (.*?) \\| (.*?) \\| (.*?) \\| (.*?) \\|$").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 16 {
		t.Fatalf("have: %d statements\nwant: more", len(rows))
	}
	next := int64(1000)
	ours, plain := openScripted(t, scriptRule(t, func(_ context.Context, _ spi.Column, n int) ([]any, error) {
		keys := make([]any, n)
		for i := range keys {
			keys[i] = next
			next++
		}
		return keys, nil
	}, "t.id"), "")
	ours.SetMaxOpenConns(1)
	mustExec(t, plain, "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a VARCHAR(20) UNIQUE)")
	generated := regexp.MustCompile(`K(\d)`)
	for _, row := range rows {
		for _, prepared := range []bool{false, true} {
			mustExec(t, plain, "DELETE FROM t")
			mustExec(t, plain, "INSERT INTO t VALUES (7, 'old')")
			mustExec(t, ours, "DO LAST_INSERT_ID(9)")
			first := next
			want := generated.ReplaceAllStringFunc(strings.Join(row[2:], " | "), func(k string) string {
				return fmt.Sprint(first + int64(k[1]-'1'))
			})
			want = strings.Replace(want, "as before", "9", 1)
			var keys Keys
			var exec = ours.ExecContext
			if prepared {
				stmt := must(ours.Prepare(row[1]))(t)
				exec = func(ctx context.Context, _ string, _ ...any) (sql.Result, error) {
					defer stmt.Close()
					return stmt.ExecContext(ctx)
				}
			}
			res, err := exec(WithKeys(t.Context(), &keys), row[1])
			if err != nil {
				t.Errorf("%s: %v", row[1], err)
				continue
			}
			id, err := res.LastInsertId()
			if err != nil {
				t.Errorf("%s: LastInsertId: %v", row[1], err)
			}
			affected, _ := res.RowsAffected()
			var each []string
			for _, key := range keys.Values() {
				each = append(each, strings.Replace(fmt.Sprint(key), "<nil>", "nil", 1))
			}
			have := fmt.Sprintf("%d | %d | %d | %s", id, affected, number(t, ours, "SELECT LAST_INSERT_ID()"), strings.Join(each, ", "))
			if have != want {
				t.Errorf("%s (prepared: %t)\nhave: %s\nwant: %s", row[1], prepared, have, want)
			}
		}
	}
}
