package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/spi"
)

func init() {
	spi.RegisterWorkerIDAssigner("ZOOKEEPER", func(p spi.Props) (spi.WorkerIDAssigner, error) {
		return workerid.NewAssigner(p, stores(p))
	})
}

// stores returns a function that returns the store of a namespace.
func stores(p spi.Props) func(namespace string) (workerid.Store, workerid.Info, error) {
	return func(namespace string) (workerid.Store, workerid.Info, error) {
		e, err := newEnsemble(p, "servers")
		if err != nil {
			return nil, workerid.Info{}, err
		}
		path := p.String("path", defaultPath)
		if err := checkPath(path); err != nil {
			return nil, workerid.Info{}, p.Wrong("path", err.Error())
		}
		s := &store{e, path + "/" + namespace, decimal{}}
		return s, s.info(), nil
	}
}

// defaultPath is the default parent node of the namespaces.
const defaultPath = "/shardkey"

// checkPath returns an error if path isn't a valid ZooKeeper path below the root.
func checkPath(path string) error {
	for i, part := range strings.Split(path, "/") {
		if (part == "") != (i == 0) || part == "." || part == ".." || path == "" {
			return errors.New("the path of a node, for example /shardkey/workers")
		}
	}
	return nil
}

// store keeps each record in its own node.
type store struct {
	ensemble *ensemble
	path     string // parent of the nodes
	layout
}

// layout determines how a node stores a record.
type layout interface {
	name(workerID int64) string
	workerID(name string) (id int64, ok bool)
	parse(workerID int64, n node) (workerid.Record, error)
	text(r workerid.Record) []byte
}

// decimal stores the record in a node named after the worker ID.
type decimal struct{}

func (decimal) name(workerID int64) string    { return strconv.FormatInt(workerID, 10) }
func (decimal) text(r workerid.Record) []byte { return []byte(r.Text()) }

func (d decimal) workerID(name string) (int64, bool) {
	id, err := strconv.ParseInt(name, 10, 64)
	return id, err == nil && d.name(id) == name
}

func (decimal) parse(workerID int64, n node) (workerid.Record, error) {
	return workerid.ParseRecord(workerID, string(n.data))
}

func (s *store) info() workerid.Info {
	return workerid.Info{Name: fmt.Sprintf("ZOOKEEPER %s %s", s.ensemble.name(), s.path), Now: s.now, NowWrites: true}
}

func (s *store) Close() error { return s.ensemble.Close() }

func (s *store) node(workerID int64) string { return s.path + "/" + s.name(workerID) }

func (s *store) now(ctx context.Context) (time.Time, error) { return s.ensemble.now(ctx, s.path) }

func (s *store) List(ctx context.Context) ([]workerid.Entry, error) {
	nodes, err := s.ensemble.list(ctx, s.path, func(name string) bool {
		_, ok := s.workerID(name)
		return ok // otherwise it isn't the node of a worker ID
	})
	var entries []workerid.Entry
	for _, n := range nodes {
		id, _ := s.workerID(n.name)
		r, err := s.parse(id, n)
		entries = append(entries, workerid.Entry{WorkerID: id, Record: r, Err: err})
	}
	return entries, err
}

func (s *store) Get(ctx context.Context, workerID int64) (workerid.Record, error) {
	r, _, err := s.get(ctx, workerID)
	return r, err
}

func (s *store) get(ctx context.Context, workerID int64) (workerid.Record, node, error) {
	n, err := s.ensemble.get(ctx, s.node(workerID))
	if err != nil || n.stat == nil {
		return workerid.Record{}, n, err
	}
	r, err := s.parse(workerID, n)
	return r, n, err
}

func (s *store) CompareAndSet(ctx context.Context, workerID int64, prev, next workerid.Record) (bool, error) {
	found, n, err := s.get(ctx, workerID)
	if err != nil || !found.Same(prev) {
		return false, err
	}
	if n.stat != nil {
		return s.ensemble.set(ctx, s.node(workerID), s.text(next), n.stat.Version)
	}
	_, made, err := s.ensemble.create(ctx, s.node(workerID), s.text(next), 0)
	return made, err
}
