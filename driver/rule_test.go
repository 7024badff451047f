package driver

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// testGenerators counts the live generators of type TEST, by the tag property.
// It is a test's own tag that keeps tests apart.
var testGenerators [8]atomic.Int64

type testGenerator struct {
	tag  int64
	next atomic.Int64
}

func init() {
	spi.RegisterKeyGenerator("TEST", func(p spi.Props) (spi.KeyGenerator, error) {
		tag, err := p.Int("tag", 0, 0, int64(len(testGenerators)-1))
		if err != nil {
			return nil, err
		}
		testGenerators[tag].Add(1)
		return &testGenerator{tag: tag}, nil
	})
}

func (g *testGenerator) GenerateKeys(_ context.Context, _ spi.Column, n int) ([]any, error) {
	keys := make([]any, n)
	for i := range keys {
		keys[i] = g.next.Add(1)
	}
	return keys, nil
}

func (g *testGenerator) Close() error { testGenerators[g.tag].Add(-1); return nil }

func (g *testGenerator) Health() spi.Health { return spi.Health{Issued: g.next.Load()} }

const testRuleYAML = `
rules:
- !SHARDING
  tables:
    %s:
      keyGenerateStrategy: {column: id, keyGeneratorName: test}
  keyGenerators:
    test: {type: TEST, props: {tag: %d}}
`

// taggedRules counts the rules that taggedRule made.
var taggedRules atomic.Int64

// taggedRule rules one table with a generator of its own tag.
func taggedRule(t testing.TB, table string, tag int) *rule.Rule {
	t.Helper()
	// A name of its own: rules of one name and text share their generators.
	r := must(rule.Parse(fmt.Sprintf("test%d.yaml", taggedRules.Add(1)), []byte(fmt.Sprintf(testRuleYAML, table, tag))))(t)
	return r
}

// testRule rules a table that no test uses.
func testRule(t testing.TB) *rule.Rule { return taggedRule(t, "nobodys_table", 0) }
