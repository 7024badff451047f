// An application whose value driver is set after the second reader's first use.
package main

import (
	_ "github.com/shardkey/shardkey/internal/tidb/testdata/apps/early"
	"github.com/shardkey/shardkey/internal/tidb/testdata/apps/show"
	_ "github.com/shardkey/shardkey/internal/tidb/testdata/apps/zdriver"
)

func main() {
	show.Values()
	show.Check()
	show.Values()
}
