// An application whose value driver is linked in, and set before the second
// reader's first use.
package main

import (
	_ "github.com/pingcap/tidb/pkg/parser/test_driver"
	"github.com/shardkey/shardkey/internal/tidb/testdata/apps/show"
)

func main() {
	show.Values()
	show.Check()
	show.Values()
}
