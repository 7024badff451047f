package engines

import (
	"os"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

func TestVTCombo_isOfItsModulesVersion(t *testing.T) {
	text := must.Get(os.ReadFile("vtcombo/go.mod"))(t)
	must.Contain(t, string(text), "\tvitess.io/vitess "+vitessVersion+" //")
}
