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
		return newLeaf(p, leafGrace)
	})
}

// leafEpoch is the epoch of Leaf's keys, which is Twitter's first epoch: twepoch in
// SnowflakeIDGenImpl.java of https://github.com/Meituan-Dianping/Leaf.
var leafEpoch = time.UnixMilli(1288834974657).UTC()

// defaultPort is the port in Leaf's documentation.
const defaultPort = 8080

// leafOffset makes a new millisecond start at sequences 0 to 99 in turn. Leaf uses a random one.
const leafOffset = "99"

// leaf is the key generator LEAF_SNOWFLAKE: a snowflake generator that leases its worker ID from
// Leaf's node for an address. Generators of a process with the same ensemble, name and address
// share one worker ID.
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

// assigner is an assigner of package workerid.
type assigner interface {
	spi.WorkerIDAssigner
	io.Closer
}

// newSnowflake returns the snowflake generator of a leaf with the properties p.
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

// newLeaf returns a generator with these properties. It connects to the ensemble when the first key
// is needed. grace is leafGrace, or less in tests.
func newLeaf(p spi.Props, grace time.Duration) (spi.KeyGenerator, error) {
	store, err := readLeafStore(p, grace)
	if err != nil {
		return nil, err
	}
	epoch, err := p.Time("epoch", leafEpoch)
	if err != nil {
		return nil, err
	}
	if p.Has("namespace") {
		return nil, p.Wrong("namespace", "no value; leaf.key is the namespace")
	}
	a, err := workerid.NewAssigner(p, func(string) (workerid.Store, workerid.Info, error) {
		s, err := readLeafStore(p, grace)
		if err != nil {
			return nil, workerid.Info{}, err
		}
		return s, s.info(), nil
	})
	if err != nil {
		return nil, err
	}
	return joinLeaf(p, store, a.(assigner), epoch)
}

// readLeafStore reads the properties of the node and the address.
func readLeafStore(p spi.Props, grace time.Duration) (*leafStore, error) {
	e, err := newEnsemble(p, "leaf.zk.list")
	if err != nil {
		return nil, err
	}
	name, ip := p.String("leaf.key", ""), p.String("ip", "")
	if name == "" || strings.ContainsAny(name, "/\x00") || name == "." || name == ".." {
		return nil, p.Wrong("leaf.key", "the leaf.name of Leaf, which is one part of a ZooKeeper path without '/'")
	}
	if p.Has("ip") && net.ParseIP(ip) == nil {
		return nil, p.Wrong("ip", "an IP address, for example 10.0.0.7")
	}
	if ip == "" {
		ip = machineIP()
	}
	port, err := p.Int("port", defaultPort, 1, 65535)
	if err != nil {
		return nil, err
	}
	root, layout := "/snowflake/"+name, leafLayout{leafReport{IP: ip, Port: strconv.FormatInt(port, 10)}, grace}
	return &leafStore{store{e, root + "/forever", layout}, layout, root}, nil
}

// machineIP returns this machine's address, selected as Leaf does. It returns 127.0.0.1 if other
// machines can't reach any of its addresses.
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

// GenerateInt64Keys sets keys to ascending keys, which are consecutive within a millisecond. Its
// errors are those of a generator of type SNOWFLAKE.
func (l *leaf) GenerateInt64Keys(ctx context.Context, column spi.Column, keys []int64) error {
	if l.closed.Load() {
		return spi.ErrClosed
	}
	return l.snowflake.GenerateInt64Keys(ctx, column, keys)
}

// GenerateKeys returns n keys. Each is an int64.
func (l *leaf) GenerateKeys(ctx context.Context, column spi.Column, n int) ([]any, error) {
	return spi.KeysFromInts(ctx, l, column, n)
}

// Ready returns nil if a key can be generated now.
func (l *leaf) Ready(ctx context.Context) error {
	if l.closed.Load() {
		return spi.ErrClosed
	}
	return l.snowflake.Ready(ctx)
}

// Describe returns the address, the worker ID and the epoch.
func (l *leaf) Describe() string {
	text := strings.TrimPrefix(l.snowflake.Describe(), "SNOWFLAKE ")
	return fmt.Sprintf("LEAF_SNOWFLAKE %s: %s", l.shared.store.info().Name, text)
}

// Close releases the worker ID, unless another generator of this process uses it. It may be called
// several times.
func (l *leaf) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	return l.shared.leave()
}

// leafs are the open generators of this process. Only one generator can lease the worker ID of an
// address. If generators didn't share it, two connectors with the same rule couldn't both be open,
// nor could a rule replace another.
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

// joinLeaf returns the generator of an address, and creates it if there is none. If it exists, the
// assigner a isn't used. Generators with a custom clock aren't shared, because they are for tests.
func joinLeaf(p spi.Props, store *leafStore, a assigner, epoch time.Time) (spi.KeyGenerator, error) {
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

// leave closes the generator when its last user leaves.
func (sl *sharedLeaf) leave() error {
	leafs.Lock()
	sl.users--
	last := sl.users == 0
	if last && leafs.byKey[sl.key] == sl {
		delete(leafs.byKey, sl.key)
	}
	leafs.Unlock()
	if !last {
		return nil
	}
	return errors.Join(sl.generator.Close(), sl.assigner.Close())
}
