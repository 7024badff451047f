package gormshardkey_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/gormshardkey"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// lastGapped is the last key of GAPPED, whose keys are 7 apart: counting on from
// the first one is wrong at once.
var lastGapped atomic.Int64

func init() {
	lastGapped.Store(1 << 40)
	register("GAPPED", gapped{1})
	register("GAPPED_NEGATIVE", gapped{-1})
	register("GAPPED_TEXT", gappedTexts{})
}

func register(name string, g spi.KeyGenerator) {
	spi.RegisterKeyGenerator(name, func(spi.Props) (spi.KeyGenerator, error) { return g, nil })
}

type gapped struct{ sign int64 }

func (g gapped) GenerateInt64Keys(_ context.Context, _ spi.Column, keys []int64) error {
	n := int64(len(keys))
	first := lastGapped.Add(7*n) - 7*(n-1)
	for i := range keys {
		keys[i] = g.sign * (first + int64(7*i))
	}
	return nil
}

func (g gapped) GenerateKeys(ctx context.Context, c spi.Column, n int) ([]any, error) {
	return spi.KeysFromInts(ctx, g, c, n)
}

type gappedTexts struct{}

func (gappedTexts) GenerateKeys(ctx context.Context, c spi.Column, n int) ([]any, error) {
	keys, err := gapped{1}.GenerateKeys(ctx, c, n)
	for i, key := range keys {
		keys[i] = fmt.Sprint("k", key)
	}
	return keys, err
}

const ruleText = `
rules:
- !SHARDING
  tables:
    t_order: {actualDataNodes: 'ds.orders_${0..40}', keyGenerateStrategy: {column: ID, keyGeneratorName: gap}}
    items: {keyGenerateStrategy: {column: id, keyGeneratorName: gap}}
    profiles: {keyGenerateStrategy: {column: id, keyGeneratorName: gap}}
    customers: {keyGenerateStrategy: {column: id, keyGeneratorName: gap}}
    tags: {keyGenerateStrategy: {column: id, keyGeneratorName: gap}}
    notes: {keyGenerateStrategy: {column: id, keyGeneratorName: gap}}
    owners: {keyGenerateStrategy: {column: id, keyGeneratorName: gap}}
    cards: {keyGenerateStrategy: {column: id, keyGeneratorName: gap}}
    pages: {keyGenerateStrategy: {column: id, keyGeneratorName: gap}}
    marks: {keyGenerateStrategy: {column: id, keyGeneratorName: gap}}
    kinds: {keyGenerateStrategy: {column: id, keyGeneratorName: gap}}
    negatives: {keyGenerateStrategy: {column: id, keyGeneratorName: negative}}
    unsigneds: {keyGenerateStrategy: {column: id, keyGeneratorName: gap}}
    texts: {keyGenerateStrategy: {column: id, keyGeneratorName: text}}
    uuids: {keyGenerateStrategy: {column: id, keyGeneratorName: uuid}}
    binaries: {keyGenerateStrategy: {column: id, keyGeneratorName: binary}}
    parts: {keyGenerateStrategy: {column: seq, keyGeneratorName: gap}}
    numbered: {keyGenerateStrategy: {column: order_no, keyGeneratorName: gap}}
    other_key: {keyGenerateStrategy: {column: order_no, keyGeneratorName: gap}}
  keyGenerators:
    gap: {type: GAPPED}
    negative: {type: GAPPED_NEGATIVE}
    text: {type: GAPPED_TEXT}
    uuid: {type: UUID, props: {format: canonical}}
    binary: {type: UUID, props: {format: binary}}
`

// tables have a column "name" that is unique, by which a row is found again. AUTO
// is AUTO_INCREMENT, or nothing.
var tables = []string{
	"orders_37 (id BIGINT AUTO PRIMARY KEY, name VARCHAR(40) UNIQUE, amount INT NOT NULL DEFAULT 1, customer_id BIGINT, deleted_at DATETIME NULL)",
	"items (id BIGINT UNSIGNED AUTO PRIMARY KEY, order_id BIGINT, name VARCHAR(40) UNIQUE)",
	"profiles (id BIGINT AUTO PRIMARY KEY, customer_id BIGINT, name VARCHAR(40) UNIQUE)",
	"customers (id BIGINT AUTO PRIMARY KEY, name VARCHAR(40) UNIQUE)",
	"tags (id BIGINT AUTO PRIMARY KEY, name VARCHAR(40) UNIQUE)",
	"order_tags (order_id BIGINT, tag_id BIGINT, PRIMARY KEY (order_id, tag_id))",
	"notes (id BIGINT AUTO PRIMARY KEY, owner_id BIGINT, owner_type VARCHAR(40), name VARCHAR(40) UNIQUE)",
	"kinds (id BIGINT AUTO PRIMARY KEY, name VARCHAR(40) UNIQUE)",
	"negatives (id BIGINT AUTO PRIMARY KEY, name VARCHAR(40) UNIQUE)",
	"unsigneds (id BIGINT UNSIGNED AUTO PRIMARY KEY, name VARCHAR(40) UNIQUE)",
	"texts (id VARCHAR(40) PRIMARY KEY, name VARCHAR(40) UNIQUE)",
	"uuids (id CHAR(36) PRIMARY KEY, name VARCHAR(40) UNIQUE)",
	"binaries (id BINARY(16) PRIMARY KEY, name VARCHAR(40) UNIQUE)",
	"parts (shop BIGINT, seq BIGINT, name VARCHAR(40) UNIQUE, PRIMARY KEY (shop, seq))",
	"numbered (id BIGINT NOT NULL DEFAULT 0, order_no BIGINT PRIMARY KEY, name VARCHAR(40) UNIQUE)",
	"other_key (id BIGINT AUTO_INCREMENT PRIMARY KEY, order_no BIGINT UNIQUE, name VARCHAR(40) UNIQUE)",
	"unlisted (id BIGINT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) UNIQUE, amount INT NOT NULL DEFAULT 1)",
}

