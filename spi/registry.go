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

// RegisterKeyGenerator registers the factory of a generator type for sharding rules. Types are
// case-insensitive. The factory checks the properties and does no I/O. RegisterKeyGenerator panics
// if the type is empty or already registered, or if the factory is nil.
func RegisterKeyGenerator(typ string, factory func(Props) (KeyGenerator, error)) {
	keyGenerators.register(typ, factory, factory == nil)
}

// RegisterWorkerIDAssigner registers the factory of an assigner type, as [RegisterKeyGenerator]
// does for generators.
func RegisterWorkerIDAssigner(typ string, factory func(Props) (WorkerIDAssigner, error)) {
	workerIDAssigners.register(typ, factory, factory == nil)
}

// NewKeyGenerator returns a new generator of a registered type. The error for an invalid or unknown
// property wraps a [*PropError].
func NewKeyGenerator(typ string, props Props) (KeyGenerator, error) {
	return construct(&keyGenerators, typ, props)
}

// NewWorkerIDAssigner returns a new assigner of a registered type. Its errors are like those of
// [NewKeyGenerator].
func NewWorkerIDAssigner(typ string, props Props) (WorkerIDAssigner, error) {
	return construct(&workerIDAssigners, typ, props)
}

// KeyGeneratorTypes returns the registered types, in upper case and sorted.
func KeyGeneratorTypes() []string { return keyGenerators.types() }

// WorkerIDAssignerTypes returns the registered types, in upper case and sorted.
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

// construct calls the factory of a registered type, and then refuses properties that it didn't ask
// for.
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
		err = errors.New("the factory returned nil")
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

// call calls a factory. A panic of the factory becomes an error.
func call[T any](factory func(Props) (T, error), props Props) (made T, err error) {
	defer guard.Recover(&err, "the factory")
	return factory(props)
}

// isNil reports whether v is nil, or an interface with a nil pointer or function.
func isNil(v any) bool {
	rv := reflect.ValueOf(v)
	return v == nil || (rv.Kind() == reflect.Pointer || rv.Kind() == reflect.Func) && rv.IsNil()
}
