package workeridtest_test

import (
	"testing"

	"github.com/shardkey/shardkey/keygen/internal/workeridtest"
	"github.com/shardkey/shardkey/keygen/workerid"
)

func TestMemory_conforms(t *testing.T) {
	workeridtest.TestStore(t, func(testing.TB) func() workerid.Store {
		return new(workeridtest.Memory).Open
	})
}
