package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/rule"
)

// TestSemantics_documented runs the statements of docs/reference/sql.md and sql-differences.md, direct
// and prepared, and checks the results in the tables.
func TestSemantics_documented(t *testing.T) { onEach(t, testSemantics_documented) }

func testSemantics_documented(t *testing.T) {
	page := string(must(os.ReadFile("../docs/reference/sql.md"))(t)) + string(must(os.ReadFile("../docs/reference/sql-differences.md"))(t))
	rows := regexp.MustCompile("(?m)^\\| `(.*?)` \\| (.*?) \\| (.*?) \\| (.*?) \\| (.*?) \\|$").FindAllStringSubmatch(page, -1)
	if len(rows) < 16 {
		t.Fatalf("have: %d statements\nwant: more", len(rows))
	}
	next := int64(1000)
	counting := numbered(func(i int) int64 { next = int64(1001 + i); return next - 1 })
	ours, plain := openScripted(t, generatorRule(t, counting, "t.id"), "")
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
			equal(t, have, want, row[1], "(prepared", prepared, ")")
		}
	}
}

const (
	algorithms = "reference/sharding.md"
	shards     = "guides/shards.md"
)

// blocks returns the code blocks of a language in a page.
func blocks(t *testing.T, page, language string) (blocks []string) {
	t.Helper()
	text := must(os.ReadFile("../docs/" + page))(t)
	for _, after := range strings.Split(string(text), "```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(after, "```")
		blocks = append(blocks, block)
	}
	return blocks
}

// openPage opens the rule in the page about algorithms that has a table.
func openPage(t *testing.T, table string) (*sql.DB, *fakedb.Server, *rule.Sharding) {
	t.Helper()
	for _, text := range blocks(t, algorithms, "yaml") {
		r := mustParseRule(t, text)
		for _, of := range r.Tables() {
			if of.Logical == table {
				db, base := openShards(t, r)
				return db, base, of.Sharding
			}
		}
	}
	t.Fatalf("no page has a rule of %s", table)
	return nil, nil, nil
}

// TestDocs_shardingStatements executes the statements in the page about shards.
func TestDocs_shardingStatements(t *testing.T) {
	lines := 0
	for _, block := range blocks(t, shards, "sql") {
		for line := range strings.Lines(block) {
			query, outcome, ok := strings.Cut(strings.TrimSpace(line), "-- ")
			db, _, _ := openPage(t, "t_user")
			_, err := db.Exec(strings.TrimRight(query, "; "))
			refused := strings.HasPrefix(outcome, "refused")
			if !ok || refused != errors.Is(err, ErrWrongShard) || !refused && (err != nil || !strings.HasPrefix(outcome, "sent")) {
				t.Errorf("%s\nhave: %v\nwant: %s", query, err, outcome)
			}
			if _, meant, ok := strings.Cut(outcome, "belongs to "); ok && refused && !strings.Contains(err.Error(), meant) {
				t.Errorf("%s\nhave: %v\nwant: %s", query, err, meant)
			}
			lines++
		}
	}
	if lines < 5 {
		t.Errorf("have: %d statements\nwant: 5", lines)
	}
}

// The following functions contain the Go code of the pages about algorithms and shards.
// TestDocs_goIsTested compares them.

func pageByUser(db *sql.DB, users *rule.Sharding) error {
	place, err := users.Place([]any{int64(7)}) // users is the Sharding of the table t_user
	if err != nil {
		return err
	}
	_, err = db.Exec("INSERT INTO "+place.Table+" (user_id, name) VALUES (?, ?)", 7, "Ada")
	return err
}

func pageByTime(db *sql.DB) error {
	made := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	_, err := db.Exec("INSERT INTO t_event_"+made.Format("200601")+" (made, what) VALUES (?, ?)", made, "login")
	return err
}

func pageByColumn(ctx context.Context, db *sql.DB, userID, amount int64) error {
	table := ConnectorOf(db).Lookup("", "t_order")
	place, err := table.Sharding.Place([]any{userID})
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "INSERT INTO "+place.Table+" (user_id, amount) VALUES (?, ?)", userID, amount)
	return err
}

func pageByKey(ctx context.Context, db *sql.DB, _, amount int64) error {
	table := ConnectorOf(db).Lookup("", "t_order")
	keys, err := NextKeys(ctx, db, "t_order", 1)
	if err != nil {
		return err
	}
	place, err := table.Sharding.Place([]any{keys[0]})
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "INSERT INTO "+place.Table+" (order_id, amount) VALUES (?, ?)", keys[0], amount)
	return err
}

func pageByBits(ctx context.Context, db *sql.DB, userID, amount int64) error {
	table := ConnectorOf(db).Lookup("", "t_order")
	bits, err := table.ShardBits.Of(userID)
	if err != nil {
		return err
	}
	place, err := table.Sharding.Place([]any{bits})
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "INSERT INTO "+place.Table+" (user_id, amount) VALUES (?, ?)", userID, amount)
	return err
}

func TestDocs_shardingRuns(t *testing.T) {
	for table, run := range map[string]func(*sql.DB, *rule.Sharding) error{
		"t_user":  pageByUser,
		"t_event": func(db *sql.DB, _ *rule.Sharding) error { return pageByTime(db) },
	} {
		db, base, s := openPage(t, table)
		if err := run(db, s); err != nil || len(base.Queries("INTO ")) != 1 {
			t.Errorf("%s\nhave: %v, %q\nwant: one INSERT", table, err, base.Queries("INTO "))
		}
	}
}

// TestDocs_whichTable runs the page about shards with its rules.
func TestDocs_whichTable(t *testing.T) {
	const user, amount = 4711, 5
	rules := blocks(t, shards, "yaml")
	equal(t, len(rules), 3, "rules")
	for i, insert := range []func(context.Context, *sql.DB, int64, int64) error{pageByColumn, pageByKey, pageByBits} {
		r := mustParseRule(t, rules[i])
		db, base := openShards(t, r)
		noError(t, insert(t.Context(), db, user, amount), rules[i])
		equal(t, len(base.Sent), 1, rules[i])
		table := fmt.Sprint("t_order_", user%16)
		if i == 1 { // by the key
			mustExec(t, db, "INSERT INTO t_order_3 (amount) VALUES (?)", amount)
		} else {
			contains(t, base.Sent[0].Query, "INSERT INTO "+table+" ")
		}
		if i == 2 {
			keys := must(NextKeys(t.Context(), db, "t_order", 1, user))(t)
			equal(t, must(r.Tables()[0].Sharding.Place(keys))(t).Table, table, "key first")
		}
		equal(t, len(r.Warnings()), 0, r.Warnings())
	}
}

// TestDocs_goIsTested checks that each line of Go in these pages is in this file.
func TestDocs_goIsTested(t *testing.T) {
	own := string(must(os.ReadFile("docs_test.go"))(t))
	for page, n := range map[string]int{algorithms: 2, shards: 4} {
		code := blocks(t, page, "go")
		equal(t, len(code), n, page)
		for line := range strings.Lines(strings.Join(code, "")) {
			code, _, _ := strings.Cut(strings.ReplaceAll(line, "driver.", ""), "//")
			contains(t, own, strings.TrimSpace(code), page, "has Go that no test runs")
		}
	}
}

// TestDocs_cachedStatements compares the number in the page with the number of statements that the
// tests generate on each server.
func TestDocs_cachedStatements(t *testing.T) {
	const page = "../docs/understand/tests.md"
	cached := cachedStatements * len(cachedModes)
	want := fmt.Sprintf("| cached statements compared with ones prepared each time | %d | %d | %d |", cached, cached, cached)
	contains(t, string(must(os.ReadFile(page))(t)), want)
}
