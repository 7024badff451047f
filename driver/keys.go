package driver

import (
	"context"
)

// Keys receives the keys of an execution's rows; see [WithKeys]. The zero value is ready to use. A
// Keys must not be read while an execution with it is running.
type Keys struct {
	values []any
	column string
}

// Values returns one entry for each row of the last execution, in the order of the rows. An entry
// is the key of the row in the table. It is nil if the key is unknown, as for an expression or an
// existing row of ON DUPLICATE KEY UPDATE. It is also nil if IGNORE skipped the row. Generated
// integer keys are int64. An explicit key is the bound or written value.
//
// Values returns nil if the execution failed, or if it inserted into no sharded table. The keys of
// a statement that returns rows are available after the rows are closed.
func (k *Keys) Values() []any { return k.values }

// Column returns the name of the key column in the rule. For several INSERTs in one string it is
// the column of the first. It is empty if Values is nil.
func (k *Keys) Column() string { return k.column }

// WithKeys returns a context that makes an execution store its rows' keys in keys, for direct and
// for prepared statements. Each execution replaces the keys. If ctx already has a Keys, both
// receive the same keys. If keys is nil, WithKeys returns ctx.
func WithKeys(ctx context.Context, keys *Keys) context.Context {
	if keys == nil {
		return ctx
	}
	return context.WithValue(ctx, keysKey{}, &keysList{keys: keys, outer: keysOf(ctx)})
}

type keysKey struct{}

// keysList is a linked list of the Keys in a context. A nil keysList is empty.
type keysList struct {
	keys   *Keys
	outer  *keysList
	before Keys // of the statements before, in a string of several
}

func keysOf(ctx context.Context) *keysList {
	r, _ := ctx.Value(keysKey{}).(*keysList)
	return r
}

func (list *keysList) reset() {
	for ; list != nil; list = list.outer {
		*list.keys = Keys{}
	}
}

// set stores the keys of a statement.
func (list *keysList) set(keys Keys) {
	if list != nil && list.before.values != nil {
		keys = list.before.with(keys)
	}
	for ; list != nil; list = list.outer {
		*list.keys = keys
	}
}

// after returns the list for a statement that follows others, which have keys.
func (list *keysList) after(others Keys) *keysList {
	if list == nil {
		return nil
	}
	return &keysList{keys: list.keys, outer: list.outer, before: others}
}
