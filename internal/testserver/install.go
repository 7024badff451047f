package testserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// missingError says that a server's program is not installed.
type missingError struct {
	program, debian, env string
}

func (e *missingError) Error() string {
	return fmt.Sprintf("%s is not installed: apt-get install %s, or set %s to a server for tests", e.program, e.debian, e.env)
}

func notInstalled(err error) bool {
	var m *missingError
	return errors.As(err, &m)
}

// usesOther tells whether a program is not installed and the environment names
// a server elsewhere in its place.
func usesOther(err error) bool {
	var m *missingError
	return errors.As(err, &m) && os.Getenv(m.env) != ""
}

// program finds a program on the PATH or where Debian keeps servers, which is
// not on every user's PATH.
func program(name, debian, env string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin"} {
		if path := filepath.Join(dir, name); executable(path) {
			return path, nil
		}
	}
	return "", &missingError{program: name, debian: debian, env: env}
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&0o111 != 0
}
