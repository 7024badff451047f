//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package workerid

import (
	"errors"
	"os"
)

const openPlain = 0

func isOddFile(error) bool { return false }

func flock(*os.File) error {
	return errors.New("FILE worker IDs need a system with flock; use SQL or another assigner here")
}
