package rule_test

import (
	"os"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
)

// TestDocs_rulesLoad parses the rule files in docs/reference/rule-files.md.
func TestDocs_rulesLoad(t *testing.T) {
	text := must.Get(os.ReadFile("../docs/reference/rule-files.md"))(t)
	_, after, _ := strings.Cut(string(text), "```yaml\n")
	file, _, ok := strings.Cut(after, "```")
	// Replace the types that this package's tests don't register; see fakes_test.go.
	file = strings.ReplaceAll(strings.ReplaceAll(file, "type: SQL", "type: FILE"), `dsn: "app:secret@tcp(db:3306)/ids", namespace: shop`, "path: /tmp")
	r, err := rule.Parse("rule.yaml", []byte(file))
	if !ok || err != nil || len(r.Warnings()) > 0 {
		t.Errorf("%s\nhave: %v, %v\nwant: a rule without warnings", file, r, err)
	}
}

// TestDocs_shardingIsUnderstood parses the rule files in the pages about sharding.
func TestDocs_shardingIsUnderstood(t *testing.T) {
	var files []string
	for _, path := range []string{"../docs/guides/shards.md", "../docs/reference/sharding.md"} {
		text := must.Get(os.ReadFile(path))(t)
		files = append(files, strings.Split(string(text), "```yaml\n")[1:]...)
	}
	for _, file := range files {
		file, _, _ = strings.Cut(file, "```")
		file = strings.Replace(file, "SNOWFLAKE, props: {worker-id: 17, gene", "UNSEEN, props: {gene", 1) // registered by this package's tests
		r, err := rule.Parse("rule.yaml", []byte(file))
		if err != nil || len(r.Warnings()) > 0 || r.Tables()[0].Sharding.Err != nil {
			t.Errorf("%s\nhave: %v, %v\nwant: a rule that is understood", file, r, err)
		}
	}
	if len(files) != 6 {
		t.Errorf("have: %d files\nwant: 6", len(files))
	}
}
