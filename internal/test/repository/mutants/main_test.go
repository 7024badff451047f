package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

const code = `package p

func f(a, b int) int {
	return a + b + 1 // the sum
}

func (t *T[K]) m(a int) bool {
	return a < 1
}
`

func TestSurvivors_areNamedByTheirCode(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Do(t, os.MkdirAll("p", 0o755))
	must.Do(t, os.WriteFile(filepath.Join("p", "p.go"), []byte(code), 0o600))
	var r report
	r.Files = append(r.Files, struct {
		Name      string `json:"file_name"`
		Mutations []mutation
	}{"p.go", []mutation{
		{"BOUNDARY", "LIVED", 8, 11}, {"BASE", "LIVED", 4, 15}, {"BASE", "KILLED", 4, 11}, {"NEGATION", "TIMED OUT", 8, 11}, {"BASE", "NOT COVERED", 4, 17},
	}})
	have, err := r.survivors("p")
	want := []string{"p f BASE: return a + b + 1 #2", "p T.m BOUNDARY: return a < 1"}
	if err != nil || !slices.Equal(have, want) {
		t.Errorf("have: %q, %v\nwant: %q", have, err, want)
	}
}

func TestCompare(t *testing.T) {
	const text = "# Heading\n\nkeygen/x f BASE: a\n\tany size\n\twill do\nkeygen/x/y f BASE: b\n  harmless\nkeygen/xy f BASE: c\n\tother\n"
	for _, test := range []struct {
		text      string
		survivors []string
		want      string // part of the error, or "" for no error
	}{
		{text, []string{"keygen/x f BASE: a", "keygen/x/y f BASE: b"}, ""},
		{text, []string{"keygen/x f BASE: a", "keygen/x/y f BASE: b", "keygen/x f BASE: a #2"}, "doesn't list:\nkeygen/x f BASE: a #2"},
		{text, []string{"keygen/x f BASE: a"}, "isn't there:\nkeygen/x/y f BASE: b"},
		{"keygen/x f BASE: a\n", nil, "expected a change and its reason"},
		{"\treason\n", nil, "expected a change and its reason"},
	} {
		reasons, err := parse(test.text)
		if err == nil {
			err = compare(reasons, "keygen/x", test.survivors)
		}
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q %q\nhave: %v\nwant: %q", test.text, test.survivors, err, test.want)
		}
	}
}

// TestList_namesCode: the list names lines of functions that exist. The tests of a package take hours with its
// changes, so its entries would otherwise outlive their code.
func TestList_namesCode(t *testing.T) {
	t.Chdir("../../../..")
	reasons := must.Get(parse(string(must.Get(os.ReadFile(list))(t))))(t)
	for name := range reasons {
		place, code, _ := strings.Cut(name, ": ")
		fields := strings.Fields(place)
		code = regexp.MustCompile(` #\d+$`).ReplaceAllString(code, "")
		if !hasLine(t, fields[0], fields[1], code) {
			t.Errorf("%s names code that isn't there:\n%s", list, name)
		}
	}
}

// hasLine reports whether a function of a package has a line.
func hasLine(t *testing.T, dir, in, code string) bool {
	for _, path := range must.Get(filepath.Glob(filepath.Join(dir, "*.go")))(t) {
		lines := strings.Split(string(must.Get(os.ReadFile(path))(t)), "\n")
		for i, line := range lines {
			line, _, _ = strings.Cut(line, " // ")
			if strings.TrimSpace(line) == code && function(lines[:i+1]) == in {
				return true
			}
		}
	}
	return false
}
