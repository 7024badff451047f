//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package workerid

import (
	"errors"
	"os"
)

const openPlain = 0

func isOddFile(error) bool { return false }

// errNoFlock is the error of each change of a FILE store.
var errNoFlock = errors.New("worker IDs of type FILE need flock, which this system doesn't have; use SQL or another assigner")

func flock(*os.File) error { return errNoFlock }
