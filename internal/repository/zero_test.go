package repository

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"reflect"
	debugpkg "runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey"
	"github.com/shardkey/shardkey/debug"
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/rewrite"
	"github.com/shardkey/shardkey/internal/tidb"
	"github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// zeroValues are the zero values of all exported types with methods.
var zeroValues = []any{
	new(shardkey.Int64),
	new(driver.Connector), new(driver.DSNError), new(driver.Driver), new(driver.GeneratorError), new(driver.GeneratorStats),
	new(driver.Histogram), new(driver.Keys), new(driver.NotReadyError),
	new(driver.StatementError), new(driver.WrongShardError),
	new(snowflake.Layout),
	new(workerid.ForeignRecordError), new(workerid.Record),
	new(rewrite.Class), new(rewrite.Insert), new(rewrite.Keys), new(rewrite.Plan), new(rewrite.StatementError), new(tidb.DisagreementError),
	new(rule.Error), new(rule.Gene), new(rule.Live), new(rule.Place), new(rule.PlaceError), new(rule.Props), new(rule.Rule),
	new(rule.Shard), new(rule.Sharding), new(rule.Table), new(rule.UnlistedTableError),
	new(spi.Health), new(spi.PropError), new(spi.Props), new(spi.Secret), new(spi.WorkerID),
}

// needTheirOwn are methods whose arguments are indexes of the receiver, or belong to it.
var needTheirOwn = []string{"(*rewrite.Insert).Text", "(*rewrite.Keys).At", "(*rewrite.Plan).Given", "(*rewrite.Plan).Kept", "(*rewrite.Plan).Middle", "(*rewrite.Plan).Set"}

func TestZeroValues_methodsDoNotPanic(t *testing.T) {
	for _, zero := range zeroValues {
		typ := reflect.TypeOf(zero)
		for i := range typ.NumMethod() {
			name := fmt.Sprintf("(%s).%s", typ, typ.Method(i).Name)
			if slices.Contains(needTheirOwn, name) {
				continue
			}
			for _, filled := range []bool{false, true} {
				// Each method gets a new value.
				method := reflect.New(typ.Elem()).Method(i)
				if args, ok := argumentsOf(method.Type(), filled); ok {
					callSafely(t, name, method, args)
				}
			}
		}
		_ = fmt.Sprintf("%v %+v %#v %s", zero, zero, zero, zero)
	}
}

// A zero connector and a zero generator return errors instead of keys.
func TestZeroValues_areErrors(t *testing.T) {
	ctx := t.Context()
	c := new(driver.Connector)
	_, connectErr := c.Connect(ctx)
	_, planErr := c.Plan("INSERT INTO t (a) VALUES (1)")
	_, keysErr := c.NextKeys(ctx, "t", 1)
	for name, err := range map[string]error{
		"Connect": connectErr, "Plan": planErr, "NextKeys": keysErr, "Ready": c.Ready(ctx), "SetRule": c.SetRule(parse(t)), "Ping": sql.OpenDB(c).PingContext(ctx),
	} {
		if !errors.Is(err, driver.ErrNoRule) {
			t.Errorf("%s of a zero Connector\nhave: %v\nwant: %v", name, err, driver.ErrNoRule)
		}
	}
	if _, err := new(rule.Sharding).Place(nil); err == nil {
		t.Error("a zero Sharding has a place")
	}
}

