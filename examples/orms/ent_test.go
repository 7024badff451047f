package orms

import (
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/sqlgraph"
	"entgo.io/ent/schema/field"

	"github.com/shardkey/shardkey/internal/testserver"
)

// entOrder is what ent's generated code makes of an order to be created, with
// the key left to the database.
func entOrder(item string) *sqlgraph.CreateSpec {
	spec := sqlgraph.NewCreateSpec("t_order_1", sqlgraph.NewFieldSpec("order_id", field.TypeInt64))
	spec.SetField("item", field.TypeString, item)
	return spec
}

// TestEnt goes through the functions that ent's generated clients call: Create
// is CreateNode, CreateBulk is BatchCreate.
func TestEnt(t *testing.T) {
	if testserver.Each(t, TestEnt) {
		return
	}
	source := dsn(t)
	drv := entsql.OpenDB(dialect.MySQL, open(t, "shardkey", source))

	single := entOrder("tea")
	if err := sqlgraph.CreateNode(t.Context(), drv, single); err != nil {
		t.Fatal(err)
	}
	items := []string{"milk", "sugar", "lemon"}
	batch := &sqlgraph.BatchCreateSpec{}
	for _, item := range items {
		batch.Nodes = append(batch.Nodes, entOrder(item))
	}
	if err := sqlgraph.BatchCreate(t.Context(), drv, batch); err != nil {
		t.Fatal(err)
	}
	// An upsert, which ent writes with order_id = LAST_INSERT_ID(order_id).
	again := entOrder("tea")
	again.OnConflict = []entsql.ConflictOption{entsql.ResolveWithNewValues()}
	if err := sqlgraph.CreateNode(t.Context(), drv, again); err != nil {
		t.Fatal(err)
	}
	if have, want := again.ID.Value, single.ID.Value; have != want {
		t.Errorf("key of the row that existed\nhave: %v\nwant: %v", have, want)
	}

	have := map[string]int64{"tea": single.ID.Value.(int64)}
	for i, node := range batch.Nodes {
		have[items[i]] = node.ID.Value.(int64)
	}
	checkOrders(t, source, have)
}
