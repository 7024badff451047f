package tidb_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestCheck_besideAnotherDriver runs applications that have TiDB's parser and a
// value driver of it themselves: set before the second reader's first use, after
// it, and not at all. Both readers work, and the application gets its own values.
func TestCheck_besideAnotherDriver(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	const checked = "right plan: true <nil>\nwrong plan: false\n"
	first := "*test_driver.ValueExpr of int64\n*test_driver.ValueExpr of *test_driver.MyDecimal\n" +
		strings.Repeat("*test_driver.ValueExpr of test_driver.BinaryLiteral\n", 2) + "*test_driver.ParamMarkerExpr of <nil>\n"
	last := "*zdriver.Value of int64\n*zdriver.Value of zdriver.Decimal\n*zdriver.Value of zdriver.Hex\n" +
		"*zdriver.Value of zdriver.Bit\n*zdriver.Marker of <nil>\n"
	for app, want := range map[string]string{
		"driverfirst": first + checked + first,
		"driverlast":  checked + last + checked + last,
		"nodriver":    checked,
	} {
		t.Run(app, func(t *testing.T) {
			out, err := exec.Command("go", "run", "./testdata/apps/"+app).CombinedOutput()
			if have := string(out); err != nil || have != want {
				t.Errorf("%v\nhave:\n%s\nwant:\n%s", err, have, want)
			}
		})
	}
}
