package driver

import (
	"context"
	"database/sql/driver"
	"slices"

	"github.com/shardkey/shardkey/rewrite"
)

// maxKeysInQuestion is how many keys one question names.
const maxKeysInQuestion = 1000

// presentKeys asks, on the same connection, which keys are in the table. Nil is
// no key.
func (c *conn) presentKeys(ctx context.Context, in *rewrite.Insert, keys []any) (map[string]bool, error) {
	present := map[string]bool{}
	column := rewrite.QuoteIdentifier(in.Table.KeyColumn)
	for chunk := range slices.Chunk(keys, maxKeysInQuestion) {
		query := []byte("SELECT " + column + " FROM " + rewrite.QuoteTable(in.Schema, in.Name) + " WHERE " + column + " IN (NULL")
		for _, key := range chunk {
			if key != nil {
				query, _ = rewrite.AppendLiteral(append(query, ", "...), key)
			}
		}
		err := c.queryRows(ctx, string(append(query, ')')), func(row []driver.Value) {
			present[text(row[0])] = true
		})
		if err != nil {
			return nil, err
		}
	}
	return present, nil
}
