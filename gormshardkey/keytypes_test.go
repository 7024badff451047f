package gormshardkey_test

import (
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"

	"github.com/google/uuid"
	"github.com/shardkey/shardkey/gormshardkey"
	"gorm.io/gorm"
)

// row is a model of one kind of key.
type row[K any] struct {
	ID   K `gorm:"primaryKey;default:(-)"`
	Name string
}

// plainRow is one without a default, whose zero key is sent.
type plainRow[K any] struct {
	ID   K `gorm:"primaryKey;autoIncrement:false"`
	Name string
}

// testKeys creates rows of a key type, some with explicit keys, and compares their keys with the
// table's. text converts both for the comparison.
func testKeys[K any](t *testing.T, w *world, table string, own K, text func(K) string) {
	t.Helper()
	prefix := fmt.Sprintf("%T", own)
	prefix = prefix[max(0, len(prefix)-20):]
	name := func(s string) string { return prefix + s }
	many := []row[K]{{Name: name("a")}, {Name: name("b")}, {Name: name("c"), ID: own}}
	create(t, w, table, many, func(r row[K]) (string, any) { return r.Name, text(r.ID) })
	ok(t, w.Table(table).Where("name = ?", name("c")).Delete(&row[K]{}))
	one := row[K]{Name: name("d")}
	ok(t, w.Table(table).Create(&one))
	w.has(t, table, one.Name, text(one.ID))
	sent := []*plainRow[K]{{Name: name("e")}, {Name: name("f")}, {Name: name("g"), ID: own}}
	create(t, w, table, sent, func(r *plainRow[K]) (string, any) { return r.Name, text(r.ID) })
	ok(t, w.Table(table).Where("name = ?", name("g")).Delete(&row[K]{}))
}

// create creates rows, and compares their keys with the table's. key returns an element's name and
// key.
func create[T any](t *testing.T, w *world, table string, rows []T, key func(T) (name string, key any)) {
	t.Helper()
	ok(t, w.Table(table).Create(&rows))
	for _, r := range rows {
		name, have := key(r)
		w.has(t, table, name, have)
	}
}

func sprint[K any](k K) string { return fmt.Sprint(k) }

// myInt and myText are types of a program.
type myInt int64

type myText string

// only is a type of a program whose Scan accepts one form: []byte, which go-sql-driver returns for
// a string column, or a string, or an integer, similar to a decimal package.
type only[T []byte | string | int64] struct{ key T }

func (o *only[T]) Scan(src any) error {
	key, ok := src.(T)
	if !ok && src != nil {
		return fmt.Errorf("%T does not scan a %T", *o, src)
	}
	o.key = key
	return nil
}

func (o only[T]) Value() (driver.Value, error) { return o.key, nil }

func (o only[T]) GormDataType() string {
	if _, ok := any(o.key).(int64); ok {
		return "bigint"
	}
	return "varchar(40)"
}

func pointer[T any](v T) *T { return &v }

func TestKeyTypes_integers(t *testing.T) {
	each(t, TestKeyTypes_integers, "kinds negatives unsigneds", func(t *testing.T, w *world) {
		testKeys(t, w, "kinds", int64(5), sprint[int64])
		testKeys(t, w, "kinds", int(5), sprint[int])
		testKeys(t, w, "kinds", uint64(5), sprint[uint64])
		testKeys(t, w, "kinds", uint(5), sprint[uint])
		testKeys(t, w, "kinds", myInt(5), sprint[myInt])
		texts := []row[string]{{Name: "t1"}, {Name: "t2"}, {Name: "t3", ID: "6"}}
		create(t, w, "kinds", texts, func(r row[string]) (string, any) { return r.Name, r.ID })
		testKeys(t, w, "kinds", pointer(int64(5)), func(k *int64) string { return fmt.Sprint(*k) })
		testKeys(t, w, "kinds", sql.NullInt64{Int64: 5, Valid: true}, func(k sql.NullInt64) string { return fmt.Sprint(k.Int64) })
		testKeys(t, w, "kinds", sql.Null[int64]{V: 5, Valid: true}, func(k sql.Null[int64]) string { return fmt.Sprint(k.V) })
		testKeys(t, w, "kinds", only[int64]{5}, func(k only[int64]) string { return fmt.Sprint(k.key) })
		testKeys(t, w, "negatives", int64(-5), sprint[int64])
		testKeys(t, w, "unsigneds", uint64(5), sprint[uint64])
	})
}

