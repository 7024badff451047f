package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

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
			"permit +config|get and +info to the user, and see docs/reference/generators.md for the required settings", found.refused)
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
