package spi

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/shardkey/shardkey/internal/panics"
	"github.com/shardkey/shardkey/internal/registry"
)

// RegisterKeyGenerator registers the factory of a generator type for sharding rules. Types are
// case-insensitive. The factory checks the properties and does no I/O. RegisterKeyGenerator panics
// if the type is empty or already registered, or if the factory is nil.
func RegisterKeyGenerator(typ string, factory func(Props) (KeyGenerator, error)) {
	register(registry.KeyGenerators, typ, factory)
}

// RegisterWorkerIDAssigner registers the factory of an assigner type, as [RegisterKeyGenerator]
// does for generators.
func RegisterWorkerIDAssigner(typ string, factory func(Props) (WorkerIDAssigner, error)) {
	register(registry.WorkerIDAssigners, typ, factory)
}

// NewKeyGenerator returns a new generator of a registered type. The error for an invalid or unknown
// property wraps a [*PropError].
func NewKeyGenerator(typ string, props Props) (KeyGenerator, error) {
	return construct[KeyGenerator](registry.KeyGenerators, typ, props)
}

// NewWorkerIDAssigner returns a new assigner of a registered type. Its errors are like those of
// [NewKeyGenerator].
func NewWorkerIDAssigner(typ string, props Props) (WorkerIDAssigner, error) {
	return construct[WorkerIDAssigner](registry.WorkerIDAssigners, typ, props)
}

func register[T any](kind registry.Kind, typ string, factory func(Props) (T, error)) {
	if factory == nil {
		panic("shardkey: register " + kind + " " + typ + ": factory is nil")
	}
	registry.Add(kind, typ, factory)
}

// construct calls the factory of a registered type, and then refuses properties that it didn't ask
// for.
func construct[T any](kind registry.Kind, typ string, props Props) (none T, err error) {
	factory, ok := registry.Find(kind, typ).(func(Props) (T, error))
	if !ok {
		types := strings.Join(registry.Types(kind), ", ")
		return none, fmt.Errorf("shardkey: unknown %s type %q; registered: %s", kind, clip(typ), types)
	}
	var made T
	err = props.redacted(panics.Call("the factory", func() (err error) {
		made, err = factory(props)
		return err
	}))
	switch {
	case err != nil:
	case isNil(made):
		err = errors.New("the factory returned nil")
	default:
		if err = props.unknown(); err == nil {
			return made, nil
		}
		if c, ok := any(made).(io.Closer); ok {
			_ = panics.Call("its Close", c.Close)
		}
	}
	return none, &factoryError{kind, strings.ToUpper(typ), err}
}

// isNil reports whether v is nil, or an interface with a nil pointer or function.
func isNil(v any) bool {
	rv := reflect.ValueOf(v)
	return v == nil || (rv.Kind() == reflect.Pointer || rv.Kind() == reflect.Func) && rv.IsNil()
}
