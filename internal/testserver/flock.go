package testserver

import (
	"runtime"
	"testing"
)

// NeedsFlock skips a test that leases worker IDs of type FILE on a system without flock.
func NeedsFlock(t testing.TB) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("FILE worker IDs need flock, which Windows doesn't have")
	}
}
