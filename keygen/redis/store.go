package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/spi"
)

func init() {
	spi.RegisterWorkerIDAssigner("REDIS", func(p spi.Props) (spi.WorkerIDAssigner, error) {
		return workerid.NewAssigner(p, stores(p))
	})
}

// stores returns a function that returns the store of a namespace.
func stores(p spi.Props) func(namespace string) (workerid.Store, workerid.Info, error) {
	return func(namespace string) (workerid.Store, workerid.Info, error) {
		server, err := newServer(p)
		if err != nil {
			return nil, workerid.Info{}, err
		}
		s := newStore(server, namespace)
		return s, s.info(), nil
	}
}

// store keeps the records of a namespace in one hash. A field is a worker ID, and its value is the
// record in JSON.
type store struct {
	server *server
	key    string
}

// newStore returns a store of worker-ID records in the hash namespace:{workers}. The server must
// not lose acknowledged writes; see warnings.
func newStore(server *server, namespace string) *store {
	// Don't retry a compare-and-set. If the first attempt was applied, the second one would return
	// false.
	server.retries = -1
	return &store{server: server, key: namespace + ":{workers}"}
}

func (s *store) info() workerid.Info {
	return workerid.Info{
		Name: fmt.Sprintf("REDIS %s db %d %s", s.server.addr, s.server.db, s.key),
		Now:  s.now, Warnings: s.warnings,
	}
}

func (s *store) Close() error { return s.server.Close() }

func (s *store) now(ctx context.Context) (time.Time, error) {
	return do(ctx, s.server, func(ctx context.Context, c goredis.UniversalClient) (time.Time, error) {
		return c.Time(ctx).Result()
	})
}

func (s *store) List(ctx context.Context) ([]workerid.Entry, error) {
	texts, err := do(ctx, s.server, func(ctx context.Context, c goredis.UniversalClient) (map[string]string, error) {
		return c.HGetAll(ctx, s.key).Result()
	})
	var entries []workerid.Entry
	for field, text := range texts {
		if id, err := strconv.ParseInt(field, 10, 64); err == nil { // otherwise it isn't the field of a worker ID
			r, err := workerid.ParseRecord(id, text)
			entries = append(entries, workerid.Entry{WorkerID: id, Record: r, Err: err})
		}
	}
	return entries, s.foreign(-1, err)
}

func (s *store) Get(ctx context.Context, workerID int64) (workerid.Record, error) {
	text, err := do(ctx, s.server, func(ctx context.Context, c goredis.UniversalClient) (string, error) {
		return c.HGet(ctx, s.key, strconv.FormatInt(workerID, 10)).Result()
	})
	switch {
	case errors.Is(err, goredis.Nil):
		return workerid.Record{}, nil
	case err != nil:
		return workerid.Record{}, s.foreign(workerID, err)
	}
	return workerid.ParseRecord(workerID, text)
}

// swapScript replaces a field if it still has the value that was read. Each write has a new token,
// so equal values are the same write.
var swapScript = goredis.NewScript(`
local have = redis.call('HGET', KEYS[1], ARGV[1])
if have == '' or (have or '') ~= ARGV[2] then
	return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1`)

func (s *store) CompareAndSet(ctx context.Context, workerID int64, prev, next workerid.Record) (bool, error) {
	old := ""
	if !prev.IsZero() {
		old = prev.Text()
	}
	swapped, err := do(ctx, s.server, func(ctx context.Context, c goredis.UniversalClient) (int, error) {
		return swapScript.Run(ctx, c, []string{s.key}, workerID, old, next.Text()).Int()
	})
	return swapped == 1, s.foreign(workerID, err)
}

// foreign returns the error for a Redis key that isn't a hash.
func (s *store) foreign(workerID int64, err error) error {
	if err != nil && strings.Contains(err.Error(), "WRONGTYPE") {
		return &workerid.ForeignRecordError{WorkerID: workerID, Value: s.key, Err: errors.New("the Redis key is not a hash")}
	}
	return err
}

// settings are the settings of a server that determine whether it may lose acknowledged writes.
type settings struct {
	known   map[string]string // from CONFIG GET and INFO replication
	refused error             // error if some settings couldn't be read
}

// warnings returns the settings with which the server may lose leases.
func (s *store) warnings(ctx context.Context) ([]string, error) {
	found, err := do(ctx, s.server, func(ctx context.Context, c goredis.UniversalClient) (settings, error) {
		return askSettings(ctx, c, s.key), nil
	})
	if err = errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	var all []string
	warn := func(format string, args ...any) {
		all = append(all, fmt.Sprintf("worker-ID leases in Redis at %s: ", s.server.addr)+fmt.Sprintf(format, args...))
	}
	has := found.known
	if file, fsync := has["appendonly"], has["appendfsync"]; file != "" && (file != "yes" || fsync != "always") {
		warn("the server can lose them at a restart, and keys can repeat (appendonly %s, appendfsync %s); "+
			"set appendonly yes and appendfsync always", file, fsync)
	}
	if policy := has["maxmemory-policy"]; strings.HasPrefix(policy, "allkeys-") && has["maxmemory"] != "0" {
		warn("the server can evict them, and keys can repeat (maxmemory %s, maxmemory-policy %s); "+
			"set maxmemory-policy noeviction, or use a separate server for leases", has["maxmemory"], policy)
	}
	if n := has["connected_slaves"]; n != "" && n != "0" {
		warn("the server has %s replicas, which lack its last writes. If one becomes the primary, leases are lost and "+
			"keys can repeat; disable automatic failover, or keep leases in SQL, ETCD or ZOOKEEPER", n)
	}
	if found.refused != nil {
		warn("cannot check whether the server keeps them (%v); "+
			"permit +config|get and +info to the user, or check that appendonly is yes and appendfsync always", found.refused)
	}
	return all, nil
}

// askSettings reads the settings of the server that has the key. Managed services often refuse
// CONFIG.
func askSettings(ctx context.Context, c goredis.UniversalClient, key string) settings {
	var node goredis.Cmdable = c
	if cluster, ok := c.(*goredis.ClusterClient); ok {
		master, err := cluster.MasterForKey(ctx, key)
		if err != nil {
			return settings{refused: err}
		}
		node = master
	}
	files, err1 := node.ConfigGet(ctx, "append*").Result()
	memory, err2 := node.ConfigGet(ctx, "maxmemory*").Result()
	info, err3 := node.Info(ctx, "replication").Result()
	found := settings{known: map[string]string{}, refused: cmp.Or(err1, err2, err3)}
	maps.Copy(found.known, files)
	maps.Copy(found.known, memory)
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			found.known[name] = value
		}
	}
	return found
}
