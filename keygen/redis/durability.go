package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// settings are those of a server that say whether it keeps what it confirms.
type settings struct {
	config  map[string]string // of CONFIG GET
	info    map[string]string // of INFO replication
	refused error             // why they are not all known
}

// warnings returns the settings with which the server may forget leases.
func (s *store) warnings(ctx context.Context) ([]string, error) {
	found, err := do(ctx, s.server, func(ctx context.Context, c goredis.UniversalClient) (settings, error) {
		return askSettings(ctx, c, s.key), nil
	})
	if err = errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	return found.warnings(s.server.addr), nil
}

// askSettings asks the server that has the key. Servers that are run for others
// often refuse CONFIG.
func askSettings(ctx context.Context, c goredis.UniversalClient, key string) settings {
	var node goredis.Cmdable = c
	if cluster, ok := c.(*goredis.ClusterClient); ok {
		master, err := cluster.MasterForKey(ctx, key)
		if err != nil {
			return settings{refused: err}
		}
		node = master
	}
	found := settings{config: map[string]string{}}
	for _, pattern := range []string{"append*", "maxmemory*"} {
		config, err := node.ConfigGet(ctx, pattern).Result()
		if err != nil {
			found.refused = err
		}
		maps.Copy(found.config, config)
	}
	text, err := node.Info(ctx, "replication").Result()
	if err != nil {
		found.refused = err
	}
	found.info = map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			found.info[name] = value
		}
	}
	return found
}

// warnings says what is wrong with the settings that are known.
func (f settings) warnings(addr string) []string {
	var all []string
	warn := func(format string, args ...any) {
		all = append(all, fmt.Sprintf("worker-id leases in the Redis at %s: ", addr)+fmt.Sprintf(format, args...))
	}
	c := f.config
	if c["appendonly"] != "" && (c["appendonly"] != "yes" || c["appendfsync"] != "always") {
		warn("it can forget them when it restarts, and keys repeat (appendonly %s, appendfsync %s): set appendonly yes and appendfsync always",
			c["appendonly"], c["appendfsync"])
	}
	if policy := c["maxmemory-policy"]; strings.HasPrefix(policy, "allkeys-") && c["maxmemory"] != "0" {
		warn("it can evict them to make room for other data, and keys repeat (maxmemory %s, maxmemory-policy %s): set maxmemory-policy noeviction, or use a server of their own",
			c["maxmemory"], policy)
	}
	if n := f.info["connected_slaves"]; n != "" && n != "0" {
		warn("it has %s replicas, which lack its last writes: when one is made primary, leases are forgotten and keys repeat: have no automatic failover, or keep leases in SQL, ETCD or ZOOKEEPER", n)
	}
	if f.refused != nil {
		warn("whether it keeps them could not be seen (%v): allow the user +config|get and +info, or see to the settings in docs/redis.md", f.refused)
	}
	return all
}
