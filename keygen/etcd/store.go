package etcd

import (
	"context"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/spi"
)

func init() {
	spi.RegisterWorkerIDAssigner("ETCD", func(p spi.Props) (spi.WorkerIDAssigner, error) {
		return workerid.NewAssigner(p, stores(p))
	})
}

// stores returns a function that returns the store of a namespace.
func stores(p spi.Props) func(namespace string) (workerid.Store, workerid.Info, error) {
	return func(namespace string) (workerid.Store, workerid.Info, error) {
		cluster, err := newCluster(p)
		if err != nil {
			return nil, workerid.Info{}, err
		}
		s := newStore(cluster, p.String("prefix", defaultPrefix), namespace)
		return s, s.info(), nil
	}
}

const defaultPrefix = "/shardkey/"

// store keeps each record under its own key.
type store struct {
	cluster *cluster
	prefix  string // ends with the namespace and a slash
}

// newStore returns a store of worker-ID records under the keys <prefix><namespace>/<worker ID>.
func newStore(c *cluster, prefix, namespace string) *store {
	return &store{cluster: c, prefix: prefix + namespace + "/"}
}

func (s *store) info() workerid.Info {
	return workerid.Info{Name: "ETCD " + s.cluster.name() + " " + s.prefix}
}

func (s *store) Close() error { return s.cluster.Close() }

func (s *store) key(workerID int64) string {
	return s.prefix + strconv.FormatInt(workerID, 10)
}

func (s *store) List(ctx context.Context) ([]workerid.Entry, error) {
	r, err := call(ctx, s.cluster, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, s.prefix, clientv3.WithPrefix())
	})
	if err != nil {
		return nil, err
	}
	var entries []workerid.Entry
	for _, kv := range r.Kvs {
		name := strings.TrimPrefix(string(kv.Key), s.prefix)
		id, err := strconv.ParseInt(name, 10, 64)
		if err != nil || s.key(id) != string(kv.Key) {
			continue // not the key of a worker ID
		}
		record, err := workerid.ParseRecord(id, string(kv.Value))
		entries = append(entries, workerid.Entry{WorkerID: id, Record: record, Err: err})
	}
	return entries, nil
}

func (s *store) Get(ctx context.Context, workerID int64) (workerid.Record, error) {
	r, _, err := s.get(ctx, workerID)
	return r, err
}

// get returns a record and its mod revision, which is 0 if there is no record.
func (s *store) get(ctx context.Context, workerID int64) (workerid.Record, int64, error) {
	r, err := call(ctx, s.cluster, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, s.key(workerID))
	})
	if err != nil || len(r.Kvs) == 0 {
		return workerid.Record{}, 0, err
	}
	record, err := workerid.ParseRecord(workerID, string(r.Kvs[0].Value))
	return record, r.Kvs[0].ModRevision, err
}

func (s *store) CompareAndSet(ctx context.Context, workerID int64, prev, next workerid.Record) (bool, error) {
	found, revision, err := s.get(ctx, workerID)
	if err != nil || !found.Same(prev) {
		return false, err
	}
	key := s.key(workerID)
	r, err := call(ctx, s.cluster, func(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
		return c.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
			Then(clientv3.OpPut(key, next.Text())).
			Commit()
	})
	return err == nil && r.Succeeded, err
}
