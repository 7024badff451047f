package rule

import (
	"context"
	"fmt"

	"github.com/shardkey/shardkey/spi"
)

// ambiguous is the generator of a name that could mean several tables.
type ambiguous string

// AmbiguousTableError is the error for a statement that names a table without
// schema where the rule has tables of that name in several.
type AmbiguousTableError struct {
	Table string // its name, in lower case
}

func (a ambiguous) GenerateKeys(context.Context, spi.Column, int) ([]any, error) {
	return nil, &AmbiguousTableError{Table: string(a)}
}

func (e *AmbiguousTableError) Error() string {
	return fmt.Sprintf("shardkey: table %q is in several schemas of the rule: write schema.%s", e.Table, e.Table)
}
