package gormshardkey_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/must"
)

func TestCreate_oneAndMany(t *testing.T) {
	each(t, TestCreate_oneAndMany, "orders_37", func(t *testing.T, w *world) {
		one := Order{Name: "one"}
		affected(t, w.Create(&one), 1)
		w.orders(t, one)

		many := named("a", "b", "c", "d")
		many[2].ID = 5
		affected(t, w.Create(&many), 4)
		w.orders(t, many...)

		pointers := []*Order{{Name: "p"}, {Name: "q"}, {Name: "r"}}
		ok(t, w.Create(pointers))
		array := [3]Order{{Name: "x"}, {Name: "y"}, {Name: "z"}}
		ok(t, w.Create(&array))
		for _, o := range append(array[:], *pointers[0], *pointers[1], *pointers[2]) {
			w.orders(t, o)
		}

		inBatches := named(numbered("batch", 7)...)
		affected(t, w.CreateInBatches(&inBatches, 3), 7)
		w.orders(t, inBatches...)
		sized := named(numbered("sized", 5)...)
		affected(t, w.Session(&gorm.Session{CreateBatchSize: 2}).Create(&sized), 5)
		w.orders(t, sized...)
	})
}

func TestCreate_hooksAndColumns(t *testing.T) {
	each(t, TestCreate_hooksAndColumns, "orders_37", func(t *testing.T, w *world) {
		orders := named("a", "b", "c")
		orders[1].hook = func(o *Order) { o.ID = 77 }
		ok(t, w.Create(&orders))
		w.orders(t, orders...)
		for _, o := range orders {
			if o.seen != o.ID || o.ID == 0 {
				t.Errorf("AfterCreate of %s\nhave: %d\nwant: %d", o.Name, o.seen, o.ID)
			}
		}
		must.Equal(t, orders[1].ID, 77, "the key of BeforeCreate")
		selected := Order{Name: "s", Amount: 9}
		ok(t, w.Select("Name").Create(&selected))
		omitted := Order{ID: 12, Name: "o", Amount: 9}
		ok(t, w.Omit("ID").Create(&omitted))
		w.orders(t, selected)
		if w.key(t, "orders_37", "id", "o") == "12" {
			t.Error("Omit has not left the key out")
		}
	})
}

func TestCreate_saveAndFirstOrCreate(t *testing.T) {
	each(t, TestCreate_saveAndFirstOrCreate, "orders_37", func(t *testing.T, w *world) {
		saved := Order{Name: "saved"}
		ok(t, w.Save(&saved))
		own := Order{ID: 4, Name: "own"}
		ok(t, w.Save(&own))
		w.orders(t, saved, own)

		saved.Amount = 3
		mixed := []Order{{Name: "n1"}, saved, {Name: "n2"}, {ID: 6, Name: "n3"}}
		ok(t, w.Save(&mixed))
		w.orders(t, mixed...)
		must.Equal(t, w.key(t, "orders_37", "amount", "saved"), "3", "saved amount")
		for range 2 {
			var o Order
			ok(t, w.Where(Order{Name: "foc"}).Attrs(Order{Amount: 2}).FirstOrCreate(&o))
			w.orders(t, o)
		}
		again := Order{Name: "saved"}
		ok(t, w.Where(Order{Name: "saved"}).Assign(Order{Amount: 8}).FirstOrCreate(&again))
		w.orders(t, again)
	})
}

func TestCreate_transactions(t *testing.T) {
	each(t, TestCreate_transactions, "orders_37", func(t *testing.T, w *world) {
		var outer, inner []Order
		undone := errors.New("undone")
		must.Do(t, w.Transaction(func(tx *gorm.DB) error {
			outer = named("a", "b")
			if err := tx.Create(&outer).Error; err != nil {
				return err
			}
			err := tx.Transaction(func(tx *gorm.DB) error { // a savepoint
				lost := named("lost1", "lost2")
				must.Do(t, tx.Create(&lost).Error)
				if lost[1].ID-lost[0].ID != 7 {
					t.Errorf("keys within the transaction: %d, %d", lost[0].ID, lost[1].ID)
				}
				return undone
			})
			if !errors.Is(err, undone) {
				return err
			}
			inner = named("c", "d")
			return tx.Create(&inner).Error
		}))
		w.orders(t, append(outer, inner...)...)
		must.Equal(t, w.key(t, "orders_37", "id", "lost1"), "no row", "row of the savepoint")
		skipped := named("k1", "k2")
		ok(t, w.Session(&gorm.Session{SkipDefaultTransaction: true, PrepareStmt: !w.prepare}).Create(&skipped))
		w.orders(t, skipped...)
		tx := ok(t, w.Begin())
		manual := named("m1", "m2")
		ok(t, tx.Create(&manual))
		ok(t, tx.Commit())
		w.orders(t, manual...)
	})
}

