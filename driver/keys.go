package driver

import "context"

// Keys receives the keys of an execution's rows: see [WithKeys]. The zero value
// is ready. It must not be read while an execution with it is running.
type Keys struct {
	values []any
}

// Values returns one entry for each row that the last execution gave, in the
// order of the rows: the key that the row has in the table, or nil where it is
// not known (an expression, a row of ON DUPLICATE KEY UPDATE that existed) or
// the row was not inserted (IGNORE). Generated integer keys are int64; keys that
// the statement gave are what was bound or written.
//
// It is nil after an execution that failed, or that inserted into no ruled
// table.
func (k *Keys) Values() []any { return k.values }

func (k *Keys) reset() {
	if k != nil {
		k.values = nil
	}
}

type keysKey struct{}

// WithKeys returns a context with which an execution, direct or of a prepared
// statement, stores its rows' keys in keys. Each execution resets them.
func WithKeys(ctx context.Context, keys *Keys) context.Context {
	return context.WithValue(ctx, keysKey{}, keys)
}

func keysOf(ctx context.Context) *Keys {
	keys, _ := ctx.Value(keysKey{}).(*Keys)
	return keys
}
