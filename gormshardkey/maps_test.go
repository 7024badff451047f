package gormshardkey_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

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
