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
	c := must(NewConnector(base, r))(t)
	return c
}

// liveOf asserts how many generators of a tag are open.
func liveOf(t *testing.T, when string, tag int, want int64) {
	t.Helper()
	equal(t, testGenerators[tag].Load(), want, when, "generators")
}

func TestConnector_closeClosesGenerators(t *testing.T) {
	base := &fakeBase{kind: "direct"}
	c := mustConnector(t, base, taggedRule(t, "t", 1))
	db := sql.OpenDB(c)
	mustExec(t, db, "UPDATE t")
	liveOf(t, "open", 1, 1)
	for range 2 {
		check(t, errors.Join(db.Close(), c.Close()))
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
	tx := must(db.Begin())(t)
	noError(t, db.Close())
	liveOf(t, "in a transaction", 2, 1)
	noError(t, tx.Commit())
	liveOf(t, "after it", 2, 0)
}

func TestConnector_twoDatabases(t *testing.T) {
	c := mustConnector(t, &fakeBase{kind: "direct"}, taggedRule(t, "t", 3))
	first, second := sql.OpenDB(c), sql.OpenDB(c)
	second.SetMaxIdleConns(1)
	mustExec(t, first, "UPDATE t")
	mustExec(t, second, "UPDATE t")
	noError(t, first.Close())
	liveOf(t, "the second one is open", 3, 1)
	second.SetMaxIdleConns(-1) // its pool empties
	liveOf(t, "no connection is open", 3, 0)
	tx := must(second.Begin())(t)
	liveOf(t, "the second one goes on", 3, 1)
	noError(t, errors.Join(tx.Rollback(), second.Close()))
	liveOf(t, "both are closed", 3, 0)
}

func TestConnector_setRule(t *testing.T) {
	c := mustConnector(t, &fakeBase{kind: "direct"}, taggedRule(t, "t", 4))
	db := sql.OpenDB(c)
	running := c.rules.Load()
	if !running.generators.Acquire() {
		t.Fatal("the current rule cannot be used")
	}
	next := taggedRule(t, "t", 5)
	noError(t, c.SetRule(next))
	if c.Rule() != next {
		t.Error("Rule returns another one")
	}
	liveOf(t, "the old one while it is used", 4, 1)
	liveOf(t, "the new one", 5, 1)
	noError(t, running.generators.Release())
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
	noError(t, db.Close())
	liveOf(t, "all closed", 5, 0)
}

// A statement that passes under both rules stays the base's one statement.
func TestStmt_preparedBeforeSetRule(t *testing.T) {
	base := &fakeBase{kind: "direct"}
	c := mustConnector(t, base, testRule(t))
	db := sql.OpenDB(c)
	defer db.Close()
	st := must(db.Prepare("UPDATE t SET a = ?"))(t)
	defer st.Close()
	for range 3 {
		must(st.Exec(1))(t)
		noError(t, c.SetRule(testRule(t)))
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
	equal(t, c.Lookup("", "u"), nil, "u, which has no rule", "v")
	noError(t, c.SetRule(taggedRule(t, "u", 6)))
	if c.Lookup("", "t") != nil || c.Lookup("any", "u") == nil {
		t.Error("Lookup goes by the rule that was replaced")
	}
}

func TestConnector_connectFails(t *testing.T) {
	c := mustConnector(t, refusing{}, taggedRule(t, "t", 6))
	db := sql.OpenDB(c)
	equal(t, db.Ping(), errFake)
	check(t, db.Close())
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
	noError(t, c.Close())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				check(t, c.enter())
				check(t, c.leave())
			}
		})
	}
	wg.Wait()
	liveOf(t, "all closed", 6, 0)
}
