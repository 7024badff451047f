package rule_test

import (
	"sync"
	"testing"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// A table is made when it is looked up first, and known by its pointer.
func TestLiveLookup_oneTableForAll(t *testing.T) {
	r, err := rule.New(rule.Config{
		Tables:     []rule.TableConfig{{Name: "t_order", ActualDataNodes: "t_order_${0..1}", KeyConfig: rule.KeyConfig{Column: "id", Generator: "ids"}}},
		Generators: map[string]rule.GeneratorConfig{"ids": {Type: "UUID"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	live, err := r.Open(spi.Host{})
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	found := make([]*rule.Table, 16)
	var all sync.WaitGroup
	for i := range found {
		all.Go(func() { found[i] = live.Lookup("", []string{"t_order_0", "T_ORDER_1"}[i%2]) })
	}
	all.Wait()
	for _, table := range found {
		if table == nil || table != found[0] || table.Generator == nil {
			t.Errorf("have: %p with %v\nwant: %p with a generator", table, table.Generator, found[0])
		}
	}
	found[0].Actual[0] = "other"
	if have := r.Tables()[0].Actual[0]; have != "t_order_0" {
		t.Errorf("the rule's own table, after a change of a live one\nhave: %s\nwant: t_order_0", have)
	}
}
