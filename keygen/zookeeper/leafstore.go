package zookeeper

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/spi"
)

// leafStore is a store with one worker ID, the one of an address. It is the number of the address's
// node under /snowflake/<name>/forever.
type leafStore struct {
	store
	leafLayout
	root string // /snowflake/<name>
}

// leafMax is the highest worker ID with 10 bits.
const leafMax = 1<<10 - 1

func (ls *leafStore) info() workerid.Info {
	return workerid.Info{
		Name: fmt.Sprintf("ZOOKEEPER %s %s/%s", ls.ensemble.name(), ls.path, ls.address()),
		Now:  ls.now, NowWrites: true, WorkerIDs: ls.workerIDs,
	}
}

// now returns the time of the ensemble's clock. It writes a node that Leaf doesn't use.
func (ls *leafStore) now(ctx context.Context) (time.Time, error) {
	return ls.ensemble.now(ctx, ls.root+"/shardkey")
}

// workerIDs returns the worker ID of this machine's address. The first start creates the node, and
// ZooKeeper assigns its sequence number. Two machines that start at the same time therefore get
// different numbers.
func (ls *leafStore) workerIDs(ctx context.Context, maxWorkerID int64) ([]int64, error) {
	id, err := ls.find(ctx)
	if err == nil && id < 0 {
		var path string
		// An empty record means that no keys have been generated.
		path, _, err = ls.ensemble.create(ctx, ls.path+"/"+ls.address()+"-", ls.text(workerid.Record{}), zk.FlagSequence)
		_, id, _ = leafNumber(path)
	}
	if err != nil {
		return nil, err
	}
	if id > min(maxWorkerID, leafMax) {
		return nil, fmt.Errorf("the node of %s has the number %d, but the highest worker ID is %d: %w", ls.address(), id, leafMax,
			&numberError{ls.root})
	}
	return []int64{id}, nil
}

// numberError is the error if ZooKeeper's sequence number is above the last worker ID.
type numberError struct{ root string }

func (ne *numberError) Error() string {
	return fmt.Sprintf("%q has no worker IDs left, because ZooKeeper never reuses a number; "+
		"use another leaf.key with a later epoch, and start each process with the same ip and port every time", ne.root)
}

func (ne *numberError) Unwrap() error { return spi.ErrNoWorkerID }

// find returns the worker ID of this machine's node, or -1 if there is none. If there are several
// nodes, because an answer was lost, it returns the one with the latest report.
func (ls *leafStore) find(ctx context.Context) (int64, error) {
	nodes, err := ls.ensemble.list(ctx, ls.path, func(name string) bool {
		address, _, ok := leafNumber(name)
		return ok && address == ls.address()
	})
	best, latest := int64(-1), int64(0)
	for _, n := range nodes {
		_, id, _ := leafNumber(n.name)
		if best < 0 || n.stat.Mtime > latest || n.stat.Mtime == latest && id < best {
			best, latest = id, n.stat.Mtime
		}
	}
	return best, err
}

// CompareAndSet replaces the record, unless a running Leaf server writes the node. It creates no
// node, because ZooKeeper assigns their numbers.
func (ls *leafStore) CompareAndSet(ctx context.Context, workerID int64, prev, next workerid.Record) (bool, error) {
	found, n, err := ls.get(ctx, workerID)
	if err != nil || n.stat == nil || !found.Same(prev) {
		return false, err
	}
	if isLeafs(found) {
		// Use the ensemble's clock, because the Leaf server's clock may be wrong.
		now, err := ls.now(ctx)
		if err != nil || now.Sub(time.UnixMilli(n.stat.Mtime)) < ls.grace {
			return false, err
		}
	}
	return ls.ensemble.set(ctx, ls.node(workerID), ls.text(next), n.stat.Version)
}

// leafGrace is how much later than its last report the keys of a Leaf server may be.
// It reports every 3 s, and a report takes some time.
const leafGrace = 5 * time.Second

// leafLayout keeps a record in Leaf's node of an address.
type leafLayout struct {
	report leafReport // with the address
	grace  time.Duration
}

// leafReport is the JSON that Leaf writes to its node.
type leafReport struct {
	IP        string `json:"ip"`
	Port      string `json:"port"`
	Timestamp int64  `json:"timestamp"`
}

func (ll leafLayout) address() string { return net.JoinHostPort(ll.report.IP, ll.report.Port) }

func (ll leafLayout) name(workerID int64) string {
	return fmt.Sprintf("%s-%010d", ll.address(), workerID)
}

// workerID returns the number of a node of any address.
func (leafLayout) workerID(name string) (int64, bool) {
	_, id, ok := leafNumber(name)
	return id, ok
}

// leafNumber parses a node's name, <ip>:<port>-NNNNNNNNNN.
func leafNumber(name string) (address string, workerID int64, ok bool) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return "", 0, false
	}
	n, err := strconv.ParseInt(name[i+1:], 10, 32)
	return name[:i], n, err == nil && n >= 0
}

// text returns Leaf's report, followed by our record. Leaf's JSON parser stops after the report.
func (ll leafLayout) text(r workerid.Record) []byte {
	ll.report.Timestamp = r.ReservedUntil
	if r.FreeFrom > 0 {
		ll.report.Timestamp = r.FreeFrom
	}
	text, err := json.Marshal(ll.report)
	if err != nil {
		return nil // can't happen: strings and integers always marshal
	}
	if r.IsZero() {
		return text
	}
	return append(append(text, '\n'), r.Text()...)
}

// parse parses data that a Leaf server or shardkey wrote.
//
// It converts a Leaf server's report to a record, whose lease ends shortly after the report. The
// record's token is the node's version, because no two reports have the same version.
func (ll leafLayout) parse(workerID int64, n node) (workerid.Record, error) {
	foreign := func(format string, args ...any) (workerid.Record, error) {
		err := fmt.Errorf("the node doesn't contain Leaf's JSON: "+format, args...)
		return workerid.Record{}, &workerid.ForeignRecordError{WorkerID: workerID, Value: string(n.data), Err: err}
	}
	var report leafReport
	d := json.NewDecoder(bytes.NewReader(n.data))
	if err := d.Decode(&report); err != nil {
		return foreign("%w", err)
	}
	switch rest := strings.TrimSpace(string(n.data[d.InputOffset():])); {
	case rest != "":
		return workerid.ParseRecord(workerID, rest)
	case report.Timestamp < 0 || report.IP == "":
		return foreign("wrong ip or timestamp")
	case report.Timestamp == 0: // written by shardkey
		return workerid.Record{}, nil
	}
	return workerid.Record{
		Owner:         leafOwner + strconv.Itoa(int(n.stat.Version)),
		ReservedUntil: report.Timestamp + ll.grace.Milliseconds(),
		Holder:        "a Leaf server at " + report.IP + ":" + report.Port,
		Since:         report.Timestamp,
	}, nil
}

const leafOwner = "leaf-"

func isLeafs(r workerid.Record) bool { return strings.HasPrefix(r.Owner, leafOwner) }
