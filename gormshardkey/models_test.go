package gormshardkey_test

import (
	"fmt"

	"gorm.io/gorm"
)

// Order is in an actual table beyond those that a rule lists.
type Order struct {
	ID         int64
	Name       string
	Amount     int
	CustomerID *int64
	Customer   *Customer
	Items      []Item
	Tags       []*Tag `gorm:"many2many:order_tags"`
	Notes      []Note `gorm:"polymorphic:Owner"`
	DeletedAt  gorm.DeletedAt

	hook func(*Order) // run before the INSERT
	seen int64        // the key in AfterCreate
}

func (Order) TableName() string { return "orders_37" }

func (o *Order) BeforeCreate(*gorm.DB) error {
	if o.hook != nil {
		o.hook(o)
	}
	return nil
}

func (o *Order) AfterCreate(*gorm.DB) error {
	o.seen = o.ID
	return nil
}

type Item struct {
	ID      uint64
	OrderID int64
	Name    string
}

type Customer struct {
	ID      int64
	Name    string
	Profile *Profile
}

type Profile struct {
	ID         int64
	CustomerID int64
	Name       string
}

type Tag struct {
	ID   int64
	Name string
}

type Note struct {
	ID        int64
	OwnerID   int64
	OwnerType string
	Name      string
}

// Unlisted is in a table that the rule does not have.
type Unlisted struct {
	ID     int64
	Name   string
	Amount int
}

func (Unlisted) TableName() string { return "unlisted" }

// OtherKey has a primary key of the server, and the rule's key column.
type OtherKey struct {
	ID      int64
	OrderNo int64
	Name    string
}

func (OtherKey) TableName() string { return "other_key" }

// Numbered has the rule's key, and an ID that isn't generated.
type Numbered struct {
	ID      int64
	OrderNo int64
	Name    string
}

func (Numbered) TableName() string { return "numbered" }

type Part struct {
	Shop int64 `gorm:"primaryKey;autoIncrement:false"`
	Seq  int64 `gorm:"primaryKey;autoIncrement:false"`
	Name string
}

// named makes orders.
func named(names ...string) []Order {
	orders := make([]Order, len(names))
	for i, name := range names {
		orders[i].Name = name
	}
	return orders
}

// numbered are n names.
func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint(prefix, i)
	}
	return names
}
