//go:build unix

package redis

import (
	"os"
	"testing"
	"time"

	"github.com/shardkey/shardkey/keygen/internal/manyproc"
)

func TestMain(m *testing.M) {
	manyproc.Child()
	os.Exit(m.Run())
}

// The server keeps nothing over its restarts: keys must not need it to.
// SHARDKEY_SOAK=10m in the environment makes it last as long.
func TestManyProcesses(t *testing.T) {
	s := start(t, "--appendonly", "no")
	manyproc.Run(t, manyproc.Config{
		Type: "REDIS", Server: s, Processes: 4, Duration: 3 * time.Second, Stop: 500 * time.Millisecond,
		Props: func(int) map[string]any {
			return map[string]any{"addr": s.Addr(), "timeout": "300ms"}
		},
	})
}
