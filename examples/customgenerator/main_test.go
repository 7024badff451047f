package main

import (
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

func TestRun(t *testing.T) {
	if testserver.Each(t, TestRun) {
		return
	}
	var out strings.Builder
	must.Do(t, run(t.Context(), &out, testserver.Database(t)))
	const want = `t_order_0 ('tea') got the keys [1]
t_order_0 ('milk'), ('sugar'), ('lemon') got the keys [2 3 4]
t_order_1 ('tea') got the keys [5]
t_order_1 ('milk'), ('sugar'), ('lemon') got the keys [6 7 8]
`
	must.Equal(t, out.String(), want)
}
