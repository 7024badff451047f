// An application that has no TiDB parser of its own.
package main

import "github.com/shardkey/shardkey/internal/tidb/testdata/apps/show"

func main() { show.Check() }
