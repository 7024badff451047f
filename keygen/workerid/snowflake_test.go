package workerid

import (
	"context"
	"io"
	"maps"
	"strconv"

	_ "github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/spi"
)

// Snowflake is a generator of type SNOWFLAKE or SNOWFLAKE_RING, whose worker ids an
// assigner leases.
type Snowflake struct{ snowflakeGenerator }

type snowflakeGenerator interface {
	spi.Int64KeyGenerator
	spi.HealthReporter
	spi.ReadyReporter
	io.Closer
}

// NewSnowflake makes a generator that keeps the state of so many ticks.
func NewSnowflake(a spi.WorkerIDAssigner, host spi.Host, ring int, props map[string]any) (Snowflake, error) {
	typ, props := "SNOWFLAKE", maps.Clone(props)
	props["worker-id-assigner"] = "leases"
	if ring > 1 {
		typ, props["ring-size"] = "SNOWFLAKE_RING", strconv.Itoa(ring)
	}
	host.WorkerIDAssigner = func(string) (spi.WorkerIDAssigner, error) { return a, nil }
	p, err := spi.NewProps(props, host)
	if err != nil {
		return Snowflake{}, err
	}
	g, err := spi.NewKeyGenerator(typ, p)
	if err != nil {
		return Snowflake{}, err
	}
	return Snowflake{g.(snowflakeGenerator)}, nil
}

// Next returns one new key.
func (s Snowflake) Next(ctx context.Context) (int64, error) {
	var keys [1]int64
	err := s.GenerateInt64Keys(ctx, spi.Column{}, keys[:])
	return keys[0], err
}
