// Package shardingtest makes sets of keys for tests.
package shardingtest

import (
	"github.com/shardkey/shardkey/internal/groovy"
	"github.com/shardkey/shardkey/internal/sharding"
)

// Mod returns the keys whose remainder by m is r.
func Mod(m, r int64) *sharding.Fit {
	return sharding.NewFit(func(key int64) bool { return key%m == r },
		sharding.KeyUse{Period: groovy.Period{Mod: m, Max: 1<<63 - 1}})
}

// Hash returns the keys that HASH_MOD with m puts into table r.
func Hash(m, r int64) *sharding.Fit {
	return sharding.NewFit(func(key int64) bool {
		h := int64(int32(key ^ key>>32))
		return max(h, -h)%m == r
	}, sharding.KeyUse{HashCount: m})
}

// Func returns the keys of which has is true.
func Func(has func(key int64) bool) *sharding.Fit { return sharding.NewFit(has, sharding.KeyUse{}) }
