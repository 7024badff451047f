package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

func mustConnector(t *testing.T, base driver.Connector, r *rule.Rule) *Connector {
	t.Helper()
	c, err := NewConnector(base, r)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// liveOf asserts how many generators of a tag are open.
func liveOf(t *testing.T, when string, tag int, want int64) {
	t.Helper()
	if have := testGenerators[tag].Load(); have != want {
		t.Errorf("%s: generators\nhave: %d\nwant: %d", when, have, want)
	}
}

func TestConnector_closeClosesGenerators(t *testing.T) {
	base := &fakeBase{kind: "direct"}
	c := mustConnector(t, base, taggedRule(t, "t", 1))
	db := sql.OpenDB(c)
	if _, err := db.Exec("UPDATE t"); err != nil {
		t.Fatal(err)
	}
	liveOf(t, "open", 1, 1)
	for range 2 {
		if err := errors.Join(db.Close(), c.Close()); err != nil {
			t.Error(err)
		}
		liveOf(t, "closed", 1, 0)
	}
	if base.closed != 1 {
		t.Errorf("the base's connector was closed %d times", base.closed)
	}
	if err := c.SetRule(testRule(t)); !errors.Is(err, spi.ErrClosed) {
		t.Errorf("SetRule after Close: %v", err)
	}
}

// A transaction that runs while its database is closed may still need keys.
func TestConnector_lastConnectionClosesGenerators(t *testing.T) {
	c := mustConnector(t, &fakeBase{kind: "direct"}, taggedRule(t, "t", 2))
	db := sql.OpenDB(c)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	liveOf(t, "in a transaction", 2, 1)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	liveOf(t, "after it", 2, 0)
}

func TestConnector_twoDatabases(t *testing.T) {
	c := mustConnector(t, &fakeBase{kind: "direct"}, taggedRule(t, "t", 3))
	first, second := sql.OpenDB(c), sql.OpenDB(c)
	second.SetMaxIdleConns(1)
	mustExec(t, first, "UPDATE t")
	mustExec(t, second, "UPDATE t")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	liveOf(t, "the second one is open", 3, 1)
	second.SetMaxIdleConns(-1) // its pool empties
	liveOf(t, "no connection is open", 3, 0)
	tx, err := second.Begin()
	if err != nil {
		t.Fatal(err)
	}
	liveOf(t, "the second one goes on", 3, 1)
	if err := errors.Join(tx.Rollback(), second.Close()); err != nil {
		t.Fatal(err)
	}
	liveOf(t, "both are closed", 3, 0)
}

func mustExec(t *testing.T, db *sql.DB, query string, args ...any) sql.Result {
	t.Helper()
	res, err := db.Exec(query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return res
}

func TestConnector_setRule(t *testing.T) {
	c := mustConnector(t, &fakeBase{kind: "direct"}, taggedRule(t, "t", 4))
	db := sql.OpenDB(c)
	running := c.rules.Load()
	if !running.generators.Acquire() {
		t.Fatal("the current rule cannot be used")
	}
	next := taggedRule(t, "t", 5)
	if err := c.SetRule(next); err != nil {
		t.Fatal(err)
	}
	if c.Rule() != next {
		t.Error("Rule returns another one")
	}
	liveOf(t, "the old one while it is used", 4, 1)
	liveOf(t, "the new one", 5, 1)
	if err := running.generators.Release(); err != nil {
		t.Fatal(err)
	}
	liveOf(t, "the old one, left", 4, 0)
	if running.generators.Acquire() {
		t.Error("a closed rule can be used")
	}
	if err := c.SetRule(nil); !errors.Is(err, ErrNoRule) {
		t.Errorf("SetRule(nil): %v", err)
	}
	if c.Rule() != next {
		t.Error("a refused rule was taken")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	liveOf(t, "all closed", 5, 0)
}

// A statement that passes under both rules stays the base's one statement.
func TestStmt_preparedBeforeSetRule(t *testing.T) {
	base := &fakeBase{kind: "direct"}
	c := mustConnector(t, base, testRule(t))
	db := sql.OpenDB(c)
	defer db.Close()
	st, err := db.Prepare("UPDATE t SET a = ?")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for range 3 {
		if _, err := st.Exec(1); err != nil {
			t.Fatal(err)
		}
		if err := c.SetRule(testRule(t)); err != nil {
			t.Fatal(err)
		}
	}
	if calls := strings.Join(base.calls, "\n"); strings.Count(calls, "prepareContext") != 1 {
		t.Errorf("the base saw\n%s", calls)
	}
}

func TestConnector_healthAndDescribe(t *testing.T) {
	c := mustConnector(t, &fakeBase{}, testRule(t))
	defer c.Close()
	if _, ok := healthOf(c)["test"]; !ok {
		t.Errorf("Health: %v", healthOf(c))
	}
	if text := c.Describe(); !strings.Contains(text, "nobodys_table") {
		t.Errorf("Describe: %s", text)
	}
}

func TestConnector_lookupFollowsTheRule(t *testing.T) {
	c := mustConnector(t, &fakeBase{}, taggedRule(t, "t", 6))
	defer c.Close()
	if table := c.Lookup("", "T"); table == nil || table.Column != "id" {
		t.Errorf("t: %+v", table)
	}
	if table := c.Lookup("", "u"); table != nil {
		t.Errorf("u, which has no rule: %+v", table)
	}
	if err := c.SetRule(taggedRule(t, "u", 6)); err != nil {
		t.Fatal(err)
	}
	if c.Lookup("", "t") != nil || c.Lookup("any", "u") == nil {
		t.Error("Lookup goes by the rule that was replaced")
	}
}

func TestConnector_connectFails(t *testing.T) {
	c := mustConnector(t, refusing{}, taggedRule(t, "t", 6))
	db := sql.OpenDB(c)
	if err := db.Ping(); err != errFake {
		t.Errorf("have: %v\nwant: the base's own error", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	liveOf(t, "closed", 6, 0)
}

type refusing struct{}

func (refusing) Connect(context.Context) (driver.Conn, error) { return nil, errFake }
func (refusing) Driver() driver.Driver                        { return nil }

func TestNewConnector_refuses(t *testing.T) {
	if c, err := NewConnector(nil, testRule(t)); c != nil || err == nil {
		t.Errorf("nil base: %v, %v", c, err)
	}
	if c, err := NewConnector(&fakeBase{}, nil); c != nil || !errors.Is(err, ErrNoRule) {
		t.Errorf("nil rule: %v, %v", c, err)
	}
	if c, err := NewConnector(&fakeBase{}, new(rule.Rule)); c != nil || err == nil {
		t.Errorf("zero rule: %v, %v", c, err)
	}
}

// Connections of another database open the generators again, and the last one closes them,
// however they follow each other.
func TestConnector_openedAgainAtOnce(t *testing.T) {
	c := mustConnector(t, &fakeBase{kind: "direct"}, taggedRule(t, "t", 6))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				if err := c.enter(); err != nil {
					t.Error(err)
				}
				if err := c.leave(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	liveOf(t, "all closed", 6, 0)
}
