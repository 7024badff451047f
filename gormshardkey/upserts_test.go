package gormshardkey_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/shardkey/shardkey/gormshardkey"
	"github.com/shardkey/shardkey/internal/test/must"
)

func init() {
	schema.RegisterSerializer("hidden", hidden{})
	schema.RegisterSerializer("public", public{})
}

// hidden shows a key in another form, as hash IDs do.
type hidden struct{}

const mask = 0x5a5a5a5a

func (hidden) Scan(ctx context.Context, field *schema.Field, dst reflect.Value, value any) error {
	field.ReflectValueOf(ctx, dst).SetUint(uint64(value.(int64)) ^ mask)
	return nil
}

func (hidden) Value(_ context.Context, _ *schema.Field, _ reflect.Value, value any) (any, error) {
	if value == uint64(0) {
		return nil, nil
	}
	return int64(value.(uint64) ^ mask), nil
}

// public shows a key as a string.
type public struct{}

func (public) Scan(ctx context.Context, field *schema.Field, dst reflect.Value, value any) error {
	field.ReflectValueOf(ctx, dst).SetString("p_" + strconv.FormatInt(value.(int64), 36))
	return nil
}

func (public) Value(_ context.Context, _ *schema.Field, _ reflect.Value, value any) (any, error) {
	text, ok := strings.CutPrefix(value.(string), "p_")
	switch {
	case value == "":
		return nil, nil
	case !ok:
		return nil, errors.New("not a public key")
	}
	return strconv.ParseInt(text, 36, 64)
}

type hiddenRow struct {
	ID   uint64 `gorm:"primaryKey;type:bigint;serializer:hidden"`
	Name string
}

type publicRow struct {
	ID   string `gorm:"primaryKey;type:bigint;serializer:public"`
	Name string
}

type publicSentRow struct {
	ID   string `gorm:"primaryKey;type:bigint;serializer:public;autoIncrement:false;default:null"`
	Name string
}

// A serializer reads the key as it reads the column.
func TestKeyTypes_serializers(t *testing.T) {
	each(t, TestKeyTypes_serializers, "kinds", func(t *testing.T, w *world) {
		testSerializer(t, w, func(r *hiddenRow) (*string, any) { return &r.Name, int64(r.ID ^ mask) })
		parse := func(id string) any { return must.Get(public{}.Value(t.Context(), nil, reflect.Value{}, id))(t) }
		testSerializer(t, w, func(r *publicRow) (*string, any) { return &r.Name, parse(r.ID) })
		testSerializer(t, w, func(r *publicSentRow) (*string, any) { return &r.Name, parse(r.ID) })
	})
}

func testSerializer[T any](t *testing.T, w *world, row func(*T) (name *string, key any)) {
	t.Helper()
	table := func() *gorm.DB { return w.Table("kinds") }
	rows := make([]T, 4)
	for i := range rows {
		name, _ := row(&rows[i])
		*name = fmt.Sprintf("%T%d", rows[0], i)
	}
	has := func() {
		t.Helper()
		for i := range rows {
			name, key := row(&rows[i])
			w.has(t, "kinds", *name, key)
		}
	}
	batch := rows[1:]
	ok(t, table().Create(&rows[0]))
	ok(t, table().Create(&batch))
	has()
	for i := range rows {
		name, _ := row(&rows[i])
		*name += " renamed"
		ok(t, table().Save(&rows[i]))
	}
	has()
	var n int64
	if ok(t, table().Count(&n)); n != 4 {
		t.Errorf("%T: Save has inserted a second row: %d rows", rows, n)
	}
	for i := range rows {
		affected(t, table().Delete(&rows[i]), 1)
	}
}

// The struct of an existing row has another key, which the row's children must not get.
func TestUpsert_explicitKeys(t *testing.T) {
	each(t, TestUpsert_explicitKeys, orderTables, func(t *testing.T, w *world) {
		for _, conflict := range []clause.Expression{doNothing, updateAll, ignore} {
			prefix := fmt.Sprintf("%T%v", conflict, conflict)[:12] + fmt.Sprint(lastGapped.Add(7))
			there := []Order{{Name: prefix + "a"}, {Name: prefix + "b"}}
			ok(t, w.Create(&there))
			base := lastGapped.Load() - 1<<39
			orders := []Order{
				{ID: base, Name: prefix + "new"}, {ID: base + 1, Name: prefix + "a"}, {Name: prefix + "b"}, {ID: base + 2, Name: prefix + "new2"},
			}
			for i := range orders {
				orders[i].Items = []Item{{Name: fmt.Sprint(prefix, "i", i)}}
			}
			ok(t, w.Clauses(conflict).Create(&orders))
			w.family(t, orders...)
			one := Order{ID: base + 3, Name: prefix + "a", Items: []Item{{Name: prefix + "one"}}}
			ok(t, w.Clauses(conflict).Create(&one))
			w.family(t, one)
		}
	})
}

