package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// A program's own code that panics, or returns nil: an error of the statement,
// and nobody who waits is forgotten.

// panicky is a worker-id assigner, and its lease, that panics in one method.
type panicky struct{ at string }

func (p *panicky) in(method string) {
	if p.at == method {
		panic(errScript)
	}
}

func (p *panicky) AcquireWorkerID(context.Context, int64) (spi.WorkerIDLease, error) {
	switch p.at {
	case "nil":
		return nil, nil
	case "nil pointer":
		return (*panicky)(nil), nil
	}
	p.in("AcquireWorkerID")
	return p, nil
}

func (p *panicky) WorkerID() int64 { p.in("WorkerID"); return 1 }
func (p *panicky) Floor() int64    { p.in("Floor"); return 0 }

func (p *panicky) Limit() int64 {
	p.in("Limit")
	if p.at == "STATIC" {
		return math.MaxInt64
	}
	return 1
}

func (p *panicky) Renew(context.Context, int64) error   { p.in("Renew"); return errScript }
func (p *panicky) Release(context.Context, int64) error { p.in("Release"); return nil }
func (p *panicky) Close() error                         { p.in("Close"); return nil }
func (p *panicky) Health() spi.Health                   { p.in("Health"); return spi.Health{} }
func (p *panicky) Describe() string                     { p.in("Describe"); return "PANICKY" }

func init() {
	spi.RegisterWorkerIDAssigner("PANICKY", func(p spi.Props) (spi.WorkerIDAssigner, error) {
		return &panicky{p.String("at", "")}, nil
	})
	spi.RegisterKeyGenerator("PANICKY", func(p spi.Props) (spi.KeyGenerator, error) {
		g := &panicky{p.String("at", "")}
		g.in("factory")
		return panickyGenerator{g}, nil
	})
}

type panickyGenerator struct{ *panicky }

func (g panickyGenerator) GenerateKeys(_ context.Context, _ spi.Column, n int) ([]any, error) {
	g.in("GenerateKeys")
	return make([]any, n), errScript
}

// panicRule rules ruled.id by a generator of a type with properties.
func panicRule(typ, props, assigner string) (*rule.Rule, error) {
	return rule.Parse("panic.yaml", fmt.Appendf(nil, `
rules:
- !SHARDING
  keyGenerators: {g: {type: %s, props: {%s}}}
  workerIdAssigners: {a: {type: PANICKY, props: {at: '%s'}}}
  tables: {ruled: {keyGenerateStrategy: {column: id, keyGeneratorName: g}}}
`, typ, props, assigner))
}

// insertTogether runs INSERTs of several callers and returns their errors. None
// of them may wait for ever.
func insertTogether(t *testing.T, db *sql.DB) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wait sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wait.Go(func() { _, errs[i] = db.ExecContext(ctx, "INSERT INTO ruled (a) VALUES (1)") })
	}
	wait.Wait()
	if ctx.Err() != nil {
		t.Error("somebody waited until the context ended")
	}
	return errors.Join(errs...)
}

func TestPanic_ofAnAssigner(t *testing.T) {
	for _, typ := range []string{"SNOWFLAKE", "SNOWFLAKE_RING"} {
		for _, at := range []string{"AcquireWorkerID", "nil", "nil pointer", "WorkerID", "Floor", "Limit", "Renew"} {
			t.Run(typ+"/"+at, func(t *testing.T) {
				r, err := panicRule(typ, "worker-id-assigner: a", at)
				if err != nil {
					t.Fatal(err)
				}
				base := &lyingBase{}
				db := sql.OpenDB(mustConnector(t, base, r))
				err = insertTogether(t, db)
				var generator *GeneratorError
				if !errors.As(err, &generator) {
					t.Errorf("\nhave: %v\nwant: a GeneratorError", err)
				}
				if err := insertTogether(t, db); err == nil {
					t.Error("the second time it succeeded")
				}
				check(t, db.Close())
			})
		}
	}
}

