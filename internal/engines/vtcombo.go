package engines

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/shardkey/shardkey/internal/testserver"
)

// vitessVersion is the version of Vitess' Go module, required by the go.mod in the directory
// vtcombo. v0.23.2 is release 23.0.2.
const vitessVersion = "v0.23.2"

// envVTCombo is the environment variable with the path of another vtcombo.
const envVTCombo = "SHARDKEY_TEST_VTCOMBO"

// buildVTCombo returns the path of Vitess' vtcombo. If necessary it builds vtcombo from Vitess'
// Go module, which takes two to three minutes on two cores, and writes the progress to progress.
func buildVTCombo(progress io.Writer) (path string, err error) {
	if path := os.Getenv(envVTCombo); path != "" {
		return path, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "shardkey", "servers", "vitess-"+vitessVersion)
	path = filepath.Join(dir, "vtcombo")
	if executable(path) {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	// Tests of several packages may run this in parallel. One of them builds.
	unlock, err := testserver.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if executable(path) {
		return path, nil
	}
	if err := compileVTCombo(path+".new", progress); err != nil {
		return "", &testserver.MissingError{Program: "vtcombo of Vitess " + vitessVersion, Env: envVTCombo,
			Remedy: fmt.Sprintf("it is built with Go out of its module, which failed (%v)", err)}
	}
	return path, os.Rename(path+".new", path)
}

// A file of Vitess requires a Go experiment that Go 1.26 no longer has, so a build tag replaces
// it. Dependencies of Vitess use internals of package runtime.
var vtcomboFlags = []string{"-tags=goexperiment.swissmap", "-ldflags=-s -w -checklinkname=0"}

func compileVTCombo(path string, progress io.Writer) error {
	source, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/shardkey/shardkey/internal/engines").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	args := append([]string{"build", "-v", "-o", path}, vtcomboFlags...)
	cmd := exec.Command("go", append(args, "vitess.io/vitess/go/cmd/vtcombo")...)
	cmd.Dir = filepath.Join(strings.TrimSpace(string(source)), "vtcombo")
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	output, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "building vtcombo of Vitess %s, which takes two to three minutes on two cores, once\n", vitessVersion)
	if err := cmd.Start(); err != nil {
		return err
	}
	said := follow(output, progress)
	if err := cmd.Wait(); err != nil {
		return errors.Join(err, errors.New(said))
	}
	return nil
}

// follow writes the progress of a build from time to time. It returns the other output.
func follow(output io.Reader, progress io.Writer) (said string) {
	began, shown := time.Now(), time.Now()
	modules, packages := 0, 0
	for in := bufio.NewScanner(output); in.Scan(); {
		switch line := in.Text(); {
		case strings.HasPrefix(line, "go: downloading "):
			modules++
		case strings.ContainsAny(line, " :"):
			said += line + "\n"
		default:
			packages++
		}
		if time.Since(shown) > 5*time.Second {
			shown = time.Now()
			fmt.Fprintf(progress, "%4.0f s: %d modules downloaded, %d packages compiled\n", time.Since(began).Seconds(), modules, packages)
		}
	}
	return said
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&0o111 != 0
}