// A row that isn't found is an error, and its children aren't stored.
func TestUpsert_unknownKey(t *testing.T) {
	each(t, TestUpsert_unknownKey, orderTables, func(t *testing.T, w *world) {
		must.Get(w.plain.Exec("ALTER TABLE orders_37 DROP INDEX name, ADD short VARCHAR(2) AS (LEFT(name, 2)), ADD UNIQUE (short)"))(t)
		there := []Order{{Name: "aa"}, {Name: "bb"}}
		ok(t, w.Create(&there))
		again := func() []Order {
			return []Order{{Name: "aa!", Items: []Item{{Name: "i"}}}, {Name: "cc", Items: []Item{{Name: "j"}}}, {Name: "bb!"}}
		}
		orders := again()
		if w.readsReturning(t) {
			ok(t, w.Clauses(doNothing).Create(&orders))
			w.hasIn(t, "items", "order_id", "i", there[0].ID)
		} else {
			err := w.Clauses(doNothing).Create(&orders).Error
			must.Is(t, err, gormshardkey.ErrUnknownKey)
			must.Equal(t, w.key(t, "orders_37", "id", "cc"), "no row", "a row of a failed Create")
		}
		orders = again()
		must.Is(t, w.Clauses(ignore).Create(&orders).Error, gormshardkey.ErrUnknownKey)
		orders = again()
		ok(t, w.Omit("Items").Clauses(ignore).Create(&orders)) // needs no key
		must.Equal(t, w.key(t, "items", "COUNT(*)", "j"), map[bool]string{true: "1", false: "0"}[w.readsReturning(t)], "children")
		must.Get(w.plain.Exec("ALTER TABLE orders_37 DROP INDEX short"))(t)
	})
}

// Document has a key that isn't an integer.
type Document[K any] struct {
	ID    K `gorm:"primaryKey"`
	Name  string
	Lines []Line[K] `gorm:"foreignKey:DocumentID"`
}

type Line[K any] struct {
	ID         int64
	DocumentID K
	Name       string
}

func (Document[K]) TableName() string { return "texts" }
func (Line[K]) TableName() string     { return "kinds" }

func TestUpsert_textKeys(t *testing.T) {
	each(t, TestUpsert_textKeys, "texts kinds", func(t *testing.T, w *world) {
		must.Get(w.plain.Exec("ALTER TABLE kinds ADD document_id VARCHAR(40)"))(t)
		testDocuments[string](t, w)
		testDocuments[myText](t, w)
		testDocuments[sql.NullString](t, w)
	})
}

func testDocuments[K comparable](t *testing.T, w *world) {
	t.Helper()
	for _, conflict := range []clause.Expression{doNothing, updateAll, ignore} {
		prefix := fmt.Sprint(lastGapped.Add(7))
		there := []Document[K]{{Name: prefix + "a"}, {Name: prefix + "b"}}
		ok(t, w.Create(&there))
		documents := []Document[K]{{Name: prefix + "a"}, {Name: prefix + "new"}, {Name: prefix + "b"}}
		for i := range documents {
			documents[i].Lines = []Line[K]{{Name: fmt.Sprint(prefix, i)}, {Name: fmt.Sprint(prefix, i, "+")}}
		}
		one := documents[0]
		one.Lines = []Line[K]{{Name: prefix + "one"}}
		ok(t, w.Clauses(conflict).Create(&documents))
		ok(t, w.Clauses(conflict).Create(&one))
		for _, d := range append(documents, one) {
			for _, line := range d.Lines {
				must.Equal(t, line.DocumentID, d.ID)
				w.hasIn(t, "kinds", "document_id", line.Name, w.key(t, "texts", "id", d.Name))
			}
		}
	}
}

// Slices of maps get the keys of their rows, although GORM appends the rows of RETURNING.
func TestUpsert_maps(t *testing.T) {
	each(t, TestUpsert_maps, "orders_37", func(t *testing.T, w *world) {
		ok(t, w.Create(named("a", "b")))
		for i, conflict := range []clause.Expression{doNothing, updateAll, ignore} {
			first, last := fmt.Sprint("first", i), fmt.Sprint("last", i)
			maps := func() []map[string]any {
				return []map[string]any{{"name": first}, {"name": "a"}, {"Name": "b"}, {"name": last}}
			}
			many, value := maps(), maps()
			ok(t, w.Model(&Order{}).Clauses(conflict).Create(&many))
			w.maps(t, "id", many[0], many[3])
			ok(t, w.Model(&Order{}).Clauses(conflict).Create(value))
			if len(many) != 4 {
				t.Errorf("maps have grown: %v", many)
			}
			if _, ignores := conflict.(clause.Insert); w.readsReturning(t) && !ignores {
				w.maps(t, "id", many[0], many[1], value[0], value[1])
				w.has(t, "orders_37", "b", many[2]["id"])
			}
		}
	})
}

