package gormshardkey_test

import (
	"strings"
	"testing"

	testserver "github.com/shardkey/shardkey/internal/test/server"
	"gorm.io/gorm/clause"
)

var (
	doNothing = clause.OnConflict{DoNothing: true}
	updateAll = clause.OnConflict{UpdateAll: true}
	ignore    = clause.Insert{Modifier: "IGNORE"}
)

// rightOrZero: each order has its row's key or, where that existed, none.
func (w *world) rightOrZero(t *testing.T, orders []Order) {
	t.Helper()
	for _, o := range orders {
		if o.ID != 0 || strings.HasPrefix(o.Name, "new") {
			w.orders(t, o)
		}
	}
}

func TestUpsert_oneRow(t *testing.T) {
	each(t, TestUpsert_oneRow, "orders_37 texts", func(t *testing.T, w *world) {
		for _, conflict := range []clause.Expression{doNothing, updateAll} {
			fresh := Order{Name: "new", Amount: 1}
			ok(t, w.Clauses(conflict).Create(&fresh))
			again := Order{Name: "new", Amount: 2}
			ok(t, w.Clauses(conflict).Create(&again))
			w.orders(t, fresh, again)
			ok(t, w.Unscoped().Delete(&fresh))
		}
		text := map[string]any{"name": "a"}
		ok(t, w.Table("texts").Create(text))
		w.has(t, "texts", "a", text["@id"])
	})
}

func TestUpsert_manyRows(t *testing.T) {
	each(t, TestUpsert_manyRows, "orders_37", func(t *testing.T, w *world) {
		there := named("a", "b")
		ok(t, w.Create(&there))
		ok(t, w.Create(&Order{ID: 5, Name: "c"}))

		some := []Order{{Name: "new1"}, {Name: "a"}, {Name: "new2"}, {ID: 5, Name: "c"}, {Name: "new3"}}
		affected(t, w.Clauses(doNothing).Create(&some), 3)
		w.rightOrZero(t, some)

		all := []Order{{Name: "new4", Amount: 3}, {Name: "a", Amount: 4}, {Name: "new5", Amount: 5}}
		affected(t, w.Clauses(updateAll).Create(&all), 4)
		w.rightOrZero(t, all)

		two := []Order{{Name: "new6", Amount: 6}, {Name: "a", Amount: 6}, {Name: "b", Amount: 6}, {Name: "new7", Amount: 6}}
		ok(t, w.Clauses(updateAll).Create(&two))
		w.rightOrZero(t, two)

		fresh := named("new8", "new9")
		affected(t, w.Clauses(doNothing).Create(&fresh), 2)
		w.orders(t, fresh...)
	})
}

func TestUpsert_ignore(t *testing.T) {
	each(t, TestUpsert_ignore, "orders_37", func(t *testing.T, w *world) {
		ok(t, w.Create(named("a", "b")))
		some := named("a", "new1", "b", "new2")
		affected(t, w.Clauses(ignore).Create(&some), 2)
		w.orders(t, some[1], some[3])
		if some[0].ID != 0 || some[2].ID != 0 {
			t.Errorf("rows that were ignored have keys: %d, %d", some[0].ID, some[2].ID)
		}
		none := named("a", "b")
		affected(t, w.Clauses(ignore).Create(&none), 0)
		one := Order{Name: "a"}
		affected(t, w.Clauses(ignore).Create(&one), 0)
		if none[0].ID != 0 || none[1].ID != 0 || one.ID != 0 {
			t.Errorf("rows that were ignored have keys: %d, %d, %d", none[0].ID, none[1].ID, one.ID)
		}
	})
}

func TestUpsert_keyNextToThePrimary(t *testing.T) {
	each(t, TestUpsert_keyNextToThePrimary, "other_key numbered", func(t *testing.T, w *world) {
		rows := []OtherKey{{Name: "a"}, {Name: "b"}, {Name: "c"}}
		ok(t, w.Create(&rows))
		for _, r := range rows {
			w.has(t, "other_key", r.Name, r.ID)
			w.hasIn(t, "other_key", "order_no", r.Name, r.OrderNo)
		}
		// UpdateAll sets the row's key to the new one, as the SQL specifies.
		again := OtherKey{Name: "a"}
		ok(t, w.Clauses(updateAll).Create(&again))
		if w.hasIn(t, "other_key", "order_no", "a", again.OrderNo); again.OrderNo == rows[0].OrderNo {
			t.Errorf("UpdateAll has kept %d", again.OrderNo)
		}
		numbered := []Numbered{{Name: "a"}, {Name: "b"}, {ID: 3, Name: "c"}}
		ok(t, w.Create(&numbered))
		for _, r := range numbered {
			w.has(t, "numbered", r.Name, r.ID)
			w.hasIn(t, "numbered", "order_no", r.Name, r.OrderNo)
		}
	})
}

// A table without rule is GORM's business, with or without the plugin.
func TestUpsert_unlistedTableAsWithoutPlugin(t *testing.T) {
	each(t, TestUpsert_unlistedTableAsWithoutPlugin, "unlisted", func(t *testing.T, w *world) {
		ok(t, w.Create(&[]Unlisted{{Name: "a"}, {Name: "b"}}))
		rows := []Unlisted{{Name: "new1"}, {Name: "b", Amount: 4}, {Name: "new2"}}
		tx := ok(t, w.Clauses(updateAll).Create(&rows))
		if !w.returning || !testserver.Has(t, testserver.MariaDB, "RETURNING") {
			return // GORM has counted
		}
		for _, r := range rows {
			w.has(t, "unlisted", r.Name, r.ID)
		}
		affected(t, tx, 3)
	})
}

func TestReturning_requested(t *testing.T) {
	each(t, TestReturning_requested, "orders_37", func(t *testing.T, w *world) {
		ok(t, w.Create(named("a", "b")))
		all := named("r1", "r2")
		ok(t, w.Clauses(clause.Returning{}).Create(&all))
		w.orders(t, all...)
		column := clause.Returning{Columns: []clause.Column{{Name: "id"}}}
		some := named("r3", "r4")
		ok(t, w.Clauses(column).Create(&some))
		w.orders(t, some...)
		ignored := named("a", "new1", "b", "new2")
		ok(t, w.Clauses(column, ignore).Create(&ignored))
		w.rightOrZero(t, ignored)
		mixed := []Order{{Name: "new3"}, {Name: "a"}, {ID: 9, Name: "new4"}, {Name: "new5"}}
		ok(t, w.Clauses(column, doNothing).Create(&mixed))
		w.rightOrZero(t, mixed)
		updated := []Order{{Name: "new6"}, {Name: "a", Amount: 9}, {Name: "new7"}, {Name: "b", Amount: 9}}
		ok(t, w.Clauses(column, updateAll).Create(&updated))
		w.rightOrZero(t, updated)
		if w.returning && testserver.Has(t, testserver.MariaDB, "RETURNING") {
			w.orders(t, updated...) // those that existed too
		}
		whole := named("a", "new8")
		ok(t, w.Clauses(clause.Returning{}, ignore).Create(&whole))
		w.rightOrZero(t, whole)
		maps := []map[string]any{{"name": "new9"}, {"name": "new10"}}
		ok(t, w.Model(&Order{}).Clauses(column).Create(&maps))
		if len(maps) != 2 {
			t.Fatalf("maps have grown: %v", maps)
		}
		for _, m := range maps {
			w.has(t, "orders_37", m["name"].(string), m["id"])
		}
	})
}
