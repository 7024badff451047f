package tidb_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestCheck_besideAnotherDriver runs applications that have TiDB's parser and a value driver: set
// before the second parser's first use, after it, or not at all. Both parsers work, and the
// application gets its values.
func TestCheck_besideAnotherDriver(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	const checked = "right plan: true <nil>\nwrong plan: false\n"
	first := "*test_driver.ValueExpr of int64\n*test_driver.ValueExpr of *test_driver.MyDecimal\n" +
		strings.Repeat("*test_driver.ValueExpr of test_driver.BinaryLiteral\n", 2) + "*test_driver.ParamMarkerExpr of <nil>\n"
	last := "*main.value of int64\n*main.value of main.decimal\n*main.value of main.hexadecimal\n" +
		"*main.value of main.bit\n*main.marker of <nil>\n"
	for tag, want := range map[string]string{
		"driverfirst": first + checked + first,
		"driverlast":  checked + last + checked + last,
		"nodriver":    checked,
	} {
		t.Run(tag, func(t *testing.T) {
			out, err := exec.Command("go", "run", "-tags", tag, "./testdata/app").CombinedOutput()
			if have := string(out); err != nil || have != want {
				t.Errorf("%v\nhave:\n%s\nwant:\n%s", err, have, want)
			}
		})
	}
}