// A transaction's snapshot doesn't have the row that another transaction committed.
func TestUpsert_rowNewerThanTheSnapshot(t *testing.T) {
	each(t, TestUpsert_rowNewerThanTheSnapshot, orderTables, func(t *testing.T, w *world) {
		for _, conflict := range []clause.Expression{doNothing, ignore} {
			prefix := fmt.Sprint(lastGapped.Add(7))
			tx := ok(t, w.Begin(&sql.TxOptions{Isolation: sql.LevelRepeatableRead}))
			var before int
			ok(t, tx.Raw("SELECT COUNT(*) FROM orders_37").Scan(&before))
			there := named(prefix+"a", prefix+"b")
			ok(t, w.Create(&there))
			orders := named(prefix+"b", prefix+"new", prefix+"a")
			orders[0].Items, orders[2].Items = []Item{{Name: prefix + "b1"}}, []Item{{Name: prefix + "a1"}}
			err := tx.Clauses(conflict).Create(&orders).Error
			ok(t, tx.Rollback())
			if newer, is := errors.AsType[*mysqldriver.MySQLError](err); is && newer.Number == 1020 {
				continue // innodb_snapshot_isolation of MariaDB 11.8
			}
			must.Do(t, err)
			must.Equal(t, orders[0].ID, there[1].ID, "b")
			must.Equal(t, orders[2].ID, there[0].ID, "a")
		}
	})
}

// Contact has several unique columns, some of which are NULL.
type Contact struct {
	ID     int64
	Name   string
	Email  *string
	Phone  sql.NullString
	Tenant int
	Code   string
	Items  []Item `gorm:"foreignKey:OrderID"`
}

func (Contact) TableName() string { return "orders_37" }

// A row exists by any of the unique indexes, and no two rows by NULL.
func TestUpsert_severalUniqueIndexes(t *testing.T) {
	each(t, TestUpsert_severalUniqueIndexes, orderTables, func(t *testing.T, w *world) {
		must.Get(w.plain.Exec("ALTER TABLE orders_37 ADD email VARCHAR(40) UNIQUE, ADD phone VARCHAR(40) UNIQUE, " +
			"ADD tenant INT, ADD code VARCHAR(40), ADD UNIQUE tenant_code (tenant, code)"))(t)
		there := []Contact{
			{Name: "name", Code: "c1"}, {Name: "email", Email: pointer("e"), Code: "c2"},
			{Name: "phone", Phone: sql.NullString{String: "p", Valid: true}, Code: "c3"}, {Name: "code", Tenant: 5, Code: "c1"},
		}
		ok(t, w.Create(&there))
		items := func(name string) []Item { return []Item{{Name: name}} }
		for _, conflict := range []clause.Expression{doNothing, ignore} {
			prefix := fmt.Sprint(lastGapped.Add(7))
			contacts := []Contact{
				{Name: "NAME", Tenant: 1, Code: prefix, Items: items(prefix + "1")}, // the index ignores case
				{Name: prefix, Email: pointer("e"), Code: prefix, Items: items(prefix + "2")},
				{Name: prefix + "+", Phone: there[2].Phone, Tenant: 2, Code: prefix, Items: items(prefix + "3")},
				{Name: prefix + "-", Tenant: 5, Code: "c1", Items: items(prefix + "4")},
			}
			ok(t, w.Clauses(conflict).Create(&contacts))
			for i, contact := range contacts {
				must.Equal(t, contact.ID, there[i].ID, there[i].Name)
				w.hasIn(t, "items", "order_id", contact.Items[0].Name, there[i].ID)
			}
			both := []Contact{{Name: "name", Email: pointer("e"), Code: prefix, Items: items(prefix + "b")}, {Name: prefix + "new", Code: prefix + "n"}}
			if err := w.Clauses(conflict).Create(&both).Error; err == nil { // the server reports the row
				w.hasIn(t, "items", "order_id", prefix+"b", there[0].ID)
			} else {
				must.Is(t, err, gormshardkey.ErrUnknownKey, "two rows match")
			}
		}
	})
}
