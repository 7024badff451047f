package leaf

import (
	"math"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Type is the generator's name in rules.
const Type = "LEAF_SEGMENT"

func init() {
	spi.RegisterKeyGenerator(Type, newFromProps)
}

// newFromProps makes a generator of a rule's properties. Without leaf.jdbc.url
// and dsn the table is looked for in the connector's own database; that it has
// none is an error at the first key, because a rule is also checked without a
// connector.
func newFromProps(p spi.Props) (spi.KeyGenerator, error) {
	c := Config{
		Key:      p.String("leaf.key", ""),
		JDBCURL:  p.Secret("leaf.jdbc.url"),
		DSN:      p.Secret("dsn"),
		User:     p.String("leaf.jdbc.username", ""),
		Password: p.Secret("leaf.jdbc.password"),
		Clock:    p.Clock(),
	}
	if !p.Has("leaf.jdbc.url") && !p.Has("dsn") {
		c.DSN = p.HostDSN()
	}
	var err error
	if c.MinStep, err = p.Int("min-step", 0, 1, maxStep); err != nil {
		return nil, err
	}
	if c.MaxStep, err = p.Int("max-step", 0, 1, maxStep); err != nil {
		return nil, err
	}
	if c.Reserve, err = p.Duration("reserve", DefaultReserve, 0, 24*time.Hour); err != nil {
		return nil, err
	}
	if c.Timeout, err = p.Duration("timeout", DefaultTimeout, time.Millisecond, math.MaxInt64); err != nil {
		return nil, err
	}
	return newGenerator(c)
}
