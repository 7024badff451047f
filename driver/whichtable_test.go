package driver_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/rule"
)

// These functions are shown in docs/guides/shards.md. TestDocs_whichTable compares the
// page with this file.

func insertByColumn(ctx context.Context, db *sql.DB, userID, amount int64) error {
	table := driver.ConnectorOf(db).Lookup("", "t_order")
	place, err := table.Sharding.Place([]any{userID})
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "INSERT INTO "+place.Table+" (user_id, amount) VALUES (?, ?)", userID, amount)
	return err
}

func insertByKey(ctx context.Context, db *sql.DB, amount int64) error {
	table := driver.ConnectorOf(db).Lookup("", "t_order")
	keys, err := driver.NextKeys(ctx, db, "t_order", 1)
	if err != nil {
		return err
	}
	place, err := table.Sharding.Place([]any{keys[0]})
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "INSERT INTO "+place.Table+" (order_id, amount) VALUES (?, ?)", keys[0], amount)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "INSERT INTO t_order_3 (amount) VALUES (?)", amount)
	return err
}

func insertByBits(ctx context.Context, db *sql.DB, userID, amount int64) error {
	table := driver.ConnectorOf(db).Lookup("", "t_order")
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

func keyFirstByBits(ctx context.Context, db *sql.DB, userID int64) (rule.Place, error) {
	table := driver.ConnectorOf(db).Lookup("", "t_order")
	keys, err := driver.NextKeys(ctx, db, "t_order", 1, userID)
	if err != nil {
		return rule.Place{}, err
	}
	return table.Sharding.Place([]any{keys[0]})
}

func whichTablePage(t *testing.T, language string) []string {
	t.Helper()
	page, err := os.ReadFile("../docs/guides/shards.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```"+language+"\n")[1:]
	for i := range blocks {
		blocks[i], _, _ = strings.Cut(blocks[i], "```")
	}
	return blocks
}

func TestDocs_whichTable(t *testing.T) {
	own, err := os.ReadFile("whichtable_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range whichTablePage(t, "go") {
		for line := range strings.Lines(block) {
			code, _, _ := strings.Cut(line, "//")
			if code = strings.TrimPrefix(strings.TrimSpace(code), "place, err := table.Sharding.Place([]any{keys[0]})"); !strings.Contains(string(own), code) {
				t.Errorf("docs/guides/shards.md has Go that no test runs: %s", line)
			}
		}
	}
	const user, amount = 4711, 5
	rules := whichTablePage(t, "yaml")
	if len(rules) != 3 {
		t.Fatalf("have: %d rules\nwant: 3", len(rules))
	}
	byBits := fmt.Sprint("t_order_", user%16)
	for i, flow := range []func(context.Context, *sql.DB) error{
		func(ctx context.Context, db *sql.DB) error { return insertByColumn(ctx, db, user, amount) },
		func(ctx context.Context, db *sql.DB) error { return insertByKey(ctx, db, amount) },
		func(ctx context.Context, db *sql.DB) error { return insertByBits(ctx, db, user, amount) },
	} {
		r, err := rule.Parse(t.Name()+fmt.Sprint(i), []byte(rules[i]))
		if err != nil || len(r.Warnings()) > 0 {
			t.Fatal(err, r.Warnings())
		}
		server := &fakedb.Server{}
		connector, err := driver.NewConnector(server, r, driver.Config{Server: "other"})
		if err != nil {
			t.Fatal(err)
		}
		db := sql.OpenDB(connector)
		defer db.Close()
		if err := flow(t.Context(), db); err != nil {
			t.Errorf("flow %d\nhave: %v\nsent: %q", i, err, server.Sent)
			continue
		}
		if i != 1 && (len(server.Sent) != 1 || !strings.HasPrefix(server.Sent[0].Query, "INSERT INTO "+byBits+" ")) || i == 1 && len(server.Sent) != 2 {
			t.Errorf("flow %d\nhave: %q", i, server.Sent)
		}
		if i == 2 {
			if place, err := keyFirstByBits(t.Context(), db, user); err != nil || place.Table != byBits {
				t.Errorf("key first\nhave: %v, %v\nwant: %s", place, err, byBits)
			}
		}
	}
}
