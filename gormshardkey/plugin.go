package gormshardkey

import (
	"errors"
	"reflect"
	"slices"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
)

// Plugin gives what is created the keys of its rows. It is an option of
// gorm.Open and a plugin for db.Use. The zero value is ready, and one value
// serves any number of databases.
type Plugin struct{}

var (
	_ gorm.Plugin = Plugin{}
	_ gorm.Option = Plugin{}
)

// createCallback is the callback of GORM's that runs the INSERT.
const createCallback = "gorm:create"

// Name is the plugin's name in gorm.Config.Plugins: "shardkey". A second db.Use
// of it is gorm.ErrRegistered.
func (Plugin) Name() string { return "shardkey" }

// Apply adds the plugin to those of the configuration, which gorm.Open
// initializes. gorm.Open calls it.
func (p Plugin) Apply(config *gorm.Config) error {
	if config.Plugins == nil {
		config.Plugins = map[string]gorm.Plugin{}
	}
	config.Plugins[p.Name()] = p
	return nil
}

// AfterInitialize does nothing: see [Plugin.Apply]. gorm.Open calls it.
func (Plugin) AfterInitialize(*gorm.DB) error { return nil }

// Initialize puts the plugin around the callback "gorm:create" of a database, once.
// gorm.Open and db.Use call it, gorm.Open also for what is in use already.
func (Plugin) Initialize(db *gorm.DB) error {
	processor := db.Callback().Create()
	stock := processor.Get(createCallback)
	if stock == nil {
		return errors.New("gormshardkey: the database has no callback " + createCallback +
			": initialize the plugin after the dialector, and after plugins that remove it")
	}
	if isOurs(stock) {
		return nil
	}
	c := &creator{
		stock: stock,
		// What the dialector registers for a server without RETURNING.
		exec: callbacks.Create(&callbacks.Config{CreateClauses: mysql.CreateClauses}),
	}
	if slices.Contains(processor.Clauses, "RETURNING") {
		c.rules = rulesOf(db)
	}
	return processor.Replace(createCallback, c.create)
}

// isOurs reports whether a callback is the plugin's.
func isOurs(callback func(*gorm.DB)) bool {
	return reflect.ValueOf(callback).Pointer() == reflect.ValueOf((*creator)(nil).create).Pointer()
}
