package explain

import (
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rewrite"
)

func TestRows_mostLines(t *testing.T) {
	p := must.Get(rewrite.Parse("INSERT INTO t (id) VALUES (NULL), (5), (NULL), (NULL)", rewrite.Options{
		Table: func(string, string) *rewrite.Table { return &rewrite.Table{Key: "id"} }}))(t)
	for most, want := range map[int]string{
		0: "row 1: a key is generated, row 2: the key is kept as it is written, rows 3 to 4: a key is generated",
		1: "row 1: a key is generated, … and 3 more rows",
		3: "row 1: a key is generated, row 2: the key is kept as it is written, rows 3 to 4: a key is generated",
	} {
		must.Equal(t, strings.Join(Rows(p.Insert, most), ", "), want, "at most", most)
	}
}