func TestKeyTypes_texts(t *testing.T) {
	each(t, TestKeyTypes_texts, "texts", func(t *testing.T, w *world) {
		testKeys(t, w, "texts", "own", sprint[string])
		testKeys(t, w, "texts", myText("own"), sprint[myText])
		testKeys(t, w, "texts", []byte("own"), func(k []byte) string { return string(k) })
		testKeys(t, w, "texts", pointer("own"), func(k *string) string { return *k })
		testKeys(t, w, "texts", sql.NullString{String: "own", Valid: true}, func(k sql.NullString) string { return k.String })
		testKeys(t, w, "texts", only[[]byte]{[]byte("own")}, func(k only[[]byte]) string { return string(k.key) })
	})
}

func TestKeyTypes_uuids(t *testing.T) {
	each(t, TestKeyTypes_uuids, "uuids binaries", func(t *testing.T, w *world) {
		text := func(u uuid.UUID) string { return u.String() }
		rows := []row[uuid.UUID]{{Name: "a"}, {Name: "b"}, {Name: "c", ID: uuid.New()}}
		create(t, w, "uuids", rows, func(r row[uuid.UUID]) (string, any) { return r.Name, r.ID })
		testKeys(t, w, "uuids", uuid.NewString(), sprint[string])
		testKeys(t, w, "uuids", uuid.NullUUID{UUID: uuid.New(), Valid: true}, func(k uuid.NullUUID) string { return text(k.UUID) })
		testKeys(t, w, "uuids", pointer(uuid.New()), func(k *uuid.UUID) string { return text(*k) })

		binary := []row[uuid.UUID]{{Name: "x"}, {Name: "y"}}
		ok(t, w.Table("binaries").Create(&binary))
		for _, r := range binary {
			w.hasIn(t, "binaries", "LOWER(HEX(id))", r.Name, hex.EncodeToString(r.ID[:]))
		}
		raw := []row[[]byte]{{Name: "p"}, {Name: "q"}}
		ok(t, w.Table("binaries").Create(&raw))
		for _, r := range raw {
			w.hasIn(t, "binaries", "LOWER(HEX(id))", r.Name, hex.EncodeToString(r.ID))
		}
		raw[0].ID[0]++ // a key's bytes belong to the model
		w.hasIn(t, "binaries", "LOWER(HEX(id))", "q", hex.EncodeToString(raw[1].ID))
	})
}

// A pointer to zero, and a Valuer that returns zero, request a key as zero does.
func TestKeyTypes_pointersToZero(t *testing.T) {
	each(t, TestKeyTypes_pointersToZero, "kinds", func(t *testing.T, w *world) {
		rows := []plainRow[*int64]{{Name: "a", ID: new(int64)}, {Name: "b"}, {Name: "c", ID: pointer(int64(3))}}
		create(t, w, "kinds", rows, func(r plainRow[*int64]) (string, any) { return r.Name, *r.ID })
		valuers := []plainRow[sql.NullInt64]{{Name: "d", ID: sql.NullInt64{Valid: true}}, {Name: "e"}}
		create(t, w, "kinds", valuers, func(r plainRow[sql.NullInt64]) (string, any) { return r.Name, r.ID.Int64 })
	})
}

// refused checks that a Create fails, and that no row is left. If the plugin sets the key, the error
// is a FieldError.
func (w *world) refused(t *testing.T, table string, rows any) {
	t.Helper()
	err := w.Table(table).Create(rows).Error
	switch e, ok := errors.AsType[*gormshardkey.FieldError](err); {
	case !ok && err != nil && w.readsReturning(t):
	case !ok || e.Field != "ID" || e.Column != "id":
		t.Errorf("%s %T: have %v, want a FieldError", table, rows, err)
	case err.Error() != e.Error(), strings.Contains(err.Error(), fmt.Sprint(e.Key)):
		t.Errorf("%s %T: have %s, want one error without the key", table, rows, err)
	}
	must.Equal(t, w.key(t, table, "COUNT(*)", "small"), "0", table, rows, "rows are left")
}

// testSmall creates rows whose key field can't store the key. With a default, GORM reads the key by
// RETURNING.
func testSmall[K comparable](t *testing.T, w *world, table string) {
	t.Helper()
	sent, one := []*plainRow[K]{{Name: "small"}, {Name: "b"}}, row[K]{Name: "small"}
	many := []row[K]{{Name: "small"}, {Name: "b"}, {Name: "c"}}
	w.refused(t, table, sent)
	w.refused(t, table, &one)
	w.refused(t, table, &many)
	if w.readsReturning(t) {
		return // GORM may have set a field to what it could read
	}
	var zero K
	for _, have := range []K{sent[0].ID, sent[1].ID, one.ID, many[0].ID, many[2].ID} {
		must.Equal(t, have, zero, table)
	}
}

