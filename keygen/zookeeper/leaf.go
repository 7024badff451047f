package zookeeper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
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

// leafReport is what Leaf writes into its node, in its words.
type leafReport struct {
	IP        string `json:"ip"`
	Port      string `json:"port"`
	Timestamp int64  `json:"timestamp"`
}

// leafGrace is how far behind its keys a Leaf server may report: it does so
// each 3 s, and the report takes its time.
const leafGrace = 5 * time.Second

// leafText is a node's data: Leaf's report, and below it our record. Leaf's
// JSON reader stops where the report ends.
func leafText(report leafReport, r workerid.Record) []byte {
	report.Timestamp = r.ReservedUntil
	if r.FreeFrom > 0 {
		report.Timestamp = r.FreeFrom
	}
	text, err := json.Marshal(report)
	if err != nil {
		return nil // cannot be: strings and integers always marshal
	}
	if r.IsZero() {
		return text
	}
	return append(append(text, '\n'), r.Text()...)
}

// parseLeaf reads a node's data, that a Leaf server or we have written.
//
// A Leaf server's report stands for a record: it holds the worker id until
// shortly behind its report. version makes that record's token, as no two
// reports have the same.
func parseLeaf(workerID int64, data []byte, version int32, grace time.Duration) (workerid.Record, error) {
	foreign := func(err error) (workerid.Record, error) {
		return workerid.Record{}, &workerid.ForeignRecordError{WorkerID: workerID, Value: string(data), Err: err}
	}
	var report leafReport
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&report); err != nil {
		return foreign(fmt.Errorf("it is not Leaf's JSON: %w", err))
	}
	switch rest := strings.TrimSpace(string(data[d.InputOffset():])); {
	case rest != "":
		return workerid.ParseRecord(workerID, rest)
	case report.Timestamp < 0 || report.IP == "":
		return foreign(fmt.Errorf("it is not Leaf's JSON: ip and timestamp"))
	case report.Timestamp == 0: // as we make it
		return workerid.Record{}, nil
	}
	return workerid.Record{
		Owner:         leafOwner + strconv.Itoa(int(version)),
		ReservedUntil: report.Timestamp + grace.Milliseconds(),
		Holder:        "a Leaf server at " + report.IP + ":" + report.Port,
		Since:         report.Timestamp,
	}, nil
}

const leafOwner = "leaf-"

func isLeafs(r workerid.Record) bool { return strings.HasPrefix(r.Owner, leafOwner) }

// leafNumber takes a node's name, <ip>:<port>-NNNNNNNNNN, apart.
func leafNumber(name string) (address string, workerID int64, ok bool) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return "", 0, false
	}
	n, err := strconv.ParseInt(name[i+1:], 10, 32)
	return name[:i], n, err == nil && n >= 0
}

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
