package linear

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/cases"
)

// shape is a kind of statement that is slow by design. Table t_1 is sharded by a.
type shape struct {
	name string
	// before and after surround repetitions of repeated. A %d in repeated is their number.
	before, repeated, after string
}

// statement returns a statement of about size bytes.
func (s shape) statement(size int) string {
	var b strings.Builder
	b.WriteString(s.before)
	for i := 0; b.Len()+len(s.after) < size; i++ {
		if strings.Contains(s.repeated, "%d") {
			fmt.Fprintf(&b, s.repeated, i)
		} else {
			b.WriteString(s.repeated)
		}
	}
	b.WriteString(s.after)
	return b.String()
}

// shapes returns the statements that the entries read.
func shapes(t *testing.T) (all []shape) {
	for _, c := range cases.Read(t, "testdata/shapes.txt", 4) {
		all = append(all, shape{c[0], c[1], c[2], c[3]})
	}
	return all
}
