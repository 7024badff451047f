//go:build unix

package zookeeper

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/keygen/internal/manyproc"
)

func TestMain(m *testing.M) {
	manyproc.Child()
	os.Exit(m.Run())
}

// SHARDKEY_SOAK=10m in the environment makes it last as long.
func TestLeafInManyProcesses(t *testing.T) {
	s := testserver.StartZooKeeper(t)
	manyproc.Run(t, manyproc.Config{
		Type: "LEAF_SNOWFLAKE", Server: s, Processes: 4, Duration: 5 * time.Second, Stop: 2 * time.Second,
		Props: func(process int) map[string]any {
			return map[string]any{"leaf.key": "orders", "leaf.zk.list": s.Addr(), "ip": "10.1.2.3", "port": fmt.Sprint(8080 + process),
				"lease": "1s", "renew": "300ms", "session-timeout": "2s", "timeout": "1s"}
		},
	})
}
