//go:build !shardkey_noparser

package driver

import "github.com/shardkey/shardkey/internal/tidb"

// TiDB's parser is the second parser. The build tag shardkey_noparser leaves it out, which makes a
// program 12 MB smaller.
func init() { secondParser = tidb.Check }
