package ticket

import (
	"math"
	"strconv"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Type is the generator's name in rules.
const Type = "TICKET"

func init() {
	spi.RegisterKeyGenerator(Type, newFromProps)
}

// newFromProps makes a generator of a rule's properties. Without dsns the table
// is looked for in the connector's own database; that it has none is an error
// at the first key, because a rule is also checked without a connector.
func newFromProps(p spi.Props) (spi.KeyGenerator, error) {
	c := Config{DSNs: p.List("dsns"), Table: p.String("table", DefaultTable), Clock: p.Clock()}
	if c.DSNs == nil && p.HostDSN() != "" {
		c.DSNs = []string{p.HostDSN()}
	}
	var err error
	if c.Increment, err = p.Int("increment", 0, 1, maxIncrement); err != nil {
		return nil, err
	}
	if c.Batch, err = p.Int("batch", 1, 1, maxKeys); err != nil {
		return nil, err
	}
	if c.Timeout, err = p.Duration("timeout", DefaultTimeout, time.Millisecond, math.MaxInt64); err != nil {
		return nil, err
	}
	for _, item := range p.List("offsets") {
		o, err := strconv.ParseInt(item, 10, 64)
		if err != nil {
			return nil, p.Wrong("offsets", "integers, one for each of dsns")
		}
		c.Offsets = append(c.Offsets, o)
	}
	return newGenerator(c)
}
