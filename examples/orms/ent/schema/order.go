// Package schema is what ent generates its client from.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
)

// Order is an order, whose key the database is taken to make.
type Order struct{ ent.Schema }

// Annotations name the table.
func (Order) Annotations() []schema.Annotation {
	return []schema.Annotation{entsql.Annotation{Table: "t_order_1"}}
}

// Fields are the table's columns.
func (Order) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id").StorageKey("order_id"),
		field.String("item").Unique(),
		field.Int("amount").Default(1),
	}
}
