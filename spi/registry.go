package spi

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/shardkey/shardkey/internal/guard"
)

var (
	keyGenerators     = registry[func(Props) (KeyGenerator, error)]{kind: "key generator"}
	workerIDAssigners = registry[func(Props) (WorkerIDAssigner, error)]{kind: "worker-ID assigner"}
)

// RegisterKeyGenerator makes a generator type known to sharding rules. Types
// are case-insensitive. The factory checks the properties and does no input or
// output. RegisterKeyGenerator panics when the type is empty or already registered,
// or the factory is nil, as sql.Register does.
func RegisterKeyGenerator(typ string, factory func(Props) (KeyGenerator, error)) {
	keyGenerators.register(typ, factory, factory == nil)
}

// RegisterWorkerIDAssigner makes an assigner type known to sharding rules, as
// [RegisterKeyGenerator] does for generators.
func RegisterWorkerIDAssigner(typ string, factory func(Props) (WorkerIDAssigner, error)) {
	workerIDAssigners.register(typ, factory, factory == nil)
}

// NewKeyGenerator makes a generator of a registered type. The error is a [*PropError] for
// a property that is bad or that the type does not know.
func NewKeyGenerator(typ string, props Props) (KeyGenerator, error) {
	return construct(&keyGenerators, typ, props)
}

// NewWorkerIDAssigner makes an assigner of a registered type, with the errors
// of [NewKeyGenerator].
func NewWorkerIDAssigner(typ string, props Props) (WorkerIDAssigner, error) {
	return construct(&workerIDAssigners, typ, props)
}

// KeyGeneratorTypes lists the registered types, in upper case, sorted.
func KeyGeneratorTypes() []string { return keyGenerators.types() }

// WorkerIDAssignerTypes lists the registered types, in upper case, sorted.
func WorkerIDAssignerTypes() []string { return workerIDAssigners.types() }

type registry[F any] struct {
	kind      string
	mu        sync.RWMutex
	factories map[string]F
}

func (r *registry[F]) register(typ string, factory F, isNil bool) {
	typ = strings.ToUpper(typ)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch _, dup := r.factories[typ]; {
	case typ == "":
		panic("shardkey: register " + r.kind + ": type is empty")
	case isNil:
		panic("shardkey: register " + r.kind + " " + typ + ": factory is nil")
	case dup:
		panic("shardkey: register called twice for " + r.kind + " " + typ)
	}
	if r.factories == nil {
		r.factories = map[string]F{}
	}
	r.factories[typ] = factory
}

func (r *registry[F]) types() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.factories))
}

func (r *registry[F]) lookup(typ string) (F, error) {
	r.mu.RLock()
	factory, ok := r.factories[strings.ToUpper(typ)]
	r.mu.RUnlock()
	if !ok {
		return factory, fmt.Errorf("shardkey: unknown %s type %q; registered: %s", r.kind, clip(typ), strings.Join(r.types(), ", "))
	}
	return factory, nil
}

// construct makes a T of a registered type and then refuses properties that the
// factory did not ask for.
func construct[T any](r *registry[func(Props) (T, error)], typ string, props Props) (T, error) {
	var zero T
	factory, err := r.lookup(typ)
	if err != nil {
		return zero, err
	}
	made, err := call(factory, props)
	err = props.redacted(err)
	switch {
	case err != nil:
	case isNil(made):
		err = errors.New("its factory returned nil")
	default:
		if err = props.unknown(); err == nil {
			return made, nil
		}
		if c, ok := any(made).(io.Closer); ok {
			_ = guard.Call("its Close", c.Close)
		}
	}
	return zero, &factoryError{r.kind, strings.ToUpper(typ), err}
}

// call calls a factory, whose panic is an error.
func call[T any](factory func(Props) (T, error), props Props) (made T, err error) {
	defer guard.Recover(&err, "its factory")
	return factory(props)
}

// isNil reports whether v is nil, or a nil pointer or function in an interface.
func isNil(v any) bool {
	rv := reflect.ValueOf(v)
	return v == nil || (rv.Kind() == reflect.Pointer || rv.Kind() == reflect.Func) && rv.IsNil()
}
