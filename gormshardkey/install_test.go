package gormshardkey_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/gormshardkey"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// Every way in which the plugin gets into a database.
func TestInstall_forms(t *testing.T) {
	if testserver.Each(t, TestInstall_forms) {
		return
	}
	w := newWorld(t, mode{form: "use", auto: true, returning: true}, []string{"orders_37"})
	stock := func() gorm.Dialector { return mysql.New(mysql.Config{DriverName: "shardkey", DSN: w.dsn}) }
	replaced := &replacements{Interface: logger.Discard}
	quiet := func() *gorm.Config { return &gorm.Config{Logger: replaced} }
	shared := quiet()
	plugin := gormshardkey.Plugin{}
	for name, open := range map[string]func() (*gorm.DB, error){
		"option alone":           func() (*gorm.DB, error) { return gorm.Open(stock(), plugin) },
		"option, then config":    func() (*gorm.DB, error) { return gorm.Open(stock(), plugin, quiet()) },
		"option as a pointer":    func() (*gorm.DB, error) { return gorm.Open(stock(), quiet(), &plugin) },
		"option twice":           func() (*gorm.DB, error) { return gorm.Open(stock(), quiet(), plugin, plugin) },
		"dialector and option":   func() (*gorm.DB, error) { return gorm.Open(gormshardkey.Open(w.dsn), quiet(), plugin) },
		"dialector alone":        func() (*gorm.DB, error) { return gorm.Open(gormshardkey.Open(w.dsn)) },
		"config used once":       func() (*gorm.DB, error) { return gorm.Open(stock(), shared, plugin) },
		"config used twice":      func() (*gorm.DB, error) { return gorm.Open(stock(), shared, plugin) },
		"config for a dialector": func() (*gorm.DB, error) { return gorm.Open(gormshardkey.Open(w.dsn), shared) },
		"in the config": func() (*gorm.DB, error) {
			c := quiet()
			c.Plugins = map[string]gorm.Plugin{"shardkey": plugin}
			return gorm.Open(stock(), c)
		},
		"over a pool": func() (*gorm.DB, error) {
			return gorm.Open(mysql.New(mysql.Config{Conn: must.Open(t, "shardkey", w.dsn)}), quiet(), plugin)
		},
		"dialector over a pool": func() (*gorm.DB, error) {
			return gorm.Open(gormshardkey.New(mysql.Config{Conn: must.Open(t, "shardkey", w.dsn)}), quiet())
		},
		"initialized twice": func() (*gorm.DB, error) {
			db := must.Get(gorm.Open(stock(), quiet(), plugin))(t)
			return db, plugin.Initialize(db)
		},
		"without asking the version": func() (*gorm.DB, error) {
			return gorm.Open(mysql.New(mysql.Config{DriverName: "shardkey", DSN: w.dsn, SkipInitializeWithVersion: true}), quiet(), plugin)
		},
	} {
		t.Run(name, func(t *testing.T) {
			replaced.n = 0
			db := must.Get(open())(t)
			closeAtEnd(t, db)
			if alone := strings.HasSuffix(name, "alone"); !alone && replaced.n != 1 {
				t.Errorf("the callback was replaced %d times", replaced.n)
			}
			must.Equal(t, db.Name(), "mysql", "the dialector's name")
			orders := named(name+"1", name+"2", name+"3")
			ok(t, db.Create(&orders))
			w.orders(t, orders...)
			must.Is(t, db.Use(plugin), gorm.ErrRegistered, "used once more")
		})
	}
}

// replacements counts GORM's log lines about replaced callbacks.
type replacements struct {
	logger.Interface
	n int
}

func (r *replacements) Info(_ context.Context, format string, _ ...any) {
	if strings.HasPrefix(format, "replacing callback") {
		r.n++
	}
}

// gorm.Open returns the database's error, not one of the plugin.
func TestInstall_databaseThatDoesNotOpen(t *testing.T) {
	for name, open := range map[string]func() (*gorm.DB, error){
		"option": func() (*gorm.DB, error) {
			return gorm.Open(mysql.New(mysql.Config{DriverName: "shardkey", DSN: "u@tcp(127.0.0.1:1)/db"}), &gorm.Config{Logger: logger.Discard}, gormshardkey.Plugin{})
		},
		"dialector": func() (*gorm.DB, error) {
			return gorm.Open(gormshardkey.Open("u@tcp(127.0.0.1:1)/db"), &gorm.Config{Logger: logger.Discard})
		},
	} {
		must.Is(t, must.Err(open()), driver.ErrNoRule, name)
	}
	none := must.Get(gorm.Open(nil, &gorm.Config{Logger: logger.Discard}))(t) // no dialector registers callbacks
	must.FailWith(t, (gormshardkey.Plugin{}).Initialize(none), "gorm:create", "a database without the callback")
}

