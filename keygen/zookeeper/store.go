package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/spi"
)

func init() {
	spi.RegisterWorkerIDAssigner("ZOOKEEPER", func(p spi.Props) (spi.WorkerIDAssigner, error) {
		e, err := newEnsemble(p, "servers")
		if err != nil {
			return nil, err
		}
		path := p.String("path", defaultPath)
		if err := checkPath(path); err != nil {
			return nil, p.Wrong("path", err.Error())
		}
		return workerid.NewAssigner(p, func(namespace string) (workerid.Store, workerid.Info, error) {
			s := newStore(e, path, namespace)
			return s, s.info(), nil
		})
	})
}

// defaultPath is the node below which the records are.
const defaultPath = "/shardkey"

// store keeps each record in a node of its own.
type store struct {
	ensemble *ensemble
	path     string // with the namespace
}

// newStore keeps worker-id records in the nodes <path>/<namespace>/<worker id>.
func newStore(e *ensemble, path, namespace string) *store {
	return &store{ensemble: e, path: path + "/" + namespace}
}

// checkPath wants a path of ZooKeeper's that is not the root.
func checkPath(path string) error {
	for i, part := range strings.Split(path, "/") {
		if (part == "") != (i == 0) || part == "." || part == ".." || path == "" {
			return errors.New("the path of a node, as /shardkey/workers")
		}
	}
	return nil
}

func (s *store) info() workerid.Info {
	return workerid.Info{Name: fmt.Sprintf("ZOOKEEPER %s %s", s.ensemble.name(), s.path), Now: s.now, NowWrites: true}
}

func (s *store) Close() error { return s.ensemble.Close() }

func (s *store) node(workerID int64) string {
	return s.path + "/" + strconv.FormatInt(workerID, 10)
}

// now is the ensemble's clock.
func (s *store) now(ctx context.Context) (time.Time, error) { return s.ensemble.now(ctx, s.path) }

func (s *store) List(ctx context.Context) ([]workerid.Entry, error) {
	names, err := s.ensemble.children(ctx, s.path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		id, err := strconv.ParseInt(name, 10, 64)
		return err != nil || strconv.FormatInt(id, 10) != name // nothing that a worker id could meet
	})
	nodes, err := s.ensemble.getAll(ctx, s.path, names)
	if err != nil {
		return nil, err
	}
	var entries []workerid.Entry
	for i, n := range nodes {
		if n != nil {
			id, _ := strconv.ParseInt(names[i], 10, 64)
			r, err := workerid.ParseRecord(id, string(n.data))
			entries = append(entries, workerid.Entry{WorkerID: id, Record: r, Err: err})
		}
	}
	return entries, nil
}

func (s *store) Get(ctx context.Context, workerID int64) (workerid.Record, error) {
	r, _, err := s.get(ctx, workerID)
	return r, err
}

// get reads a record and its node's version; -1 for no node.
func (s *store) get(ctx context.Context, workerID int64) (workerid.Record, int32, error) {
	n, err := s.ensemble.get(ctx, s.node(workerID))
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return workerid.Record{}, -1, nil
	case err != nil:
		return workerid.Record{}, 0, err
	}
	r, err := workerid.ParseRecord(workerID, string(n.data))
	return r, n.stat.Version, err
}

func (s *store) CompareAndSet(ctx context.Context, workerID int64, prev, next workerid.Record) (bool, error) {
	found, version, err := s.get(ctx, workerID)
	if err != nil || !found.Same(prev) {
		return false, err
	}
	data := []byte(next.Text())
	if version >= 0 {
		return s.ensemble.set(ctx, s.node(workerID), data, version)
	}
	_, made, err := s.ensemble.create(ctx, s.node(workerID), data, 0)
	return made, err
}
