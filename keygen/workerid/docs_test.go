package workerid_test

import (
	"os"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/keygen/workerid"
)

// The page for operators shows the statement that errors show.
func TestTableDDL_isInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/worker-ids.md")
	if err != nil {
		t.Fatal(err)
	}
	if ddl := workerid.TableDDL("`shardkey_worker`"); !strings.Contains(string(page), ddl) {
		t.Errorf("docs/worker-ids.md lacks\n%s", ddl)
	}
}