// mode is one way to open a database.
type mode struct {
	form      string // option, use, dialector, conn
	auto      bool   // key columns have AUTO_INCREMENT
	prepare   bool
	returning bool // where the server has it
}

// modes are a selection of the combinations: each value occurs with each value of the other
// settings.
var modes = []mode{
	{"option", true, false, true},
	{"option", false, true, false},
	{"use", false, true, true},
	{"use", true, false, false},
	{"dialector", true, true, false},
	{"dialector", false, false, true},
}

// world is a database as a test sees it.
type world struct {
	*gorm.DB
	mode
	dsn   string  // for the driver "shardkey"
	plain *sql.DB // without shardkey
}

// each runs a test on each server and in each mode, in a database with the tables
// that are named.
func each(t *testing.T, self func(*testing.T), tables string, test func(t *testing.T, w *world)) {
	t.Helper()
	if testserver.Each(t, self) {
		return
	}
	for _, m := range modes {
		t.Run(fmt.Sprintf("%s,auto=%t,prepare=%t,returning=%t", m.form, m.auto, m.prepare, m.returning), func(t *testing.T) {
			test(t, newWorld(t, m, strings.Fields(tables)))
		})
	}
}

func newWorld(t *testing.T, m mode, names []string) *world {
	t.Helper()
	base := testserver.Database(t)
	w := &world{mode: m, plain: must.Open(t, "mysql", base)}
	auto := ""
	if m.auto {
		auto = "AUTO_INCREMENT"
	}
	for _, table := range tables {
		if name, _, _ := strings.Cut(table, " "); !slices.Contains(names, name) {
			continue
		}
		text := "CREATE TABLE " + strings.Replace(table, "AUTO PRIMARY", auto+" PRIMARY", 1)
		must.Get(w.plain.Exec(text))(t, text)
	}
	w.dsn = base + "?parseTime=true&shardkeyRule=" + registerRule(t)
	w.DB = w.open(t, &gorm.Config{PrepareStmt: m.prepare, Logger: logger.Discard})
	return w
}

func registerRule(t *testing.T) string {
	t.Helper()
	r := must.Get(rule.Parse("gormshardkey", []byte(ruleText)))(t)
	name := strings.NewReplacer("/", ".", ",", ".", "=", "").Replace(t.Name())
	must.Do(t, driver.RegisterRule(name, r))
	t.Cleanup(func() { driver.DeregisterRule(name) })
	return name
}

// open opens the database another time, in the mode's form.
func (w *world) open(t *testing.T, config *gorm.Config) *gorm.DB {
	t.Helper()
	cfg := mysql.Config{DSN: w.dsn, DriverName: "shardkey", DisableWithReturning: !w.returning}
	var db *gorm.DB
	var err error
	switch w.form {
	case "option":
		db, err = gorm.Open(mysql.New(cfg), config, gormshardkey.Plugin{})
	case "use":
		if db, err = gorm.Open(mysql.New(cfg), config); err == nil {
			err = db.Use(gormshardkey.Plugin{})
		}
	default:
		cfg.DriverName = ""
		db, err = gorm.Open(gormshardkey.New(cfg), config)
	}
	must.Do(t, err)
	closeAtEnd(t, db)
	return db.WithContext(t.Context())
}

// readsReturning reports whether GORM reads keys by RETURNING.
func (w *world) readsReturning(t *testing.T) bool {
	t.Helper()
	return w.returning && testserver.Has(t, testserver.MariaDB, "RETURNING")
}

func closeAtEnd(t *testing.T, db *gorm.DB) {
	t.Helper()
	pool := must.Get(db.DB())(t)
	t.Cleanup(func() { pool.Close() })
}

// key returns the value of a row's column as a string, "no row" without a row.
func (w *world) key(t *testing.T, table, column, name string) string {
	t.Helper()
	return w.find(t, table, column, "name", name)
}

// find returns the value of a column of the row with a unique value as a string.
func (w *world) find(t *testing.T, table, column, unique, value string) string {
	t.Helper()
	var key string
	err := w.plain.QueryRow("SELECT COALESCE("+column+", '') FROM "+table+" WHERE "+unique+" = ?", value).Scan(&key)
	if err == sql.ErrNoRows {
		return "no row"
	}
	must.Do(t, err)
	return key
}

// has compares a model's key with its row's.
func (w *world) has(t *testing.T, table, name string, have any) {
	t.Helper()
	w.hasIn(t, table, "id", name, have)
}

func (w *world) hasIn(t *testing.T, table, column, name string, have any) {
	t.Helper()
	if want := w.key(t, table, column, name); fmt.Sprint(have) != want {
		t.Errorf("%s %q: %s\nhave: %v\nwant: %s", table, name, column, have, want)
	}
}

func (w *world) orders(t *testing.T, orders ...Order) {
	t.Helper()
	for _, o := range orders {
		w.has(t, "orders_37", o.Name, o.ID)
	}
}

func ok(t *testing.T, db *gorm.DB) *gorm.DB {
	t.Helper()
	if db.Error != nil {
		t.Fatal(db.Error)
	}
	return db
}

func affected(t *testing.T, db *gorm.DB, want int64) {
	t.Helper()
	if ok(t, db).RowsAffected != want {
		t.Errorf("rows affected\nhave: %d\nwant: %d", db.RowsAffected, want)
	}
}

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
