package driver

import (
	"context"
	"database/sql/driver"

	"github.com/shardkey/shardkey/rewrite"
)

// isMissing tells whether a bound key asks for a generated one: nil does, 0
// does for integer keys (unless the session's sql_mode keeps it), "" for text.
func (c *conn) isMissing(ctx context.Context, t *table, bound driver.Value) (bool, error) {
	if b, ok := bound.([]byte); bound == nil || ok && b == nil {
		return true, nil
	}
	empty, zero := isEmpty(bound), isZero(bound)
	if !empty && !zero {
		return false, nil
	}
	if t.kind() == rewrite.UnknownKind {
		if err := t.learnKind(ctx); err != nil {
			return false, err
		}
	}
	if t.kind() == rewrite.Text {
		return empty, nil
	}
	if !zero {
		return false, nil
	}
	mode, err := c.sqlMode(ctx)
	return mode&rewrite.NoAutoValueOnZero == 0, err
}

func isEmpty(bound driver.Value) bool {
	switch v := bound.(type) {
	case string:
		return v == ""
	case []byte:
		return len(v) == 0
	}
	return false
}

func isZero(bound driver.Value) bool {
	switch v := bound.(type) {
	case int64:
		return v == 0
	case uint64:
		return v == 0
	case float64:
		return v > -0.5 && v < 0.5 // the servers round
	case bool:
		return !v
	case float32:
		return v > -0.5 && v < 0.5
	case string:
		return rewrite.IsZero(v)
	case []byte:
		return rewrite.IsZero(string(v))
	}
	return false
}
