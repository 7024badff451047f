package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// TestTutorial_files compares the files that docs/start/tutorial.md shows with those of this directory.
func TestTutorial_files(t *testing.T) {
	page := string(must.Get(os.ReadFile("../../docs/start/tutorial.md"))(t))
	shown := regexp.MustCompile("(?ms)^`([\\w.]+)`.*?^```\\w+\n(.*?)^```").FindAllStringSubmatch(page, -1)
	for _, m := range shown {
		must.Equal(t, m[2], string(must.Get(os.ReadFile(m[1]))(t)), m[1])
	}
	must.Equal(t, len(shown), 5, "files of the page")
}

// TestTutorial_compose compares the ports of compose.yaml with those of the page's DSNs.
func TestTutorial_compose(t *testing.T) {
	page := string(must.Get(os.ReadFile("../../docs/start/tutorial.md"))(t))
	var compose struct {
		Services map[string]struct {
			Ports       []string
			Environment map[string]string
		}
	}
	must.Do(t, yaml.Unmarshal(must.Get(os.ReadFile("compose.yaml"))(t), &compose))
	must.Equal(t, len(compose.Services), 2, "services")
	for name, s := range compose.Services {
		port, _, _ := strings.Cut(s.Ports[0], ":")
		dsn := "root:" + s.Environment["MYSQL_ROOT_PASSWORD"] + "@tcp(127.0.0.1:" + port + ")/" + s.Environment["MYSQL_DATABASE"]
		must.Contain(t, page, dsn, name)
	}
}

// TestTutorial_run runs the program twice with two databases.
func TestTutorial_run(t *testing.T) {
	if testserver.Each(t, TestTutorial_run) {
		return
	}
	program := filepath.Join(t.TempDir(), "shop")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	dsns := []string{testserver.Database(t), testserver.Database(t)}
	for _, dsn := range dsns {
		must.Get(must.Open(t, "mysql", dsn).Exec(string(must.Get(os.ReadFile("schema.sql"))(t))))(t)
	}
	seen := map[string]bool{}
	for range 2 {
		cmd := exec.CommandContext(t.Context(), program, dsns...)
		cmd.Env = append(os.Environ(), "SHOP_STORE="+dsns[0])
		out, err := cmd.Output() // the log is on standard error
		must.Do(t, err)
		for _, m := range regexp.MustCompile(`(?m)^user \d, database \d, order (\d{18,19})$`).FindAllStringSubmatch(string(out), -1) {
			seen[m[1]] = true
		}
	}
	must.Equal(t, len(seen), 8, "keys")
}