func TestCreate_withoutRow(t *testing.T) {
	each(t, TestCreate_withoutRow, "orders_37", func(t *testing.T, w *world) {
		dry := named("d1", "d2")
		ok(t, w.Session(&gorm.Session{DryRun: true}).Create(&dry))
		text := w.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Create(&dry) })
		if !strings.Contains(text, "d2") || dry[0].ID != 0 || dry[1].ID != 0 {
			t.Errorf("a dry run: %s, keys %d %d", text, dry[0].ID, dry[1].ID)
		}
		ok(t, w.Create(&Order{Name: "there"}))
		conflict := named("new", "there")
		if err := w.Create(&conflict).Error; err == nil || conflict[0].ID != 0 || conflict[1].ID != 0 {
			t.Errorf("a conflict: %v, keys %d %d", err, conflict[0].ID, conflict[1].ID)
		}
		if err := w.Create(&[]Order{}).Error; !errors.Is(err, gorm.ErrEmptySlice) {
			t.Errorf("no element\nhave: %v\nwant: %v", err, gorm.ErrEmptySlice)
		}
		if err := w.Create([]*Order{nil}).Error; err == nil {
			t.Error("a nil element is created")
		}
		if err := w.Create(Order{Name: "by value"}).Error; !errors.Is(err, gorm.ErrInvalidValue) && err != nil {
			t.Errorf("a struct by value: %v", err)
		}
	})
}

func TestCreate_generics(t *testing.T) {
	each(t, TestCreate_generics, "orders_37", func(t *testing.T, w *world) {
		one := Order{Name: "one"}
		must.Do(t, gorm.G[Order](w.DB).Create(t.Context(), &one))
		many := named("a", "b", "c", "d", "e")
		must.Do(t, gorm.G[Order](w.DB).CreateInBatches(t.Context(), &many, 2))
		w.orders(t, append(many, one)...)

		result := gorm.WithResult()
		with := Order{Name: "with"}
		must.Do(t, gorm.G[Order](w.DB, result).Create(t.Context(), &with))
		if w.orders(t, with); result.RowsAffected != 1 {
			t.Errorf("rows affected: %d", result.RowsAffected)
		}
	})
}

// The caller's Keys are those of the last statement.
func TestCreate_callersKeys(t *testing.T) {
	each(t, TestCreate_callersKeys, "orders_37 items", func(t *testing.T, w *world) {
		var keys driver.Keys
		ctx := driver.WithKeys(t.Context(), &keys)
		orders := named("a", "b")
		ok(t, w.WithContext(ctx).Create(&orders))
		if have, _ := keys.Int64s(); len(have) != 2 || have[0] != orders[0].ID || have[1] != orders[1].ID {
			t.Errorf("the caller's keys\nhave: %v\nwant: %d %d", have, orders[0].ID, orders[1].ID)
		}
		with := Order{Name: "c", Items: []Item{{Name: "c1"}, {Name: "c2"}}}
		ok(t, w.WithContext(ctx).Create(&with))
		if have, _ := keys.Int64s(); len(have) != 2 || uint64(have[1]) != with.Items[1].ID {
			t.Errorf("the caller's keys\nhave: %v\nwant: those of %v", have, with.Items)
		}
		if have := fmt.Sprint(ctx); strings.Count(have, "keysKey") != 1 {
			t.Errorf("the caller's context has changed: %s", have)
		}
	})
}

// Statements of associations and hooks must not see the context of the row's statement.
func TestCreate_contextIsPutBack(t *testing.T) {
	each(t, TestCreate_contextIsPutBack, "orders_37", func(t *testing.T, w *world) {
		type own struct{}
		ctx := context.WithValue(t.Context(), own{}, 1)
		var before, after context.Context
		must.Do(t, w.Callback().Create().Before("gorm:create").Register("test:before", func(db *gorm.DB) { before = db.Statement.Context }))
		must.Do(t, w.Callback().Create().After("gorm:create").Register("test:after", func(db *gorm.DB) { after = db.Statement.Context }))
		o := Order{Name: "a"}
		ok(t, w.WithContext(ctx).Create(&o))
		if before != ctx || after != ctx {
			t.Errorf("the statement's context\nhave: %v, %v\nwant: %v", before, after, ctx)
		}
		w.orders(t, o)
	})
}

