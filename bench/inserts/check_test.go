package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func ratioOf(scene string, v float64) ratio {
	return ratio{Server: "MySQL", Scene: scene, To: "go-sql-driver", Ratio: v}
}

func runOf(values ...float64) []ratio {
	return []ratio{ratioOf("default DSN", values[0]), ratioOf("prepared once", values[1])}
}

func TestSummary(t *testing.T) {
	have := summary([][]ratio{runOf(2.0, 0.95), runOf(2.25, 0.96), runOf(1.9, 0.94)})
	want := runOf(2, 0.95)
	want[0].Noise, want[1].Noise = 0.5, 0.05
	if !reflect.DeepEqual(have, want) {
		t.Errorf("have: %+v\nwant: %+v", have, want)
	}
	if have := summary([][]ratio{runOf(2.0, 0.95), runOf(2.7, 0.96), runOf(1.9, 0.94)}); !reflect.DeepEqual(have, want[1:]) {
		t.Errorf("too much noise\nhave: %+v\nwant: %+v", have, want[1:])
	}
}

// A check passes if the first or the second run has the noted figures. It fails if both differ.
func TestCheck_failsOutsideOfNoise(t *testing.T) {
	file := noted{Ratios: summary([][]ratio{runOf(2.0, 2.3), runOf(2.1, 2.3), runOf(1.9, 2.3)})}
	for _, test := range []struct {
		name string
		runs [][]ratio
		want string
	}{
		{"as noted", [][]ratio{runOf(2.0, 2.3)}, ""},
		{"less, within noise", [][]ratio{runOf(1.81, 2.26)}, ""},
		{"more, within noise", [][]ratio{runOf(2.19, 2.34)}, ""},
		{"slower once", [][]ratio{runOf(1.5, 2.3), runOf(2.0, 2.3)}, ""},
		{"each slower once", [][]ratio{runOf(1.5, 2.3), runOf(2.0, 2.0)}, ""},
		{"slower", [][]ratio{runOf(1.7, 2.3), runOf(1.7, 2.3)}, "1 ratios differ from the noted ones in two runs, for example MySQL, default DSN: to go-sql-driver"},
		{"faster", [][]ratio{runOf(2.0, 2.5), runOf(2.0, 2.5)}, "1 ratios differ from the noted ones in two runs, for example MySQL, prepared once: to go-sql-driver"},
		{"gone", [][]ratio{runOf(2.0, 2.3)[:1], runOf(2.0, 2.3)[:1]}, "1 ratios"},
		{"nothing", [][]ratio{nil}, "no noted ratio was measured"},
	} {
		var out strings.Builder
		next := 0
		err := checkRuns(&out, file, func() ([]ratio, error) { next++; return test.runs[next-1], nil })
		have := ""
		if err != nil {
			have = err.Error()
		}
		if (have == "") != (test.want == "") || !strings.Contains(have, test.want) || next != len(test.runs) {
			t.Errorf("%s\nhave: %d runs, %s\nwant: %d runs, %s\n%s", test.name, next, have, len(test.runs), test.want, out.String())
		}
	}
}

// An invalid file fails before anything is measured.
func TestCheck_wrongFile(t *testing.T) {
	t.Setenv("SHARDKEY_TEST_DSN", "")
	for name, text := range map[string]string{
		"no JSON":    "ratios: 1",
		"no ratios":  `{"Machine": "x", "Runs": 5}`,
		"no ratio":   `{"Ratios": [{"Server": "MySQL", "Noise": 0.1}]}`,
		"wild noise": `{"Ratios": [{"Server": "MySQL", "Ratio": 2, "Noise": 2}]}`,
	} {
		path := filepath.Join(t.TempDir(), "ratios.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := check(options{check: path, out: &out}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s\nhave: %v\nwant: an error with %s", name, err, path)
		}
	}
	if err := check(options{check: filepath.Join(t.TempDir(), "none"), out: new(strings.Builder)}); !os.IsNotExist(err) {
		t.Errorf("no file\nhave: %v\nwant: that there is none", err)
	}
}
