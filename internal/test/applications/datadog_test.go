package applications

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

const datadog = "github.com/DataDog/dd-trace-go/contrib/database/sql/v2"

// TestDatadog runs TestWrappers of examples/otherorms with dd-trace-go, which would add 80 modules to
// the examples' go.mod.
func TestDatadog(t *testing.T) {
	skipUnlessSet(t)
	if !regexp.MustCompile(*only).MatchString(datadog) {
		t.Skip("not selected")
	}
	examples := must.Get(filepath.Abs(filepath.Join(root, "examples")))(t)
	source := must.Get(filepath.Abs("testdata/datadog.go.txt"))(t)
	temp := t.TempDir()
	mod, overlay := filepath.Join(temp, "go.mod"), filepath.Join(temp, "overlay.json")
	replaced := must.Get(json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(examples, "otherorms", "datadog_test.go"): source}}))(t)
	write(t, overlay, string(replaced))
	for _, name := range []string{"go.mod", "go.sum"} {
		write(t, filepath.Join(temp, name), read(t, filepath.Join(examples, name)))
	}
	edit := []string{"mod", "edit", "-require=" + datadog + "@v2.3.0",
		"-require=go.opentelemetry.io/contrib/bridges/otelzap@v0.21.0"} // as new as the examples' OpenTelemetry
	ours := runWith(t, os.Environ(), root, "go", "list", "-m", "-f", "-replace={{.Path}}={{.Dir}}") // in go.work
	run(t, temp, "go", append(append(edit, strings.Fields(ours)...), mod)...)
	out := run(t, examples, "nice", "-n", "5", "go", "test", "-vet=off", "-count=1", "-v",
		"-modfile="+mod, "-overlay="+overlay, "-run=TestWrappers$", "./otherorms")
	for _, name := range []string{"dd-trace-go", "dd-trace-go_with_comments"} {
		if !strings.Contains(out, "--- PASS: TestWrappers/mysql/"+name+" ") {
			t.Errorf("%s\nhave: %s\nwant: a passed test", name, out)
		}
	}
}
