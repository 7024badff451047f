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
	"github.com/shardkey/shardkey/spi"
)

// TestSemantics_documented runs the statements of docs/reference/sql.md, direct and prepared, and
// checks the results in the page's table.
func TestSemantics_documented(t *testing.T) { onEach(t, testSemantics_documented) }

func testSemantics_documented(t *testing.T) {
	page := must(os.ReadFile("../docs/reference/sql.md"))(t)
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
			equal(t, have, want, row[1], "(prepared", prepared, ")")
		}
	}
}

// shardingPages returns the code blocks of a language in the pages about sharding.
func shardingPages(t *testing.T, language string) (blocks []string) {
	t.Helper()
	for _, path := range []string{"../docs/guides/shard-bits.md", "../docs/reference/sharding.md"} {
		page := must(os.ReadFile(path))(t)
		for _, after := range strings.Split(string(page), "```"+language+"\n")[1:] {
			block, _, _ := strings.Cut(after, "```")
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// openPage opens the rule in the pages about sharding that has a table.
func openPage(t *testing.T, table string) (*sql.DB, *fakedb.Server, *rule.Sharding) {
	t.Helper()
	for _, text := range shardingPages(t, "yaml") {
		if strings.Contains(text, "gene-column") && table == "t_order" {
			continue // use the first rule with the table
		}
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

// TestDocs_shardingStatements executes the statements in the pages about sharding.
func TestDocs_shardingStatements(t *testing.T) {
	blocks := shardingPages(t, "sql")
	lines := 0
	for _, block := range blocks {
		for line := range strings.Lines(block) {
			query, outcome, ok := strings.Cut(strings.TrimSpace(line), "-- ")
			table := "t_user"
			if strings.Contains(query, "t_order") {
				table = "t_order"
			}
			db, _, _ := openPage(t, table)
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
	if lines < 6 {
		t.Errorf("have: %d statements\nwant: 6", lines)
	}
}

// The following functions contain the Go code of the pages about sharding.
// TestDocs_shardingIsTested compares them.

func pageByKey(db *sql.DB) error {
	res, err := db.Exec("INSERT INTO t_order_3 (user_id) VALUES (?), (?)", 7, 8) // keys whose remainder by 4 is 3
	_ = res
	return err
}

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

func pageByGene(table *rule.Table, userID, orderID int64) (places [2]rule.Place, err error) {
	gene := orderID % 16                                     // its lowest 4 bits
	place, err := table.Sharding.Place([]any{gene, orderID}) // Columns are user_id, order_id
	if err != nil {
		return places, err
	}
	places[0] = place
	gene, err = table.ShardBits.Of(userID)
	if err != nil {
		return places, err
	}
	place, err = table.Sharding.Place([]any{userID, gene})
	return [2]rule.Place{places[0], place}, err
}

func TestDocs_shardingGenes(t *testing.T) {
	for _, text := range shardingPages(t, "yaml") {
		if !strings.Contains(text, "gene-column") {
			continue
		}
		of := mustParseRule(t, text).Tables()[0]
		gene := must(of.ShardBits.Of(int64(12345)))(t)
		places, err := pageByGene(&of, 12345, 1<<40|gene)
		if err != nil || places[0] != places[1] || places[0].Table == "" {
			t.Errorf("have: %v, %v\nwant: one place", places, err)
		}
	}
}

func TestDocs_shardingRuns(t *testing.T) {
	for table, run := range map[string]func(*sql.DB, *rule.Sharding) error{
		"t_order": func(db *sql.DB, _ *rule.Sharding) error { return pageByKey(db) },
		"t_user":  pageByUser,
		"t_event": func(db *sql.DB, _ *rule.Sharding) error { return pageByTime(db) },
	} {
		db, base, s := openPage(t, table)
		if err := run(db, s); err != nil || len(base.Queries("INTO ")) != 1 {
			t.Errorf("%s\nhave: %v, %q\nwant: one INSERT", table, err, base.Queries("INTO "))
		}
	}
}

// TestDocs_shardingIsTested checks that each line of Go in these pages is in this file.
func TestDocs_shardingIsTested(t *testing.T) {
	own := must(os.ReadFile("docs_test.go"))(t)
	blocks := shardingPages(t, "go")
	for _, block := range blocks {
		for line := range strings.Lines(block) {
			code, _, _ := strings.Cut(line, "//")
			if !strings.Contains(string(own), strings.TrimSpace(code)) {
				t.Errorf("a page has Go that no test runs: %s", line)
			}
		}
	}
	equal(t, len(blocks), 4)
}

// TestDocs_generatedStatements compares the numbers in the pages with the numbers of statements
// that the tests generate on each server, which the READMEs round.
func TestDocs_generatedStatements(t *testing.T) {
	each := worldsPerSeed * statementsPerWorld
	full, oldest := each*len(seeds), each // the oldest takes one seed
	const page = "../docs/understand/tests.md"
	cached := cachedStatements * len(cachedModes)
	thousands := (full + 500) / 1000
	for _, tt := range [][2]string{
		{page, fmt.Sprintf("| generated statements compared with AUTO_INCREMENT | %d | %d | %d | %d |", full, full, full, oldest)},
		{page, fmt.Sprintf("| cached statements compared with ones prepared each time | %d | %d | %d | |", cached, cached, cached)},
		{"../README.md", fmt.Sprintf("[%d,000 generated statements]", thousands)},
		{"../README.zh.md", fmt.Sprintf(" %d,000 条语句", thousands)},
	} {
		text := string(must(os.ReadFile(tt[0]))(t))
		if !strings.Contains(text, tt[1]) {
			t.Errorf("have: %s without %q", tt[0], tt[1])
		}
	}
}