// Callbacks of others stay where they are, whether they come before the plugin or
// after it.
func TestInstall_callbacksKeepTheirPlaces(t *testing.T) {
	if testserver.Each(t, TestInstall_callbacksKeepTheirPlaces) {
		return
	}
	w := newWorld(t, mode{form: "use", auto: true, returning: true}, []string{"orders_37"})
	db := must.Get(gorm.Open(mysql.New(mysql.Config{DriverName: "shardkey", DSN: w.dsn}), &gorm.Config{Logger: logger.Discard}))(t)
	closeAtEnd(t, db)
	var steps []string
	step := func(name string) func(*gorm.DB) {
		return func(db *gorm.DB) {
			o := db.Statement.Dest.(*Order)
			steps = append(steps, fmt.Sprintf("%s %t", name, o.ID != 0))
		}
	}
	register := func(when string) {
		create := db.Callback().Create()
		must.Do(t, create.Before("gorm:create").Register("before:"+when, step("before, "+when)))
		must.Do(t, create.After("gorm:create").Register("after:"+when, step("after, "+when)))
	}
	register("first")
	must.Do(t, db.Use(gormshardkey.Plugin{}))
	register("then")
	ok(t, db.Create(&Order{Name: "a"}))
	slices.Sort(steps)
	if have, want := strings.Join(steps, "; "), "after, first true; after, then true; before, first false; before, then false"; have != want {
		t.Errorf("whether there is a key\nhave: %s\nwant: %s", have, want)
	}
}

func TestInstall_resolver(t *testing.T) {
	each(t, TestInstall_resolver, "orders_37 items", func(t *testing.T, w *world) {
		replica := mysql.New(mysql.Config{DriverName: "shardkey", DSN: w.dsn, DisableWithReturning: !w.returning})
		must.Do(t, w.Use(dbresolver.Register(dbresolver.Config{
			Sources:  []gorm.Dialector{gormshardkey.New(mysql.Config{DSN: w.dsn, DisableWithReturning: !w.returning})},
			Replicas: []gorm.Dialector{replica},
		})))
		orders := []Order{{Name: "a", Items: []Item{{Name: "a1"}, {Name: "a2"}}}, {Name: "b"}, {ID: 5, Name: "c"}}
		ok(t, w.Create(&orders))
		w.family(t, orders...)
		must.Do(t, w.Transaction(func(tx *gorm.DB) error {
			more := named("d", "e")
			if err := tx.Clauses(dbresolver.Write, clause.OnConflict{DoNothing: true}).Create(&more).Error; err != nil {
				return err
			}
			var found []Order
			if err := tx.Where("name IN ?", []string{"d", "e"}).Order("name").Find(&found).Error; err != nil {
				return err
			}
			if len(found) != 2 || found[0].ID != more[0].ID || found[1].ID != more[1].ID {
				t.Errorf("have: %v\nwant: %v", more, found)
			}
			return nil
		}))
		skipped := named("f", "g")
		ok(t, w.Session(&gorm.Session{SkipDefaultTransaction: true}).Create(&skipped))
		w.orders(t, skipped...)
	})
}

// The columns that GORM's migrator makes are AUTO_INCREMENT.
func TestInstall_autoMigrate(t *testing.T) {
	each(t, TestInstall_autoMigrate, "", func(t *testing.T, w *world) {
		must.Do(t, w.AutoMigrate(&Customer{}, &Profile{}, &Tag{}, &Item{}))
		customers := []Customer{{Name: "a", Profile: &Profile{Name: "pa"}}, {Name: "b", Profile: &Profile{Name: "pb"}}}
		ok(t, w.Create(&customers))
		for _, c := range customers {
			w.has(t, "customers", c.Name, c.ID)
			w.has(t, "profiles", c.Profile.Name, c.Profile.ID)
			w.hasIn(t, "profiles", "customer_id", c.Profile.Name, c.ID)
		}
	})
}

func TestDialector_showsNoPassword(t *testing.T) {
	d := gormshardkey.Open("u:geheim@tcp(127.0.0.1:1)/d?shardkeyRule=r")
	for _, v := range []any{d, &d, []gorm.Dialector{d}, struct{ D any }{d}} {
		text := must.Get(json.Marshal(v))(t)
		for _, shown := range []string{string(text), fmt.Sprint(v), fmt.Sprintf("%+v %#v %s %q %x", v, v, v, v, v)} {
			if strings.Contains(shown, "geheim") || strings.Contains(shown, fmt.Sprintf("%x", "geheim")) {
				t.Errorf("%T shows the password: %s", v, shown)
			}
		}
	}
}
