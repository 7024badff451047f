package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/spi"
)

func init() {
	spi.RegisterKeyGenerator("LEAF_SNOWFLAKE", func(p spi.Props) (spi.KeyGenerator, error) {
		g, err := newLeaf(p, leafGrace)
		if err != nil {
			return nil, err // not g: a nil *leaf in an interface is not nil
		}
		return g, nil
	})
}

// leafEpoch is where the time of Leaf's keys begins, Twitter's first epoch: twepoch
// in SnowflakeIDGenImpl.java of https://github.com/Meituan-Dianping/Leaf.
var leafEpoch = time.UnixMilli(1288834974657).UTC()

// defaultPort is what Leaf's documentation shows.
const defaultPort = 8080

// leafOffset spreads the sequences that a millisecond begins with over 0..99,
// as Leaf does by chance.
const leafOffset = "99"

// leaf is the key generator LEAF_SNOWFLAKE: a snowflake generator whose worker
// id is leased from the node that Leaf keeps for an address. Leafs of the same
// ensemble, name and address in one process share one worker ID.
type leaf struct {
	snowflake
	shared *sharedLeaf
	closed atomic.Bool
}

// snowflake is a generator of type SNOWFLAKE.
type snowflake interface {
	spi.Int64KeyGenerator
	spi.KeyDecoder
	spi.KeyRanger
	spi.Describer
	spi.HealthReporter
	spi.ReadyReporter
	spi.WorkerIDLister
	io.Closer
}

// assigner is one of workerid's.
type assigner interface {
	spi.WorkerIDAssigner
	io.Closer
}

// newSnowflake makes the generator of a leaf. p is the leaf's properties.
func newSnowflake(p spi.Props, assigner spi.WorkerIDAssigner, epoch time.Time) (snowflake, error) {
	props, err := spi.NewProps(map[string]any{
		"epoch":                epoch.Format(time.RFC3339Nano),
		"max-vibration-offset": leafOffset,
		"worker-id-assigner":   "leaf",
	}, spi.Host{
		Clock:            p.Clock(),
		Logger:           p.Logger(),
		WorkerIDAssigner: func(string) (spi.WorkerIDAssigner, error) { return assigner, nil },
	})
	if err != nil {
		return nil, err
	}
	g, err := spi.NewKeyGenerator("SNOWFLAKE", props)
	if err != nil {
		return nil, err
	}
	return g.(snowflake), nil
}

// newLeaf makes a generator of a rule's properties. It asks the ensemble at the
// first key. grace is leafGrace; tests have less time.
func newLeaf(p spi.Props, grace time.Duration) (*leaf, error) {
	store, err := readLeafStore(p, grace)
	if err != nil {
		return nil, err
	}
	epoch, err := p.Time("epoch", leafEpoch)
	if err != nil {
		return nil, err
	}
	if p.Has("namespace") {
		return nil, p.Wrong("namespace", "no namespace: leaf.key is that")
	}
	a, err := workerid.NewAssigner(p, func(string) (workerid.Store, workerid.Info, error) {
		return store, store.info(), nil
	})
	if err != nil {
		return nil, err
	}
	return joinLeaf(p, store, a.(assigner), epoch)
}

// readLeafStore reads where the node is, and whose.
func readLeafStore(p spi.Props, grace time.Duration) (*leafStore, error) {
	e, err := newEnsemble(p, "leaf.zk.list")
	if err != nil {
		return nil, err
	}
	name, ip := p.String("leaf.key", ""), p.String("ip", "")
	if name == "" || strings.ContainsAny(name, "/\x00") || name == "." || name == ".." {
		return nil, p.Wrong("leaf.key", "what Leaf has as leaf.name: one part of a ZooKeeper path, without '/'")
	}
	if p.Has("ip") && net.ParseIP(ip) == nil {
		return nil, p.Wrong("ip", "an IP address, as 10.0.0.7")
	}
	if ip == "" {
		ip = machineIP()
	}
	port, err := p.Int("port", defaultPort, 1, 65535)
	if err != nil {
		return nil, err
	}
	return newLeafStore(e, name, leafLayout{leafReport{IP: ip, Port: strconv.FormatInt(port, 10)}, grace}), nil
}

// machineIP is this machine's address as Leaf takes it; 127.0.0.1 when there is
// none that others can reach.
func machineIP() string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "127.0.0.1"
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.To4().String()
		}
	}
	return "127.0.0.1"
}

// GenerateInt64Keys fills keys, which ascend and are contiguous within a
// millisecond.
func (l *leaf) GenerateInt64Keys(ctx context.Context, column spi.Column, keys []int64) error {
	if l.closed.Load() {
		return spi.ErrClosed
	}
	return l.snowflake.GenerateInt64Keys(ctx, column, keys)
}

// GenerateKeys makes n keys as int64.
func (l *leaf) GenerateKeys(ctx context.Context, column spi.Column, n int) ([]any, error) {
	return spi.BoxedKeys(ctx, l, column, n)
}

// Ready tells whether a key can be made now.
func (l *leaf) Ready(ctx context.Context) error {
	if l.closed.Load() {
		return spi.ErrClosed
	}
	return l.snowflake.Ready(ctx)
}

// Describe returns address, worker ID and epoch.
func (l *leaf) Describe() string {
	text := strings.TrimPrefix(l.snowflake.Describe(), "SNOWFLAKE ")
	return fmt.Sprintf("LEAF_SNOWFLAKE %s: %s", l.shared.store.info().Name, text)
}

// Close gives the worker ID back when no other generator of this process uses
// it. It may be called again.
func (l *leaf) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	return l.shared.leave()
}

// leafs are the live generators of this process. An address has one worker ID,
// which only one of them could lease: two connectors with one rule, or a rule
// that replaces another, would shut each other out.
var leafs = struct {
	sync.Mutex
	byKey map[leafKey]*sharedLeaf
}{byKey: map[leafKey]*sharedLeaf{}}

type leafKey struct {
	ensemble, path, address string
	epoch                   int64
}

type sharedLeaf struct {
	key       leafKey
	store     *leafStore
	assigner  assigner
	generator snowflake
	users     int
}

// joinLeaf makes the generator of an address, or joins the one that there is;
// then the assigner is not needed, which has not asked the ensemble yet. Those
// with a clock of their own are for tests, and stay apart.
func joinLeaf(p spi.Props, store *leafStore, a assigner, epoch time.Time) (*leaf, error) {
	key := leafKey{store.ensemble.name(), store.path, store.address(), epoch.UnixMilli()}
	share := p.Clock() == spi.SystemClock

	leafs.Lock()
	defer leafs.Unlock()
	s := leafs.byKey[key]
	if s != nil && share {
		if err := a.Close(); err != nil {
			return nil, err
		}
	} else {
		generator, err := newSnowflake(p, a, epoch)
		if err != nil {
			return nil, errors.Join(err, a.Close())
		}
		s = &sharedLeaf{key: key, store: store, assigner: a, generator: generator}
		if share {
			leafs.byKey[key] = s
		}
	}
	s.users++
	return &leaf{snowflake: s.generator, shared: s}, nil
}

// leave ends the generator with its last user.
func (s *sharedLeaf) leave() error {
	leafs.Lock()
	s.users--
	last := s.users == 0
	if last && leafs.byKey[s.key] == s {
		delete(leafs.byKey, s.key)
	}
	leafs.Unlock()
	if !last {
		return nil
	}
	return errors.Join(s.generator.Close(), s.assigner.Close())
}
