package engines

import (
	"os"
	"strings"
	"testing"
)

func TestVTCombo_isOfItsModulesVersion(t *testing.T) {
	text, err := os.ReadFile("vtcombo/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "\tvitess.io/vitess " + vitessVersion + " //"; !strings.Contains(string(text), want) {
		t.Errorf("vtcombo/go.mod has no %q", want)
	}
}