func TestPanic_ofReleaseCloseHealthDescribe(t *testing.T) {
	for _, at := range []string{"Release", "Close", "Health", "Describe"} {
		r, err := panicRule("SNOWFLAKE", "worker-id-assigner: a", at)
		if at == "Close" {
			// A rule is opened and closed when it is made.
			if !errors.Is(err, errScript) || !strings.Contains(err.Error(), "panicked") {
				t.Errorf("Close\nhave: %v\nwant: an error of the rule", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		c := mustConnector(t, &lyingBase{}, r)
		db := sql.OpenDB(c)
		_ = insertTogether(t, db)
		health, description := healthOf(c), c.Describe()
		if at == "Health" && !errors.Is(health["workerIdAssigners.a"].Err, errScript) {
			t.Errorf("\nhave: %v\nwant: the panic as the assigner's health", health)
		}
		if at == "Describe" && !strings.Contains(description, "panicked") {
			t.Errorf("\nhave: %s\nwant: the panic as the assigner's description", description)
		}
		if err := db.Close(); (err != nil) != (at == "Release") {
			t.Errorf("%s panics: Close returns %v", at, err)
		}
	}
}

func TestPanic_ofAFactoryOrGenerator(t *testing.T) {
	if r, err := panicRule("PANICKY", "at: factory", ""); !errors.Is(err, errScript) {
		t.Errorf("factory\nhave: %v, %v\nwant: the panic", r, err)
	}
	if r, err := panicRule("PANICKY", "at: Close", ""); !errors.Is(err, errScript) {
		t.Errorf("Close\nhave: %v, %v\nwant: the panic", r, err)
	}
	if r, err := panicRule("PANICKY", "at: Close, unknown: 1", ""); err == nil || !strings.Contains(err.Error(), `"unknown"`) {
		t.Errorf("Close of one whose properties are wrong\nhave: %v, %v\nwant: the unknown property", r, err)
	}
	r := must(panicRule("PANICKY", "at: GenerateKeys", ""))(t)
	db := sql.OpenDB(mustConnector(t, &lyingBase{}, r))
	defer db.Close()
	if err := insertTogether(t, db); !errors.Is(err, errScript) {
		t.Errorf("\nhave: %v\nwant: the panic", err)
	}
}

// panickyClock panics from some call on: from the first, or once a generator works.
type panickyClock struct {
	mu    sync.Mutex
	calls int
	after int
	sleep bool
}

func (c *panickyClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls++; c.calls > c.after && !c.sleep {
		panic(errScript)
	}
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
}

func (c *panickyClock) Sleep(context.Context, time.Duration) error { panic(errScript) }

func TestPanic_ofAClock(t *testing.T) {
	for _, of := range []struct{ typ, props string }{
		{"SNOWFLAKE", "worker-id: 1"},
		{"SNOWFLAKE", "worker-id: 1, layout: '62-1-0'"}, // one key a tick: the next one sleeps
		{"SNOWFLAKE_RING", "worker-id: 1"},
		{"UUID", "version: 7"},
		{"NANOID", ""},
		{"LEAF_SEGMENT", "leaf.key: x, dsn: 'u@tcp(127.0.0.1:1)/x'"},
		{"TICKET", "dsns: 'u@tcp(127.0.0.1:1)/x'"},
	} {
		for _, after := range []int{0, 1, 2, 3, 5, 9} {
			for _, sleep := range []bool{false, true} {
				r := must(panicRule(of.typ, of.props, ""))(t)
				c, err := NewConnector(&lyingBase{}, r, WithClock(&panickyClock{after: after, sleep: sleep}))
				if err != nil {
					t.Fatal(err)
				}
				db := sql.OpenDB(c)
				err = insertTogether(t, db)
				if err == nil && after == 0 && !sleep && of.typ != "NANOID" {
					t.Errorf("%s: keys by a clock that says nothing", of.typ)
				}
				if err == nil && sleep && strings.Contains(of.props, "layout") {
					t.Errorf("%s: no error of a clock that does not sleep", of.typ)
				}
				_, _ = healthOf(c), c.Describe()
				if err := db.Close(); err != nil {
					t.Errorf("%s: Close: %v", of.typ, err)
				}
			}
		}
	}
}

type panickyHandler struct{}

func (panickyHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (panickyHandler) Handle(context.Context, slog.Record) error { panic(errScript) }
func (h panickyHandler) WithAttrs([]slog.Attr) slog.Handler      { panic(errScript) }
func (h panickyHandler) WithGroup(string) slog.Handler           { panic(errScript) }

// A line that cannot be logged is lost, and nothing else: not the key that the
// warning of SNOWFLAKE without worker id comes with.
func TestPanic_ofALogger(t *testing.T) {
	r := must(panicRule("SNOWFLAKE", "", ""))(t)
	c := must(NewConnector(&lyingBase{}, r, WithLogger(slog.New(panickyHandler{}))))(t)
	db := sql.OpenDB(c)
	defer db.Close()
	check(t, insertTogether(t, db))
}
