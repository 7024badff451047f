package main

import (
	"context"
	"database/sql"
	"fmt"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/sqlgraph"
	"entgo.io/ent/schema/field"
)

// entOrder returns the specification that ent's generated client builds for an order whose key
// the database generates.
func entOrder(item string) *sqlgraph.CreateSpec {
	spec := sqlgraph.NewCreateSpec("t_order_1", sqlgraph.NewFieldSpec("order_id", field.TypeInt64))
	spec.SetField("item", field.TypeString, item)
	return spec
}

// withEnt calls the functions behind a generated client: CreateNode for Create, and BatchCreate
// for CreateBulk. A program passes the same entsql.Driver to its client, with
// ent.NewClient(ent.Driver(drv)). In a batch, ent counts from LastInsertId, which is correct for
// consecutive keys.
func withEnt(ctx context.Context, dsn string) (map[string]int64, error) {
	db, err := sql.Open("shardkey", dsn) // was: "mysql"
	if err != nil {
		return nil, err
	}
	defer db.Close()
	drv := entsql.OpenDB(dialect.MySQL, db)

	single, have := entOrder("tea"), map[string]int64{}
	if err := sqlgraph.CreateNode(ctx, drv, single); err != nil {
		return nil, err
	}
	have["tea"] = single.ID.Value.(int64)

	items, batch := []string{"milk", "sugar", "lemon"}, &sqlgraph.BatchCreateSpec{}
	for _, item := range items {
		batch.Nodes = append(batch.Nodes, entOrder(item))
	}
	if err := sqlgraph.BatchCreate(ctx, drv, batch); err != nil {
		return nil, err
	}
	for i, node := range batch.Nodes {
		have[items[i]] = node.ID.Value.(int64)
	}

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	drv = entsql.NewDriver(dialect.MySQL, entsql.Conn{ExecQuerier: tx})
	inTx := entOrder("cups")
	if err := sqlgraph.CreateNode(ctx, drv, inTx); err != nil {
		return nil, err
	}
	have["cups"] = inTx.ID.Value.(int64)

	// ent writes an upsert with order_id = LAST_INSERT_ID(order_id).
	again := entOrder("tea")
	again.OnConflict = []entsql.ConflictOption{entsql.ResolveWithNewValues()}
	if err := sqlgraph.CreateNode(ctx, drv, again); err != nil {
		return nil, err
	}
	if again.ID.Value != single.ID.Value {
		return nil, fmt.Errorf("upsert: expected the key %v of the existing row, found %v",
			single.ID.Value, again.ID.Value)
	}
	return have, tx.Commit()
}
