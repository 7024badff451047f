package repository

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/tidb"
	"github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// zeroValues are the zero values of all exported types with methods.
var zeroValues = []any{
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
