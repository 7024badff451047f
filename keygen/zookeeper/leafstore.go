package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/spi"
)

// leafStore is a store of the one worker id that belongs to an address: the
// number of its node below /snowflake/<name>/forever.
type leafStore struct {
	ensemble *ensemble
	name     string
	report   leafReport // with this machine's ip and port
	grace    time.Duration
}

// leafMax is the highest worker id of 10 bits.
const leafMax = 1<<10 - 1

func (s *leafStore) forever() string { return "/snowflake/" + s.name + "/forever" }

func (s *leafStore) address() string { return net.JoinHostPort(s.report.IP, s.report.Port) }

func (s *leafStore) info() workerid.Info {
	return workerid.Info{
		Name: fmt.Sprintf("ZOOKEEPER %s %s/%s", s.ensemble.name(), s.forever(), s.address()),
		Now:  s.now, NowWrites: true, WorkerIDs: s.workerIDs,
	}
}

func (s *leafStore) Close() error { return s.ensemble.Close() }

// now is the ensemble's clock. Leaf does not know of the node that is written
// for it.
func (s *leafStore) now(ctx context.Context) (time.Time, error) {
	return s.ensemble.now(ctx, "/snowflake/"+s.name+"/shardkey")
}

// workerIDs is the worker id of this machine's address. A first start makes the
// node, and takes the sequence number that ZooKeeper assigns, so that two machines that
// start first at the same time differ.
func (s *leafStore) workerIDs(ctx context.Context, maxWorkerID int64) ([]int64, error) {
	id, err := s.find(ctx)
	if err == nil && id < 0 {
		var path string
		// 0 means that no keys have been made yet.
		path, _, err = s.ensemble.create(ctx, s.forever()+"/"+s.address()+"-", leafText(s.report, workerid.Record{}), zk.FlagSequence)
		_, id, _ = leafNumber(path)
	}
	if err != nil {
		return nil, err
	}
	if id > min(maxWorkerID, leafMax) {
		return nil, fmt.Errorf("the node of %s has the number %d, and worker ids end at %d: %w", s.address(), id, leafMax, &numberError{s.name})
	}
	return []int64{id}, nil
}

// numberError says that ZooKeeper has counted past the last worker id.
type numberError struct{ name string }

func (e *numberError) Error() string {
	return fmt.Sprintf("ZooKeeper never assigns a number again, so %q has no worker ids left: give each process the same ip and port at each start, and use another leaf.key with a later epoch", e.name)
}

func (e *numberError) Unwrap() error { return spi.ErrNoWorkerID }

// find is the worker id of this machine's node; -1 for none. Of several nodes,
// which a lost answer can leave behind, it is the one that was reported to last.
func (s *leafStore) find(ctx context.Context) (int64, error) {
	names, nodes, err := s.own(ctx)
	if err != nil {
		return 0, err
	}
	best, latest := int64(-1), int64(0)
	for i, n := range nodes {
		_, id, _ := leafNumber(names[i])
		if best < 0 || n.stat.Mtime > latest || n.stat.Mtime == latest && id < best {
			best, latest = id, n.stat.Mtime
		}
	}
	return best, nil
}

// own reads the nodes of this machine's address.
func (s *leafStore) own(ctx context.Context) (names []string, nodes []*node, err error) {
	return s.nodes(ctx, func(address string) bool { return address == s.address() })
}

// nodes reads the nodes of the addresses that are wanted.
func (s *leafStore) nodes(ctx context.Context, wanted func(address string) bool) (names []string, nodes []*node, err error) {
	all, err := s.ensemble.children(ctx, s.forever())
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil, nil
	}
	for _, name := range all {
		if address, _, ok := leafNumber(name); ok && wanted(address) {
			names = append(names, name)
		}
	}
	if err != nil || len(names) == 0 {
		return nil, nil, err
	}
	found, err := s.ensemble.getAll(ctx, s.forever(), names)
	if err != nil {
		return nil, nil, err
	}
	left := names[:0]
	for i, n := range found {
		if n != nil { // else it has gone since
			left, nodes = append(left, names[i]), append(nodes, n)
		}
	}
	return left, nodes, nil
}

// List is the worker ids of all machines.
func (s *leafStore) List(ctx context.Context) ([]workerid.Entry, error) {
	names, nodes, err := s.nodes(ctx, func(string) bool { return true })
	return s.entries(names, nodes), err
}

func (s *leafStore) entries(names []string, nodes []*node) (entries []workerid.Entry) {
	for i, n := range nodes {
		_, id, _ := leafNumber(names[i])
		r, err := parseLeaf(id, n.data, n.stat.Version, s.grace)
		entries = append(entries, workerid.Entry{WorkerID: id, Record: r, Err: err})
	}
	return entries
}

func (s *leafStore) Get(ctx context.Context, workerID int64) (workerid.Record, error) {
	r, _, err := s.get(ctx, workerID)
	return r, err
}

func (s *leafStore) path(workerID int64) string {
	return fmt.Sprintf("%s/%s-%010d", s.forever(), s.address(), workerID)
}

// get reads a worker id's record and the node that it stands in; without a
// node both are zero.
func (s *leafStore) get(ctx context.Context, workerID int64) (workerid.Record, node, error) {
	n, err := s.ensemble.get(ctx, s.path(workerID))
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return workerid.Record{}, node{}, nil
	case err != nil:
		return workerid.Record{}, node{}, err
	}
	r, err := parseLeaf(workerID, n.data, n.stat.Version, s.grace)
	return r, n, err
}

func (s *leafStore) CompareAndSet(ctx context.Context, workerID int64, prev, next workerid.Record) (bool, error) {
	found, n, err := s.get(ctx, workerID)
	if err != nil || n.stat == nil || !found.Same(prev) {
		return false, err
	}
	if isLeafs(found) {
		if quiet, err := s.quiet(ctx, n); err != nil || !quiet {
			return false, err
		}
	}
	return s.ensemble.set(ctx, s.path(workerID), leafText(s.report, next), n.stat.Version)
}

// quiet reports whether a Leaf server has stopped writing its node. It is the
// ensemble's clock that is asked: the server's may be wrong.
func (s *leafStore) quiet(ctx context.Context, n node) (bool, error) {
	now, err := s.now(ctx)
	return err == nil && now.Sub(time.UnixMilli(n.stat.Mtime)) >= s.grace, err
}
