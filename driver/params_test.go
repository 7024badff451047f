package driver

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

// TestParams_areInTheDocs holds the table of docs/configuration.md to the parameters.
func TestParams_areInTheDocs(t *testing.T) {
	var table strings.Builder
	table.WriteString("| parameter | values, default first | |\n| --- | --- | --- |\n")
	for i := range params {
		p := &params[i]
		values := p.form
		if p.values != nil {
			values = "`" + strings.Join(p.values, "`, `") + "`"
		}
		table.WriteString("| `" + p.name + "` | " + values + " | " + p.about + " |\n")
	}
	const page, begin, end = "../docs/configuration.md", "-run TestParams -update -->\n", "<!-- end of parameters -->"
	text := must(os.ReadFile(page))(t)
	before, rest, found := strings.Cut(string(text), begin)
	have, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no table of parameters", page)
	}
	if have == table.String() {
		return
	}
	if !*update {
		t.Fatalf("%s is not as the parameters are; run this test with -update", page)
	}
	noError(t, os.WriteFile(page, []byte(before+begin+table.String()+end+after), 0o644))
}
