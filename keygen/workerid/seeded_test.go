package workerid

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

// seededRule is a bug in one of the rules. The package is built with the code of all bugs, each
// behind a test of its name.
type seededRule struct {
	name string
	file string
	at   string // the code is inserted after this line of the file
	code string
	kind kind
}

var seededRules = []seededRule{
	{"reserved_until may fall", "rules.go", "func raised(prev Record, want int64) int64 {", "return want", kind{}},
	{"successor starts at its clock", "rules.go", "func floorAfter(prev Record, now int64, length time.Duration) int64 {",
		"return now", kind{}},
	{"successor starts one too early", "rules.go", "func floorAfter(prev Record, now int64, length time.Duration) int64 {",
		"if prev.FreeFrom != neverHeld { return prev.start() - 1 }", kind{}},
	{"no record means never used", "rules.go", "func floorAfter(prev Record, now int64, length time.Duration) int64 {",
		"if prev.FreeFrom == neverHeld { return now }", kind{removals: true}},
	{"no record, one lease ahead and one too early", "rules.go", "func floorAfter(prev Record, now int64, length time.Duration) int64 {",
		"if prev.FreeFrom == neverHeld { return now + length.Milliseconds() - 2 }", kind{removals: true}},
	{"the first record is a lease", "acquire.go",
		"		c.Record = Record{Owner: newToken(), ReservedUntil: a.now(), FreeFrom: neverHeld, Holder: a.holder, Since: a.now()}",
		"c.Record.FreeFrom += a.now() + a.length().Milliseconds()", kind{removals: true}},
	{"a lease that starts ahead reserves from there", "lease.go", "	now, length := l.assigner.now(), l.assigner.length().Milliseconds()",
		"return max(until, now) + length", kind{removals: true}},
	{"lost answer counts as written", "rules.go", "func confirmed(swapped bool, err error) bool {", "return swapped || err != nil", kind{}},
	{"what the store shows counts as kept", "lease.go", "		l.newest, l.attempts = found, nil", "l.grow(found.ReservedUntil)", kind{crashes: true}},
	{"any record is mine", "rules.go", "func isOwn(found, newest Record, attempts []string) bool {", "return true", kind{}},
	{"last used is free", "rules.go", "func freeFrom(floor, limit, lastUsed int64) int64 {", "return max(floor, lastUsed)", kind{}},
	{"unused lease frees what came before it", "rules.go", "func freeFrom(floor, limit, lastUsed int64) int64 {",
		"return max(lastUsed+1, floor-50)", kind{}},
	{"close frees what may be used", "rules.go", "func freeFrom(floor, limit, lastUsed int64) int64 {", "lastUsed = max(0, lastUsed)", kind{}},

	{"only the own lease counts", "failover.go", "func (a *assigner) longest() time.Duration {", "return a.config.Lease", kind{failovers: true}},
	{"a longer lease is used as soon as it is noted", "rules.go", "func (n leaseLengths) settled(now int64) time.Duration {",
		"return n.longest", kind{failovers: true}},
	{"a lease that ran out is renewed on any server", "failover.go", "func (l *lease) mayBeOthers() bool {", "return false", kind{failovers: true}},
}

// The simulation must find duplicates when a rule is broken. Otherwise it proves nothing. The rules
// are plain code, so the bugs are added to copies of its files, and this package is built with
// those.
func TestSimulation_findsSeededRules(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	dir := t.TempDir()
	replaced := map[string]string{}
	for name, end := range map[string]string{"rules.go": "\nvar seeded string\n", "lease.go": "", "failover.go": "", "acquire.go": ""} {
		path := must.Get(filepath.Abs(name))(t)
		text := must.Get(os.ReadFile(path))(t)
		replaced[path] = filepath.Join(dir, name)
		writeText(t, replaced[path], seed(t, name, string(text))+end)
	}
	overlay := must.Get(json.Marshal(map[string]any{"Replace": replaced}))(t)
	writeText(t, filepath.Join(dir, "overlay.json"), string(overlay))
	args := []string{"test", "-tags", "seeded", "-overlay", filepath.Join(dir, "overlay.json"), "-v", "-run", "^TestSimulation_seededRules$"}
	if raceEnabled() || testing.Short() {
		args = append(args, "-short")
	}
	out, err := exec.Command("go", args...).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

func writeText(t *testing.T, name, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(name, []byte(text), 0o600))
}

// seed returns the text of a file with the code of its bugs.
func seed(t *testing.T, file, text string) string {
	t.Helper()
	for _, b := range seededRules {
		if b.file != file {
			continue
		}
		if strings.Count(text, b.at+"\n") != 1 {
			t.Fatalf("%s has no single line %q for %q", b.file, b.at, b.name)
		}
		text = strings.Replace(text, b.at+"\n", fmt.Sprintf("%s\nif seeded == %q {\n%s\n}\n", b.at, b.name, b.code), 1)
	}
	return text
}
