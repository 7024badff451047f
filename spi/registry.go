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
	keyGenerators     = registry[KeyGenerator]{kind: "key generator"}
	workerIDAssigners = registry[WorkerIDAssigner]{kind: "worker-ID assigner"}
)

// RegisterKeyGenerator registers the factory of a generator type for sharding rules. Types are
// case-insensitive. The factory checks the properties and does no I/O. RegisterKeyGenerator panics
// if the type is empty or already registered, or if the factory is nil.
func RegisterKeyGenerator(typ string, factory func(Props) (KeyGenerator, error)) {
	keyGenerators.register(typ, factory)
}

// RegisterWorkerIDAssigner registers the factory of an assigner type, as [RegisterKeyGenerator]
// does for generators.
func RegisterWorkerIDAssigner(typ string, factory func(Props) (WorkerIDAssigner, error)) {
	workerIDAssigners.register(typ, factory)
}

// NewKeyGenerator returns a new generator of a registered type. The error for an invalid or unknown
// property wraps a [*PropError].
func NewKeyGenerator(typ string, props Props) (KeyGenerator, error) {
	return keyGenerators.construct(typ, props)
}

// NewWorkerIDAssigner returns a new assigner of a registered type. Its errors are like those of
// [NewKeyGenerator].
func NewWorkerIDAssigner(typ string, props Props) (WorkerIDAssigner, error) {
	return workerIDAssigners.construct(typ, props)
}

// KeyGeneratorTypes returns the registered types, in upper case and sorted.
func KeyGeneratorTypes() []string { return keyGenerators.types() }

// WorkerIDAssignerTypes returns the registered types, in upper case and sorted.
func WorkerIDAssignerTypes() []string { return workerIDAssigners.types() }

// registry has the factories of all types of key generators, or of worker-ID assigners.
type registry[T any] struct {
	kind      string
	mu        sync.RWMutex
	factories map[string]func(Props) (T, error)
}

func (r *registry[T]) register(typ string, factory func(Props) (T, error)) {
	typ = strings.ToUpper(typ)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case typ == "":
		panic("shardkey: register " + r.kind + ": type is empty")
	case factory == nil:
		panic("shardkey: register " + r.kind + " " + typ + ": factory is nil")
	case r.factories[typ] != nil:
		panic("shardkey: register called twice for " + r.kind + " " + typ)
	case r.factories == nil:
		r.factories = map[string]func(Props) (T, error){}
	}
	r.factories[typ] = factory
}

func (r *registry[T]) types() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.factories))
}

// construct calls the factory of a registered type, and then refuses properties that it didn't ask
// for.
func (r *registry[T]) construct(typ string, props Props) (none T, err error) {
	r.mu.RLock()
	factory := r.factories[strings.ToUpper(typ)]
	r.mu.RUnlock()
	if factory == nil {
		return none, fmt.Errorf("shardkey: unknown %s type %q; registered: %s", r.kind, clip(typ), strings.Join(r.types(), ", "))
	}
	var made T
	err = props.redacted(guard.Call("the factory", func() (err error) {
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
			_ = guard.Call("its Close", c.Close)
		}
	}
	return none, &factoryError{r.kind, strings.ToUpper(typ), err}
}

// isNil reports whether v is nil, or an interface with a nil pointer or function.
func isNil(v any) bool {
	rv := reflect.ValueOf(v)
	return v == nil || (rv.Kind() == reflect.Pointer || rv.Kind() == reflect.Func) && rv.IsNil()
}
