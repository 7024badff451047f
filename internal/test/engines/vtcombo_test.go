package engines

import (
	"os"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

func TestVTCombo_isOfItsModulesVersion(t *testing.T) {
	text := must.Get(os.ReadFile("vtcombo/go.mod"))(t)
	if want := "\tvitess.io/vitess " + vitessVersion + " //"; !strings.Contains(string(text), want) {
		t.Errorf("vtcombo/go.mod has no %q", want)
	}
}
