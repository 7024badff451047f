package testrouter

import (
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

// TestRoute_examples checks the examples of ShardingSphere's documentation.
func TestRoute_examples(t *testing.T) {
	table := Table{
		Logic: "t_order",
		Nodes: []Node{{"ds_0", "t_order_0"}, {"ds_0", "t_order_1"}, {"ds_1", "t_order_0"}, {"ds_1", "t_order_1"}},
		Database: &Strategy{Columns: []string{"user_id"}, Type: "INLINE", Prefix: "ds_",
			Expression: Column("user_id").Modulo(2, 1)},
		Table: &Strategy{Columns: []string{"order_id"}, Type: "INLINE", Prefix: "t_order_", Expression: Column("order_id").Modulo(2, 1)},
	}
	for _, c := range []struct {
		user, order int64
		want        string
	}{{1, 10, "ds_1.t_order_0"}, {2, 11, "ds_0.t_order_1"}, {-1, 0, ""}} {
		n, err := table.Route(map[string]any{"user_id": c.user, "order_id": c.order})
		have := n.DataSource + "." + n.Table
		if err != nil {
			have = ""
		}
		must.Equal(t, have, c.want, c.user, c.order, err)
	}
}

func TestExpression(t *testing.T) {
	row := map[string]any{"k": int64(-7), "s": "日本"}
	for _, c := range []struct {
		e            *Expression
		groovy, want string
	}{
		{Column("k").Modulo(4, 1), "(k) % 4", "-3"},
		{Column("k").abs().Modulo(4, 2), "((Math.abs(k)) % 4).toString().padLeft(2, '0')", "03"},
		{AbsHash("k"), "Math.abs(k.hashCode())", "6"}, // of a Long
		{AbsHash("s"), "Math.abs(s.hashCode())", "835047"},
	} {
		if have, err := c.e.Text(row, nil); err != nil || have != c.want || c.e.Groovy != c.groovy {
			t.Errorf("have: %s, %s, %v\nwant: %s, %s", c.e.Groovy, have, err, c.groovy, c.want)
		}
	}
}

func TestPartition_examples(t *testing.T) {
	for _, c := range []struct {
		typ, prop, value string
		of               any
		want             string
	}{
		{"MOD", "sharding-count", "4", int64(-1), "3"},
		{"HASH_MOD", "sharding-count", "4", int64(-1), "0"}, // of a Long
		{"HASH_MOD", "sharding-count", "1000000", "日本", "835047"},
		{"BOUNDARY_RANGE", "sharding-ranges", "5, 10", int64(10), "2"},
	} {
		s := &Strategy{Columns: []string{"k"}, Type: c.typ, Props: map[string]string{c.prop: c.value}}
		must.Equal(t, must.Get(s.partition(c.of))(t), c.want, c.typ, c.value, "of", c.of)
	}
}