func TestCreate_concurrently(t *testing.T) {
	each(t, TestCreate_concurrently, "orders_37", func(t *testing.T, w *world) {
		var wg sync.WaitGroup
		for g := range 6 {
			wg.Go(func() {
				for i := range 5 {
					orders := named(numbered(fmt.Sprint("g", g, "-", i, "-"), 3)...)
					if err := w.Create(&orders).Error; err != nil {
						t.Error(err)
						return
					}
					w.orders(t, orders...)
				}
			})
		}
		wg.Wait()
	})
}

func TestMaps_withModel(t *testing.T) {
	each(t, TestMaps_withModel, "orders_37 texts", func(t *testing.T, w *world) {
		one := map[string]any{"Name": "one", "amount": 2}
		ok(t, w.Model(&Order{}).Create(one))
		w.has(t, "orders_37", "one", one["id"])
		pointed := map[string]any{"Name": "pointed"}
		ok(t, w.Model(&Order{}).Create(&pointed))
		w.has(t, "orders_37", "pointed", pointed["id"])

		many := []map[string]any{{"Name": "a"}, {"Name": "b", "id": 9}, {"Name": "c", "ID": 10}, {"Name": "d", "id": 0}, {"Name": "e", "id": nil}}
		affected(t, w.Model(&Order{}).Create(&many), 5)
		if len(many) != 5 {
			t.Fatalf("%d maps: %v", len(many), many)
		}
		for _, m := range many {
			key, ok := m["id"]
			if !ok {
				key = m["ID"]
			} else if _, both := m["ID"]; both {
				t.Errorf("a key under two names: %v", m)
			}
			w.has(t, "orders_37", m["Name"].(string), key)
		}
		value := []map[string]any{{"name": "v1"}, {"name": "v2"}}
		ok(t, w.Model(&Order{}).Create(value))
		for _, m := range value {
			w.has(t, "orders_37", m["name"].(string), m["id"])
		}
		batches := []map[string]any{{"name": "b1"}, {"name": "b2"}, {"name": "b3"}}
		ok(t, w.Model(&Order{}).CreateInBatches(batches, 2))
		for _, m := range batches {
			w.has(t, "orders_37", m["name"].(string), m["id"])
		}
	})
}

func TestMaps_withoutModel(t *testing.T) {
	each(t, TestMaps_withoutModel, "orders_37 texts other_key unlisted", func(t *testing.T, w *world) {
		many := []map[string]any{{"name": "a"}, {"name": "b", "id": 9}, {"name": "c"}}
		ok(t, w.Table("orders_37").Create(many))
		for _, m := range many {
			w.has(t, "orders_37", m["name"].(string), m["@id"])
		}
		text := map[string]any{"name": "text"}
		ok(t, w.Table("texts").Create(text))
		w.has(t, "texts", "text", text["@id"])
		// If the server generates a key too, "@id" has the server's.
		other_key := map[string]any{"name": "a"}
		ok(t, w.Table("other_key").Create(other_key))
		w.has(t, "other_key", "a", other_key["@id"])
		w.hasIn(t, "other_key", "order_no", "a", other_key["order_no"])
		unlisted := map[string]any{"name": "a"}
		ok(t, w.Table("unlisted").Create(unlisted))
		w.has(t, "unlisted", "a", unlisted["@id"])
	})
}

func TestMaps_upserts(t *testing.T) {
	each(t, TestMaps_upserts, "orders_37", func(t *testing.T, w *world) {
		ok(t, w.Create(named("a", "b")))
		ignored := []map[string]any{{"name": "a"}, {"name": "new1"}, {"name": "b"}, {"name": "new2"}}
		affected(t, w.Model(&Order{}).Clauses(clause.Insert{Modifier: "IGNORE"}).Create(&ignored), 2)
		for _, m := range []map[string]any{ignored[1], ignored[3]} {
			w.has(t, "orders_37", m["name"].(string), m["id"])
		}
		if len(ignored) != 4 || ignored[0]["id"] != nil || ignored[2]["id"] != nil {
			t.Errorf("maps that were ignored: %v", ignored)
		}
		one := map[string]any{"name": "a", "amount": 4}
		ok(t, w.Model(&Order{}).Clauses(clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"amount"})}).Create(one))
		w.has(t, "orders_37", "a", one["id"])
		again := map[string]any{"name": "a", "amount": 5}
		ok(t, w.Session(&gorm.Session{SkipDefaultTransaction: true}).Model(&Order{}).
			Clauses(clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"amount"})}).Create(again))
		w.has(t, "orders_37", "a", again["id"])
	})
}
