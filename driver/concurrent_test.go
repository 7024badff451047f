package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// strict is a generator that notices when it is used after Close, or closed twice.
type strict struct{ closed atomic.Bool }

// strictFaults counts such uses, and strictLive the generators that are open.
var strictFaults, strictLive atomic.Int64

func init() {
	spi.RegisterKeyGenerator("STRICT", func(spi.Props) (spi.KeyGenerator, error) {
		strictLive.Add(1)
		return new(strict), nil
	})
}

func (g *strict) GenerateKeys(_ context.Context, _ spi.Column, n int) ([]any, error) {
	keys := make([]any, n)
	for i := range keys {
		keys[i] = int64(1 + i)
	}
	runtime.Gosched() // so that it may be closed too early
	if g.closed.Load() {
		strictFaults.Add(1)
	}
	return keys, nil
}

func (g *strict) Close() error {
	if g.closed.Swap(true) {
		strictFaults.Add(1)
	}
	strictLive.Add(-1)
	return nil
}

func strictRule(t *testing.T, tables ...string) *rule.Rule {
	t.Helper()
	var b strings.Builder
	b.WriteString("rules:\n- !SHARDING\n  keyGenerators: {strict: {type: STRICT}}\n  tables:\n")
	for _, table := range tables {
		fmt.Fprintf(&b, "    %s: {keyGenerateStrategy: {column: id, keyGeneratorName: strict}}\n", table)
	}
	r := must(rule.Parse("strict.yaml", []byte(b.String())))(t)
	return r
}

// TestConnector_ruleReplacedWhileInUse: 64 goroutines insert, directly and
// prepared, on connections that come and go, while the rule is replaced. No
// generator is used after it was closed, and none is left open.
func TestConnector_ruleReplacedWhileInUse(t *testing.T) {
	rules := []*rule.Rule{strictRule(t, "a", "b"), strictRule(t, "a"), strictRule(t, "b", "c")}
	c := must(NewConnector(idleConnector{}, rules[0], Config{Server: "other"}))(t)
	db := sql.OpenDB(c)
	db.SetMaxIdleConns(8)
	const query = "INSERT INTO a (x) VALUES (?), (?)"
	st := must(db.Prepare(query))(t)
	var users sync.WaitGroup
	for range 64 {
		users.Go(func() {
			for range 50 {
				_, err1 := db.Exec(query, 1, 2)
				_, err2 := st.Exec(1, 2)
				_, err3 := db.Exec("INSERT INTO b (x) VALUES (1)")
				if err := errors.Join(err1, err2, err3); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { users.Wait(); close(ended) }()
	for i := 0; ; i++ {
		check(t, c.SetRule(rules[i%len(rules)]))
		select {
		case <-ended:
			check(t, errors.Join(st.Close(), db.Close()))
			if faults, live := strictFaults.Load(), strictLive.Load(); faults != 0 || live != 0 {
				t.Errorf("after %d rules\nhave: %d uses of closed generators, %d open\nwant: none", i+1, faults, live)
			}
			return
		default:
		}
	}
}

// TestPlan_ruleReplacedBeforeUse: a plan whose rule was replaced in the meantime
// does nothing, and says so to its caller.
func TestPlan_ruleReplacedBeforeUse(t *testing.T) {
	base := &fakeBase{kind: "direct"}
	connector := must(NewConnector(base, strictRule(t, "a"), Config{Server: "other"}))(t)
	defer connector.Close()
	opened := must(connector.Connect(t.Context()))(t)
	defer opened.Close()
	c := opened.(*conn)
	const query = "INSERT INTO a (x) VALUES (1)"
	p, err := c.planFor(t.Context(), query)
	if err != nil || p == nil {
		t.Fatalf("no plan: %v", err)
	}
	noError(t, connector.SetRule(strictRule(t, "b")))
	before := len(base.calls)
	if _, err := p.execute(t.Context(), &c.session, nil, nil, nil, 0); err != errReplan {
		t.Errorf("have: %v\nwant: errReplan", err)
	}
	if len(base.calls) != before {
		t.Errorf("the base saw %s", lines(base.calls[before:]))
	}
}

// A connection that is used after its Close gets an error, not keys.
func TestConn_usedAfterClose(t *testing.T) {
	connector := must(NewConnector(idleConnector{}, strictRule(t, "a"), Config{Server: "other"}))(t)
	c := must(connector.Connect(t.Context()))(t)
	const query = "INSERT INTO a (x) VALUES (1)"
	st := must(c.Prepare(query))(t)
	noError(t, errors.Join(c.Close(), connector.Close()))
	if _, err := c.(driver.ExecerContext).ExecContext(t.Context(), query, nil); !errors.Is(err, spi.ErrClosed) {
		t.Errorf("have: %v\nwant: ErrClosed", err)
	}
	if _, err := st.(driver.StmtExecContext).ExecContext(t.Context(), nil); !errors.Is(err, spi.ErrClosed) {
		t.Errorf("prepared\nhave: %v\nwant: ErrClosed", err)
	}
}