func TestKeyTypes_tooSmallAField(t *testing.T) {
	each(t, TestKeyTypes_tooSmallAField, "kinds negatives texts", func(t *testing.T, w *world) {
		testSmall[int32](t, w, "kinds")
		testSmall[uint16](t, w, "kinds")
		if !w.readsReturning(t) { // by which GORM rounds the key
			testSmall[float32](t, w, "kinds")
		}
		testSmall[sql.NullInt32](t, w, "kinds")
		testSmall[uint64](t, w, "negatives")
		w.refused(t, "texts", &row[only[int64]]{Name: "small"})       // its Scan accepts an integer only
		w.refused(t, "texts", &plainRow[only[string]]{Name: "small"}) // go-sql-driver returns []byte
		w.refused(t, "texts", &[]row[int64]{{Name: "small"}, {Name: "b"}})
	})
}

type Base struct {
	ID int64
}

type embedded struct {
	Base
	Name string
}

type prefixed struct {
	Key struct {
		ID int64 `gorm:"primaryKey"`
	} `gorm:"embedded"`
	Name string
}

type renamed struct {
	Number int64 `gorm:"column:id;primaryKey"`
	Name   string
}

type embeddedPointer struct {
	*Base
	Name string
}

type readOnly struct {
	ID   int64 `gorm:"->;primaryKey"`
	Name string
}

type writeOnly struct {
	ID   int64 `gorm:"->:false;<-:create;primaryKey"`
	Name string
}

func TestKeyTypes_whereTheFieldIs(t *testing.T) {
	each(t, TestKeyTypes_whereTheFieldIs, "kinds parts", func(t *testing.T, w *world) {
		kinds := func() *gorm.DB { return w.Table("kinds") }
		a := []embedded{{Name: "a1"}, {Name: "a2"}, {Base: Base{5}, Name: "a3"}}
		create(t, w, "kinds", a, func(r embedded) (string, any) { return r.Name, r.ID })
		b := []prefixed{{Name: "b1"}, {Name: "b2"}}
		create(t, w, "kinds", b, func(r prefixed) (string, any) { return r.Name, r.Key.ID })
		c := []*renamed{{Name: "c1"}, {Name: "c2"}}
		create(t, w, "kinds", c, func(r *renamed) (string, any) { return r.Name, r.Number })
		d := []embeddedPointer{{Name: "d1"}, {Name: "d2", Base: &Base{}}}
		create(t, w, "kinds", d, func(r embeddedPointer) (string, any) { return r.Name, r.ID })
		ignored := []embeddedPointer{{Name: "d1"}, {Name: "d2"}}
		if ok(t, kinds().Clauses(ignore).Create(&ignored)); ignored[0].Base != nil || ignored[1].Base != nil {
			t.Errorf("rows that were ignored have structs for a key: %v, %v", ignored[0].Base, ignored[1].Base)
		}
		e := []readOnly{{Name: "e1"}, {Name: "e2"}}
		create(t, w, "kinds", e, func(r readOnly) (string, any) { return r.Name, r.ID })
		f := []writeOnly{{Name: "f1"}, {Name: "f2"}, {ID: 6, Name: "f3"}}
		ok(t, kinds().Create(&f))
		if f[0].ID != 0 || f[1].ID != 0 || f[2].ID != 6 {
			t.Errorf("a field that is not to be read: %v", f)
		}
		parts := []Part{{Shop: 1, Name: "p1"}, {Shop: 1, Name: "p2"}, {Shop: 2, Seq: 4, Name: "p3"}}
		ok(t, w.Create(&parts))
		for _, p := range parts {
			w.hasIn(t, "parts", "seq", p.Name, p.Seq)
			w.hasIn(t, "parts", "shop", p.Name, p.Shop)
		}
		type keyOnly struct{ ID int64 }
		var alone [2]keyOnly
		ok(t, kinds().Create(&alone))
		if n := strconv.FormatInt(alone[0].ID, 10); alone[0].ID == 0 || alone[1].ID != 0 && alone[1].ID-alone[0].ID != 7 {
			t.Errorf("elements without another column: %s, %d", n, alone[1].ID)
		}
	})
}
