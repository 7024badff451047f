package testserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// MissingError reports that a server's program is not installed.
type MissingError struct {
	Program, Remedy string
	Env             string // names a server in its place; may be empty
}

func (e *MissingError) Error() string {
	text := e.Program + " is not there: " + e.Remedy
	if e.Env != "" {
		text += ", or set " + e.Env + " to one that tests may use"
	}
	return text
}

// NotInstalled reports whether an error says that a server's program is not there.
func NotInstalled(err error) bool {
	var m *MissingError
	return errors.As(err, &m)
}

// usesOther reports whether a program is not installed and the environment
// names a server elsewhere in its place.
func usesOther(err error) bool {
	var m *MissingError
	return errors.As(err, &m) && os.Getenv(m.Env) != ""
}

// Program finds a program on the PATH or where Debian keeps servers, which is
// not on every user's PATH.
func Program(name, debian, env string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin"} {
		if path := filepath.Join(dir, name); executable(path) {
			return path, nil
		}
	}
	return "", &MissingError{Program: name, Remedy: "apt-get install " + debian, Env: env}
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&0o111 != 0
}

// installation is a SQL server's program and files: those that .ci/fetch-server
// has put into the cache, or the system's own.
type installation struct {
	root    string   // its directory in the cache, "" for the system's own
	command []string // what starts it
}

// cacheDir makes and returns the directory with what outlasts a run of tests.
func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "shardkey", "servers")
	return dir, os.MkdirAll(dir, 0o755)
}

// installed finds the product: in the cache first, then on the system where
// that has the same series.
func (p *product) installed() (*installation, error) {
	if in := cached(p); in != nil {
		return in, nil
	}
	path, err := Program(p.program, "", envDSN)
	if err == nil {
		version, err := exec.Command(path, "--no-defaults", "--version").Output()
		if err == nil && strings.Contains(string(version), "Ver "+p.series+".") {
			return &installation{command: []string{path}}, nil
		}
	}
	return nil, &MissingError{Program: string(p.kind) + " " + p.series, Remedy: "make servers fetches it (Debian)", Env: envDSN}
}

// cached returns the product out of the cache, or nil. Its libraries are not
// the system's, so that the loader among them starts it. If there is none, the
// libraries that it lacks are the system's.
func cached(p *product) *installation {
	cache, err := cacheDir()
	if err != nil {
		return nil
	}
	root := filepath.Join(cache, strings.ToLower(string(p.kind))+"-"+p.series)
	path := filepath.Join(root, "usr/sbin", p.program)
	loaders, _ := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu*/ld-linux*.so.*"))
	if len(loaders) == 0 { // Debian 12 keeps them outside of /usr
		loaders, _ = filepath.Glob(filepath.Join(root, "lib/*-linux-gnu*/ld-linux*.so.*"))
	}
	if len(loaders) == 0 {
		loaders, _ = filepath.Glob("/lib64/ld-linux*.so.*")
	}
	if len(loaders) == 0 || !executable(path) {
		return nil
	}
	triplet := filepath.Base(filepath.Dir(loaders[0]))
	var dirs []string
	for _, dir := range []string{"lib", "usr/lib"} {
		dirs = append(dirs, filepath.Join(root, dir, triplet), filepath.Join(root, dir, triplet, "mysql"))
	}
	dirs = append(dirs, filepath.Join(root, "usr/lib/mysql/private"))
	return &installation{root: root, command: []string{loaders[0], "--library-path", strings.Join(dirs, ":"), path}}
}

// program is the server's program.
func (in *installation) program() string { return in.command[len(in.command)-1] }

// share is where the server's messages and system tables are.
func (in *installation) share() string {
	if dir := filepath.Join(in.root, "/usr/share/mariadb"); executable(dir) {
		return dir
	}
	return filepath.Join(in.root, "/usr/share/mysql")
}

// args are the arguments that say where the installation is.
func (in *installation) args() []string {
	args := []string{"--no-defaults"}
	if os.Getuid() == 0 {
		args = append(args, "--user=root") // which it wants to hear before it runs as root
	}
	if in.root != "" {
		args = append(args, "--basedir="+filepath.Join(in.root, "usr"), "--lc-messages-dir="+in.share(),
			"--plugin-dir="+filepath.Join(in.root, "usr/lib/mysql/plugin"))
	}
	return args
}

func (in *installation) cmd(args ...string) *exec.Cmd {
	return exec.Command(in.command[0], append(in.command[1:len(in.command):len(in.command)], args...)...)
}

// run runs the server until it ends, with what it reads.
func (in *installation) run(input string, args ...string) error {
	cmd := in.cmd(args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(in.program()), err, out)
	}
	return nil
}
