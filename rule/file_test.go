package rule_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/shardkey/shardkey/rule"
)

func TestLoad_sharesRules(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rule.yaml")
	text := oneTable("t_${0..3}", "{type: UUID}")
	first := writeRule(t, path, text)
	if mustLoad(t, path) != first {
		t.Error("have: another rule of the same content\nwant: the same")
	}
	if writeRule(t, path, text+"# a comment\n") == first {
		t.Error("have: the same rule of another content")
	}
	t.Chdir(filepath.Dir(path))
	if r := mustLoad(t, "rule.yaml"); r.Name() != "rule.yaml" {
		t.Errorf("have: the name %s of another path\nwant: rule.yaml", r.Name())
	}
	if r := mustParse(t, text); r == mustParse(t, text) {
		t.Error("have: Parse returned a rule twice, so its connectors share generators")
	}
	unused := weak.Make(first)
	runtime.KeepAlive(first)
	first = nil
	runtime.GC()
	if unused.Value() != nil {
		t.Error("have: a rule that nothing uses")
	}
}

func TestLoad_variables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rule.yaml")
	t.Setenv("SHARDKEY_TEST_WORKER", "3")
	first := writeRule(t, path, oneTable("t", `{type: SNOWFLAKE, props: {worker-id: "${SHARDKEY_TEST_WORKER}", password: "${SHARDKEY_TEST_NONE::a}"}}`))
	if mustLoad(t, path) != first {
		t.Error("have: another rule with the same variables")
	}
	t.Setenv("SHARDKEY_TEST_WORKER", "4")
	second := mustLoad(t, path)
	if second == first {
		t.Error("have: the rule with the variable's earlier value")
	}
	t.Setenv("SHARDKEY_TEST_NONE", "a") // the default's value, but set
	if mustLoad(t, path) == second {
		t.Error("have: the rule without the variable")
	}
}

// Files that could block their reader, or never end, are errors.
func TestLoad_refusesOtherFiles(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link.yaml")
	if err := os.Symlink("/dev/zero", link); err != nil || runtime.GOOS == "windows" {
		t.Skip("there is no /dev/zero")
	}
	long := filepath.Join(dir, "long.yaml")
	f, err := os.Create(long)
	if err == nil {
		err = f.Truncate(64<<20 + 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	for path, want := range map[string]string{
		link: "expected a regular file, found a device", dir: "found a directory", long: "longer than 67108864 bytes",
	} {
		if _, err := rule.Load(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nhave: %v\nwant: %s", path, err, want)
		}
	}
}

func TestLoad_warnsOfWriters(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has other permissions")
	}
	path := filepath.Join(t.TempDir(), "rule.yaml")
	writeRule(t, path, oneTable("t", "{type: UUID}"))
	for _, c := range []struct {
		mode os.FileMode
		want []string
	}{
		{0o644, nil}, {0o666, []string{"every user can write the file"}}, {0o664, []string{"the users of its group can write"}}, {0o600, nil},
	} {
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		expectWarnings(t, mustLoad(t, path), c.want)
	}
}
