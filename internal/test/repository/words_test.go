package repository

import (
	_ "embed"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// word is a pattern of testdata/words.txt, with a better word.
type word struct {
	pattern *regexp.Regexp
	better  string
}

//go:embed testdata/words.txt
var wordList string

// words returns the words that are refused.
func words(t *testing.T) (refused []word) {
	t.Helper()
	for line := range strings.Lines(wordList) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		pattern, better, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			t.Fatalf("words.txt: %q has no tab", line)
		}
		refused = append(refused, word{regexp.MustCompile(pattern), better})
	}
	return refused
}

// TestWords_arePlain looks for the words of testdata/words.txt in the pages and the Go files.
func TestWords_arePlain(t *testing.T) {
	refused := words(t)
	all := files(t, func(name string) bool {
		return filepath.Ext(name) == ".md" || filepath.Ext(name) == ".go" || name == "Makefile"
	})
	for path, content := range all {
		for i, line := range strings.Split(content, "\n") {
			for _, w := range refused {
				if found := w.pattern.FindString(line); found != "" {
					t.Errorf("%s:%d: %q; better: %s", path, i+1, found, w.better)
				}
			}
		}
	}
	if len(all) < 300 || len(refused) < 20 {
		t.Errorf("have: %d files, %d words\nwant: more", len(all), len(refused))
	}
}
