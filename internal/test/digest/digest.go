// Package digest compares what code does in very many cases with a small file: a digest of the cases for each
// kind of them. So a test sees that a change of the code changes nothing else.
package digest

import (
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

var printCases = flag.Bool("cases", false, "print the cases of digests; compare the output before and after a change")

// Digests are the digests of cases by their kinds. The order of the cases doesn't matter.
type Digests map[string]uint64

// Add adds a case.
func (d Digests) Add(kind, text string) {
	if *printCases {
		fmt.Printf("%s: %s\n", kind, text)
	}
	sum := fnv.New64()
	_, _ = sum.Write([]byte(text))
	d[kind] += sum.Sum64()
}

// Compare compares the digests with a file, or writes it.
func (d Digests) Compare(t *testing.T, file string, write bool) {
	t.Helper()
	var have strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(d)) {
		fmt.Fprintf(&have, "%s: %016x\n", kind, d[kind])
	}
	if write {
		must.Do(t, os.WriteFile(file, []byte(have.String()), 0o644))
	}
	must.Equal(t, have.String(), string(must.Get(os.ReadFile(file))(t)), "if the change is right, run the test with -update; -cases prints what has changed")
}
