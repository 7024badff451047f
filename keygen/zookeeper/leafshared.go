package zookeeper

import (
	"errors"
	"strconv"
	"sync"

	"github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/spi"
)

// leafs are the live generators of this process. An address has one worker id,
// which only one of them could lease: two connectors with one rule, or a rule
// that replaces another, would shut each other out.
var leafs = struct {
	sync.Mutex
	byKey map[leafKey]*sharedLeaf
}{byKey: map[leafKey]*sharedLeaf{}}

type leafKey struct {
	ensemble, name, address string
	epoch                   int64
}

type sharedLeaf struct {
	key       leafKey
	store     *leafStore
	assigner  *workerid.Assigner
	generator *snowflake.Generator
	users     map[*Leaf]struct{}
}

// openLeaf finds or makes the generator of an address. Those with a clock of
// their own are for tests, and stay apart.
func openLeaf(e *ensemble, c LeafConfig) (*Leaf, error) {
	if c.IP == "" {
		c.IP = machineIP()
	}
	if c.Port == 0 {
		c.Port = defaultPort
	}
	if c.Epoch.IsZero() {
		c.Epoch = LeafEpoch
	}
	if c.grace == 0 {
		c.grace = leafGrace
	}
	store := &leafStore{ensemble: e, name: c.Name, report: leafReport{IP: c.IP, Port: strconv.Itoa(c.Port)}, grace: c.grace}
	key := leafKey{e.name(), c.Name, store.address(), c.Epoch.UnixMilli()}
	share := c.Lease.Clock == nil || c.Lease.Clock == spi.SystemClock

	leafs.Lock()
	defer leafs.Unlock()
	s := leafs.byKey[key]
	if s == nil || !share {
		var err error
		if s, err = newSharedLeaf(key, store, c); err != nil {
			return nil, err
		}
		if share {
			leafs.byKey[key] = s
		}
	}
	l := &Leaf{Generator: s.generator, shared: s}
	s.users[l] = struct{}{}
	return l, nil
}

func newSharedLeaf(key leafKey, store *leafStore, c LeafConfig) (*sharedLeaf, error) {
	assigner, err := workerid.NewAssigner(store, c.Lease)
	if err != nil {
		return nil, err
	}
	generator, err := snowflake.New(snowflake.Config{
		Layout: snowflake.Classic, Epoch: c.Epoch, Assigner: assigner, MaxVibrationOffset: leafOffset,
		Clock: c.Lease.Clock, Logger: c.Lease.Logger,
	})
	if err != nil {
		return nil, errors.Join(err, assigner.Close())
	}
	return &sharedLeaf{key: key, store: store, assigner: assigner, generator: generator, users: map[*Leaf]struct{}{}}, nil
}

// close ends the generator with its last user.
func (s *sharedLeaf) close(l *Leaf) error {
	leafs.Lock()
	_, used := s.users[l]
	delete(s.users, l)
	last := used && len(s.users) == 0
	if last && leafs.byKey[s.key] == s {
		delete(leafs.byKey, s.key)
	}
	leafs.Unlock()
	if !last {
		return nil
	}
	return errors.Join(s.generator.Close(), s.assigner.Close())
}
