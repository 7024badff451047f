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
		w.orders(t, append(array[:], *pointers[0], *pointers[1], *pointers[2])...)

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
		must.Fail(t, w.Create(&conflict).Error, "a conflict")
		if !w.readsReturning(t) && (conflict[0].ID != 0 || conflict[1].ID != 0) { // GORM reads rows before the error
			t.Errorf("keys after a conflict: %d %d", conflict[0].ID, conflict[1].ID)
		}
		must.Is(t, w.Create(&[]Order{}).Error, gorm.ErrEmptySlice, "no element")
		must.Fail(t, w.Create([]*Order{nil}).Error, "a nil element is created")
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
		if result.Result == nil { // RETURNING
			return
		}
		if id, err := result.Result.LastInsertId(); err != nil || id != with.ID {
			t.Errorf("LastInsertId\nhave: %d, %v\nwant: %d", id, err, with.ID)
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
		must.Equal(t, fmt.Sprint(keys.Values()), fmt.Sprint([]any{orders[0].ID, orders[1].ID}), "the caller's keys")
		with := Order{Name: "c", Items: []Item{{Name: "c1"}, {Name: "c2"}}}
		ok(t, w.WithContext(ctx).Create(&with))
		must.Equal(t, fmt.Sprint(keys.Values()), fmt.Sprint([]any{with.Items[0].ID, with.Items[1].ID}), "the caller's keys")
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

// maps compares the keys of orders in maps, in the entry named, with their rows'.
func (w *world) maps(t *testing.T, entry string, maps ...map[string]any) {
	t.Helper()
	for _, m := range maps {
		w.has(t, "orders_37", m["name"].(string), m[entry])
	}
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
		w.maps(t, "id", value...)
		batches := []map[string]any{{"name": "b1"}, {"name": "b2"}, {"name": "b3"}}
		ok(t, w.Model(&Order{}).CreateInBatches(batches, 2))
		w.maps(t, "id", batches...)
	})
}

func TestMaps_withoutModel(t *testing.T) {
	each(t, TestMaps_withoutModel, "orders_37 texts other_key unlisted", func(t *testing.T, w *world) {
		many := []map[string]any{{"name": "a"}, {"name": "b", "id": 9}, {"name": "c"}}
		ok(t, w.Table("orders_37").Create(many))
		w.maps(t, "@id", many...)
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
		w.maps(t, "id", ignored[1], ignored[3])
		if len(ignored) != 4 || ignored[0]["id"] != nil || ignored[2]["id"] != nil {
			t.Errorf("maps that were ignored: %v", ignored)
		}
		one := map[string]any{"name": "a", "amount": 4}
		ok(t, w.Model(&Order{}).Clauses(clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"amount"})}).Create(one))
		w.maps(t, "id", one)
		again := map[string]any{"name": "a", "amount": 5}
		ok(t, w.Session(&gorm.Session{SkipDefaultTransaction: true}).Model(&Order{}).
			Clauses(clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"amount"})}).Create(again))
		w.maps(t, "id", again)
	})
}

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

// upserted is rightOrZero after an upsert. By RETURNING, GORM reads the keys of all rows, and counts
// them instead of the affected ones.
func (w *world) upserted(t *testing.T, db *gorm.DB, rows int64, orders []Order) {
	t.Helper()
	if w.readsReturning(t) {
		affected(t, db, int64(len(orders)))
		w.orders(t, orders...)
		return
	}
	affected(t, db, rows)
	w.rightOrZero(t, orders)
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
		w.upserted(t, w.Clauses(doNothing).Create(&some), 3, some)

		all := []Order{{Name: "new4", Amount: 3}, {Name: "a", Amount: 4}, {Name: "new5", Amount: 5}}
		w.upserted(t, w.Clauses(updateAll).Create(&all), 4, all)

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
		if !w.readsReturning(t) {
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
		if w.readsReturning(t) {
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
		w.maps(t, "id", maps...)
	})
}
