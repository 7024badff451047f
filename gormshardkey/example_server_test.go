package gormshardkey_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"sync"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// exampleDriver registers shardkey over a fake server, with the keys 1001 and so on, and returns
// the driver's name.
var exampleDriver = sync.OnceValue(func() string {
	spi.RegisterKeyGenerator("COUNTER", func(spi.Props) (spi.KeyGenerator, error) { return new(counter), nil })
	r, err := rule.Parse("rule.yaml", []byte(`
rules:
- !SHARDING
  tables:
    orders: {keyGenerateStrategy: {column: id, keyGeneratorName: counter}}
  keyGenerators:
    counter: {type: COUNTER}
`))
	if err != nil {
		panic(err)
	}
	server := &fakedb.Server{Result: fakedb.Result{Affected: 2}, Query: func(query string) (sqldriver.Rows, error) {
		if query == "SELECT VERSION()" {
			return fakedb.Row("9.7.0"), nil
		}
		return nil, sqldriver.ErrSkip
	}}
	sql.Register("shardkey_example", driver.Wrap(fakedb.Driver{Server: server}, r))
	return "shardkey_example"
})

type counter struct{ last int64 }

func (c *counter) GenerateKeys(ctx context.Context, column spi.Column, n int) ([]any, error) {
	return spi.KeysFromInts(ctx, c, column, n)
}

func (c *counter) GenerateInt64Keys(_ context.Context, _ spi.Column, keys []int64) error {
	for i := range keys {
		c.last++
		keys[i] = 1000 + c.last
	}
	return nil
}
