package zookeeper

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/spi"
)

func init() {
	spi.RegisterKeyGenerator("LEAF_SNOWFLAKE", func(p spi.Props) (spi.KeyGenerator, error) {
		g, err := leafFromProps(p)
		if err != nil {
			return nil, err // not g: a nil *Leaf in an interface is not nil
		}
		return g, nil
	})
}

// LeafEpoch is where the time of Leaf's keys begins, Twitter's first epoch.
var LeafEpoch = time.UnixMilli(1288834974657).UTC()

// defaultPort is what Leaf's documentation shows.
const defaultPort = 8080

// leafOffset spreads the sequences that a millisecond begins with over 0..99,
// as Leaf does by chance.
const leafOffset = 99

// LeafConfig says what a [Leaf] is.
type LeafConfig struct {
	Ensemble
	// Name is Leaf's leaf.name: the node below /snowflake.
	Name string
	// IP and Port are the address that the worker id belongs to. They are names
	// only: nothing listens there. An empty IP is this machine's first; a zero
	// Port is 8080. Processes of one machine need ports of their own.
	IP   string
	Port int
	// Epoch is zero for LeafEpoch. It is the twepoch of a Leaf that was built
	// with another one.
	Epoch time.Time
	// Lease is what keygen/workerid says; its Namespace has no meaning here.
	Lease workerid.Config

	grace time.Duration // leafGrace; tests have less time
}

// Leaf is the key generator LEAF_SNOWFLAKE: a snowflake generator whose worker
// id is leased from the node that Leaf keeps for an address. Leafs of the same
// ensemble, name and address in one process share one worker id.
type Leaf struct {
	*snowflake.Generator
	shared *sharedLeaf
	closed atomic.Bool
}

var (
	_ spi.Int64KeyGenerator = (*Leaf)(nil)
	_ spi.KeyDecoder        = (*Leaf)(nil)
	_ spi.KeyRanger         = (*Leaf)(nil)
	_ spi.Describer         = (*Leaf)(nil)
	_ spi.HealthReporter    = (*Leaf)(nil)
)

// NewLeaf makes a generator. It asks the ensemble at the first key.
func NewLeaf(c LeafConfig) (*Leaf, error) {
	e, err := newEnsemble(c.Ensemble)
	if err != nil {
		return nil, &spi.PropError{Name: "leaf.zk.list", Value: strings.Join(c.Servers, ","), Want: err.Error()}
	}
	if err := checkName(c.Name); err != nil {
		return nil, &spi.PropError{Name: "leaf.key", Value: c.Name, Want: err.Error()}
	}
	if c.Port < 0 || c.Port > 65535 {
		return nil, &spi.PropError{Name: "port", Value: strconv.Itoa(c.Port), Want: "an integer in 1..65535"}
	}
	return openLeaf(e, c)
}

func leafFromProps(p spi.Props) (*Leaf, error) {
	e, err := ensembleFromProps(p, "leaf.zk.list")
	if err != nil {
		return nil, err
	}
	c := LeafConfig{Name: p.String("leaf.key", "")}
	if err := checkName(c.Name); err != nil {
		return nil, p.Wrong("leaf.key", err.Error())
	}
	if c.IP = p.String("ip", ""); p.Has("ip") && net.ParseIP(c.IP) == nil {
		return nil, p.Wrong("ip", "an IP address, as 10.0.0.7")
	}
	port, err := p.Int("port", defaultPort, 1, 65535)
	if err != nil {
		return nil, err
	}
	c.Port = int(port)
	if c.Epoch, err = p.Time("epoch", LeafEpoch); err != nil {
		return nil, err
	}
	if c.Lease, err = leaseFromProps(p); err != nil {
		return nil, err
	}
	return openLeaf(e, c)
}

// leaseFromProps reads lease and renew; namespace is not a property here.
func leaseFromProps(p spi.Props) (workerid.Config, error) {
	if p.Has("namespace") {
		return workerid.Config{}, p.Wrong("namespace", "no namespace: leaf.key is that")
	}
	return workerid.ConfigFromProps(p)
}

// GenerateInt64Keys fills keys, which ascend and are contiguous within a
// millisecond.
func (l *Leaf) GenerateInt64Keys(ctx context.Context, column spi.Column, keys []int64) error {
	if l.closed.Load() {
		return spi.ErrClosed
	}
	return l.Generator.GenerateInt64Keys(ctx, column, keys)
}

// GenerateKeys makes n keys as int64.
func (l *Leaf) GenerateKeys(ctx context.Context, column spi.Column, n int) ([]any, error) {
	return spi.BoxedKeys(ctx, l, column, n)
}

// Next makes one key.
func (l *Leaf) Next(ctx context.Context) (int64, error) {
	if l.closed.Load() {
		return 0, spi.ErrClosed
	}
	return l.Generator.Next(ctx)
}

// Describe says address, worker id and epoch.
func (l *Leaf) Describe() string {
	return fmt.Sprintf("LEAF_SNOWFLAKE %s: %s", l.shared.store.Describe(), strings.TrimPrefix(l.Generator.Describe(), "SNOWFLAKE "))
}

// Close gives the worker id back when no other generator of this process uses
// it. It may be called again.
func (l *Leaf) Close() error {
	l.closed.Store(true)
	return l.shared.close(l)
}
