package spi_test

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/shardkey/shardkey/spi"
)

// fruit generates random keys. A counter in memory would start again in each process.
type fruit struct{}

func (fruit) GenerateKeys(_ context.Context, _ spi.Column, n int) ([]any, error) {
	keys := make([]any, n)
	for i := range keys {
		keys[i] = "apple-" + rand.Text()
	}
	return keys, nil
}

func init() {
	spi.RegisterKeyGenerator("FRUIT", func(spi.Props) (spi.KeyGenerator, error) { return fruit{}, nil })
}

// A custom generator of text keys needs one method and one registration. A rule then refers to it by its
// type:
//
//	keyGenerators:
//	  fruit: {type: FRUIT}
func ExampleRegisterKeyGenerator() {
	generator, err := spi.NewKeyGenerator("fruit", spi.Props{})
	if err != nil {
		fmt.Println(err)
		return
	}
	orders := spi.Column{Table: "t_order", Name: "order_id"}
	for _, rows := range []int{1, 3} {
		keys, err := generator.GenerateKeys(context.Background(), orders, rows)
		fmt.Println(len(keys), err)
	}
	// Output:
	// 1 <nil>
	// 3 <nil>
}

// The errors of a factory have the property, its value and the valid values. A property that the
// factory doesn't read is an error too.
func ExampleProps() {
	spi.RegisterKeyGenerator("STEPS", func(p spi.Props) (spi.KeyGenerator, error) {
		if _, err := p.Int("step", 1, 1, 1000); err != nil {
			return nil, err
		}
		return fruit{}, nil
	})
	for _, values := range []map[string]any{
		{"step": "20"},
		{"step": "20k"},
		{"steps": "20"},
	} {
		props, _ := spi.NewProps(values, spi.Host{})
		_, err := spi.NewKeyGenerator("STEPS", props)
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// shardkey: key generator STEPS: property "step": expected an integer in 1..1000, found "20k"
	// shardkey: key generator STEPS: unknown property "steps"; known: step
}
