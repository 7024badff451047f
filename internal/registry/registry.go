// Package registry holds the factories of the types that a rule can name. Package spi fills it.
// Package rule and the CLI list the types in messages.
package registry

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// Kind is a kind of types, in the words of messages.
type Kind = string

const (
	KeyGenerators     Kind = "key generator"
	WorkerIDAssigners Kind = "worker-ID assigner"
)

var (
	mu        sync.RWMutex
	factories = map[Kind]map[string]any{KeyGenerators: {}, WorkerIDAssigners: {}}
)

// Add adds the factory of a type. It panics if the type is empty or already registered.
func Add(kind Kind, typ string, factory any) {
	typ = strings.ToUpper(typ)
	mu.Lock()
	defer mu.Unlock()
	switch {
	case typ == "":
		panic("shardkey: register " + kind + ": type is empty")
	case factories[kind][typ] != nil:
		panic("shardkey: register called twice for " + kind + " " + typ)
	}
	factories[kind][typ] = factory
}

// Find returns the factory of a type, or nil if the type isn't registered.
func Find(kind Kind, typ string) any {
	mu.RLock()
	defer mu.RUnlock()
	return factories[kind][strings.ToUpper(typ)]
}

// PropKey returns the name of a property in its only spelling: worker-id for worker.id and Worker-ID.
func PropKey(name string) string { return strings.ReplaceAll(strings.ToLower(name), ".", "-") }

// Types returns the registered types, in upper case and sorted.
func Types(kind Kind) []string {
	mu.RLock()
	defer mu.RUnlock()
	return slices.Sorted(maps.Keys(factories[kind]))
}
