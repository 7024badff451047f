// Command build builds what the tests start and no distribution has as a package, into
// the cache: Vitess' vtcombo. It does nothing when that is there.
package main

import (
	"fmt"
	"os"

	"github.com/shardkey/shardkey/internal/testserver"
)

func main() {
	if _, err := testserver.BuildVTCombo(os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}
