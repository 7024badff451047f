package zookeeper

import (
	"bytes"
	"context"
	"encoding/json"
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
// ensemble, name and address in one process share one worker id.
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
	store, err := newLeafStore(p, grace)
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
	assigner, err := workerid.NewAssigner(p, func(string) (workerid.Store, workerid.Info, error) {
		return store, store.info(), nil
	})
	if err != nil {
		return nil, err
	}
	return joinLeaf(p, store, assigner, epoch)
}

// newLeafStore reads where the node is, and whose.
func newLeafStore(p spi.Props, grace time.Duration) (*leafStore, error) {
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
	return &leafStore{ensemble: e, name: name, report: leafReport{IP: ip, Port: strconv.FormatInt(port, 10)}, grace: grace}, nil
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

// Describe returns address, worker id and epoch.
func (l *leaf) Describe() string {
	return fmt.Sprintf("LEAF_SNOWFLAKE %s: %s", l.shared.store.info().Name, strings.TrimPrefix(l.snowflake.Describe(), "SNOWFLAKE "))
}

// Close gives the worker id back when no other generator of this process uses
// it. It may be called again.
func (l *leaf) Close() error {
	l.closed.Store(true)
	return l.shared.close(l)
}

// leafReport is what Leaf writes into its node, in its words.
type leafReport struct {
	IP        string `json:"ip"`
	Port      string `json:"port"`
	Timestamp int64  `json:"timestamp"`
}

// leafGrace is how much earlier than its keys a Leaf server may report: it does so
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
// A Leaf server's report stands for a record: it holds the worker id
// until shortly after its report. version makes that record's token, as no two
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
	assigner  spi.WorkerIDAssigner
	generator snowflake
	users     map[*leaf]struct{}
}

// joinLeaf makes the generator of an address, or joins the one that there is;
// then the assigner is not needed, which has not asked the ensemble yet. Those
// with a clock of their own are for tests, and stay apart.
func joinLeaf(p spi.Props, store *leafStore, assigner spi.WorkerIDAssigner, epoch time.Time) (*leaf, error) {
	key := leafKey{store.ensemble.name(), store.name, store.address(), epoch.UnixMilli()}
	share := p.Clock() == spi.SystemClock

	leafs.Lock()
	defer leafs.Unlock()
	s := leafs.byKey[key]
	if s != nil && share {
		if err := closeAll(assigner); err != nil {
			return nil, err
		}
	} else {
		generator, err := newSnowflake(p, assigner, epoch)
		if err != nil {
			return nil, errors.Join(err, closeAll(assigner))
		}
		s = &sharedLeaf{key: key, store: store, assigner: assigner, generator: generator, users: map[*leaf]struct{}{}}
		if share {
			leafs.byKey[key] = s
		}
	}
	l := &leaf{snowflake: s.generator, shared: s}
	s.users[l] = struct{}{}
	return l, nil
}

// close ends the generator with its last user.
func (s *sharedLeaf) close(l *leaf) error {
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
	return closeAll(s.generator, s.assigner)
}

func closeAll(all ...any) error {
	var errs []error
	for _, one := range all {
		if c, ok := one.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