func parse(t *testing.T) *rule.Rule {
	t.Helper()
	r, err := rule.New(rule.Config{Tables: []rule.TableConfig{{Name: "t", KeyConfig: rule.KeyConfig{Column: "id"}}}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// noBase is a driver.Connector that is a nil pointer.
type noBase struct{ name string }

func (c *noBase) Connect(context.Context) (sqldriver.Conn, error) { return nil, errors.New(c.name) }
func (c *noBase) Driver() sqldriver.Driver                        { _ = c.name; return nil }

// Nil arguments are errors, or the same as no arguments.
func TestNilArguments_doNotPanic(t *testing.T) {
	ctx := t.Context()
	r := parse(t)
	for name, call := range map[string]func() error{
		"ConnectorOf": func() error {
			return isNone(driver.ConnectorOf(nil), driver.ConnectorOf((*sql.DB)(nil)), driver.ConnectorOf(new(sql.DB)), driver.ConnectorOf((*sql.Conn)(nil)), driver.ConnectorOf((*driver.Connector)(nil)))
		},
		"DeregisterRule":       func() error { driver.DeregisterRule(""); return errNone },
		"NewConnector base":    func() error { _, err := driver.NewConnector(nil, r); return err },
		"NewConnector pointer": func() error { _, err := driver.NewConnector((*noBase)(nil), r); return err },
		"NewConnector rule":    func() error { _, err := driver.NewConnector(new(driver.Connector), nil); return err },
		"NewConnector no rule": func() error { _, err := driver.NewConnector(new(driver.Connector), new(rule.Rule)); return err },
		"NextKeys nil":         func() error { _, err := driver.NextKeys(ctx, nil, "t", 1); return err },
		"NextKeys *sql.DB":     func() error { _, err := driver.NextKeys(ctx, (*sql.DB)(nil), "t", 1); return err },
		"NextKeys zero DB":     func() error { _, err := driver.NextKeys(ctx, new(sql.DB), "t", 1); return err },
		"Open":                 func() error { _, _, err := driver.Open("", nil); return err },
		"Open options": func() error {
			_, _, err := driver.Open("u@tcp(h)/d", nil, driver.WithClock(nil), driver.WithLogger(nil), driver.WithFilled(nil))
			return err
		},
		"RegisterRule": func() error { return driver.RegisterRule("zero", nil) },
		"WatchRule":    func() error { return driver.WatchRule(ctx, "") },
		"Wrap":         func() error { _, err := driver.Wrap(nil, r).Open("x"); return err },
		"Wrap a rule":  func() error { _, err := driver.Wrap(driver.Driver{}, nil).Open("x"); return err },
		"rule.Load":    func() error { _, err := rule.Load(""); return err },
		"rule.New":     func() error { _, err := rule.New(rule.Config{}); return err },
		"rule.New props": func() error {
			_, err := rule.New(rule.Config{Generators: map[string]rule.GeneratorConfig{"": {Props: rule.Props{"": nil}}}})
			return err
		},
		"rule.Parse":       func() error { _, err := rule.Parse("", nil); return err },
		"rule.Open":        func() error { _, err := (*rule.Rule)(nil).Open(spi.Host{}); return err },
		"snowflake.Decode": func() error { _, err := snowflake.Decode(snowflake.Layout{}, time.Time{}, -1); return err },
		"snowflake.KeyRange": func() error {
			_, _, err := snowflake.KeyRange(snowflake.Layout{}, time.Time{}, time.Time{}, time.Time{})
			return err
		},
		"snowflake.ParseLayout": func() error { _, err := snowflake.ParseLayout("", 0); return err },
		"spi.NewProps":          func() error { _, err := spi.NewProps(map[string]any{"": nil}, spi.Host{}); return err },
		"spi.NewKeyGenerator":   func() error { _, err := spi.NewKeyGenerator("", spi.Props{}); return err },
		"zero Props":            func() error { _, err := spi.NewKeyGenerator("LEAF_SEGMENT", spi.Props{}); return err },
		"zero Props, assigner":  func() error { _, err := spi.NewWorkerIDAssigner("SQL", spi.Props{}); return err },
		"workerid.NewAssigner":  func() error { _, err := workerid.NewAssigner(spi.Props{}, nil); return err },
		"workerid.ParseRecord":  func() error { _, err := workerid.ParseRecord(-1, ""); return err },
		"debug.Handler":         func() error { return serve(debug.Handler(nil, new(driver.Connector))) },
		"debug.Handler of none": func() error { return serve(debug.Handler()) },
	} {
		if err := guarded(call); err == nil || strings.Contains(err.Error(), "test panicked") {
			t.Errorf("%s\nhave: %v\nwant: an error, and no panic", name, err)
		}
	}
	if got := driver.WithKeys(ctx, nil); got != ctx {
		t.Error("WithKeys of nil keys\nhave: another context\nwant: the same")
	}
}

var errNone = errors.New("there is no error")

func isNone(found ...*driver.Connector) error {
	for _, c := range found {
		if c != nil {
			return nil
		}
	}
	return errNone
}

func serve(h http.Handler) error {
	for _, query := range []string{"", "?format=json", "?connector=1&key=7", "?connector=9&key=x", "?connector=1&statement=INSERT+INTO+t+(a)+VALUES+(1)"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/"+query, nil))
	}
	return errNone
}

func guarded(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("test panicked: %v\n%s", p, debugpkg.Stack())
		}
	}()
	return call()
}

func callSafely(t *testing.T, name string, method reflect.Value, args []reflect.Value) {
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s%v\nhave: panic: %v\nwant: an error, or an empty result", name, args, p)
		}
	}()
	call := method.Call
	if method.Type().IsVariadic() {
		call = method.CallSlice
	}
	for _, result := range call(args) {
		switch result := result.Interface().(type) {
		case iter.Seq[rule.Place]:
			for range result {
			}
		case iter.Seq[rewrite.Splice]:
			for range result {
			}
		}
	}
}

// argumentsOf returns arguments for a method: zero values, or small ones if filled is set. ok is
// false for fmt.State, which only package fmt can create.
func argumentsOf(method reflect.Type, filled bool) (args []reflect.Value, ok bool) {
	for i := range method.NumIn() {
		typ := method.In(i)
		arg := reflect.Zero(typ)
		switch {
		case typ == reflect.TypeFor[context.Context]():
			arg = reflect.ValueOf(context.Background())
		case typ == reflect.TypeFor[fmt.State]():
			return nil, false
		case typ == reflect.TypeFor[time.Time]():
			arg = reflect.ValueOf(time.Unix(1700000000, 0))
		case filled && typ.Kind() == reflect.Slice:
			arg = reflect.MakeSlice(typ, 1, 1)
		case filled && typ.Kind() == reflect.Pointer:
			arg = reflect.New(typ.Elem())
		case filled && typ.Kind() == reflect.String:
			arg = reflect.ValueOf("INSERT INTO t (a) VALUES (?)").Convert(typ)
		case filled && arg.CanInt():
			arg = reflect.ValueOf(1).Convert(typ)
		}
		args = append(args, arg)
	}
	return args, true
}
