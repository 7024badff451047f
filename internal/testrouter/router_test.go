package testrouter

import (
	"testing"
)

// TestRoute_examples has the examples of ShardingSphere's documentation.
func TestRoute_examples(t *testing.T) {
	column := &Expression{Op: "column", Column: "order_id"}
	table := Table{
		Logic: "t_order",
		Nodes: []Node{{"ds_0", "t_order_0"}, {"ds_0", "t_order_1"}, {"ds_1", "t_order_0"}, {"ds_1", "t_order_1"}},
		Database: &Strategy{Columns: []string{"user_id"}, Type: "INLINE", Prefix: "ds_",
			Expression: (&Expression{Op: "column", Column: "user_id"}).Modulo(2, 1)},
		Table: &Strategy{Columns: []string{"order_id"}, Type: "INLINE", Prefix: "t_order_", Expression: column.Modulo(2, 1)},
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
		if have != c.want {
			t.Errorf("%d, %d\nhave: %s, %v\nwant: %s", c.user, c.order, have, err, c.want)
		}
	}
}

func TestExpression_Groovy(t *testing.T) {
	number := func(n int64) *Expression { return &Expression{Op: "number", Number: n} }
	sum := &Expression{Op: "+", Args: []*Expression{number(1), number(2)}}
	e := &Expression{Op: "*", Args: []*Expression{sum, {Op: "-", Args: []*Expression{number(9), {Op: "%", Args: []*Expression{number(8), number(5)}}}}}}
	if have, want := e.Groovy(), "(1 + 2) * (9 - 8 % 5)"; have != want {
		t.Errorf("have: %s\nwant: %s", have, want)
	}
	if have, err := e.Text(nil, nil); err != nil || have != "18" {
		t.Errorf("have: %s, %v\nwant: 18", have, err)
	}
}
