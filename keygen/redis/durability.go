package redis

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// settings are those of a server that say whether it keeps what it confirms.
type settings struct {
	config  map[string]string // of CONFIG GET
	info    map[string]string // of INFO replication
	refused error             // why they are not all known
}

// lookAtSettings asks the server for its settings with each List, which comes when a
// worker id is taken, keeps what is wrong for Health, and logs what is new.
func (s *store) lookAtSettings(ctx context.Context) {
	found, err := do(ctx, s.server, func(ctx context.Context, c goredis.UniversalClient) (settings, error) {
		return askSettings(ctx, c, s.key), nil
	})
	if err != nil || ctx.Err() != nil {
		return // the List itself says so
	}
	warnings := found.warnings(s.server.addr)
	s.mu.Lock()
	before := s.warnings
	s.warnings = warnings
	s.mu.Unlock()
	for _, w := range warnings {
		if !slices.Contains(before, w) {
			s.logger.Warn("shardkey: the server of worker ids may forget them", "server", s.server.addr, "warning", w)
		}
	}
}

// Warnings says how the server may forget leases.
func (s *store) Warnings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.warnings)
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
