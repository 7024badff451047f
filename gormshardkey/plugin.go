package gormshardkey

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
)

// Plugin sets the keys of created rows in their structs and maps. Pass it to gorm.Open as an option
// or to db.Use as a plugin. The zero value is ready to use, and one value works for any number of
// databases.
type Plugin struct{}

var (
	_ gorm.Plugin = Plugin{}
	_ gorm.Option = Plugin{}
)

// createCallback is GORM's callback for INSERTs.
const createCallback = "gorm:create"

// Name returns "shardkey", the plugin's name in gorm.Config.Plugins. A second db.Use returns
// gorm.ErrRegistered.
func (Plugin) Name() string { return "shardkey" }

// Apply adds the plugin to the configuration. gorm.Open calls it, and then initializes the plugin.
func (p Plugin) Apply(config *gorm.Config) error {
	if config.Plugins == nil {
		config.Plugins = map[string]gorm.Plugin{}
	}
	config.Plugins[p.Name()] = p
	return nil
}

// AfterInitialize does nothing; see [Plugin.Apply]. gorm.Open calls it.
func (Plugin) AfterInitialize(*gorm.DB) error { return nil }

// Initialize replaces the callback "gorm:create" of a database, once. gorm.Open and db.Use call it.
// The error is for a database without this callback.
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
	return processor.Replace(createCallback, (&creator{stock}).create)
}

func isOurs(callback func(*gorm.DB)) bool {
	return reflect.ValueOf(callback).Pointer() == reflect.ValueOf((*creator)(nil).create).Pointer()
}

// dialector is the dialector of gorm.io/driver/mysql with the plugin.
type dialector struct{ *mysql.Dialector }

var (
	_ gorm.Dialector                     = dialector{}
	_ gorm.SavePointerDialectorInterface = dialector{}
	_ gorm.ErrorTranslator               = dialector{}
)

// Open returns a dialector for the driver "shardkey". The data source name is go-sql-driver's with
// the parameter shardkeyRule; see package driver.
func Open(dsn string) gorm.Dialector { return New(mysql.Config{DSN: dsn}) }

// New is [Open] with the options of mysql.Config. DriverName is "shardkey" by default. To use a
// driver that wraps shardkey, for example for tracing, set its name.
func New(config mysql.Config) gorm.Dialector {
	config.DriverName = cmp.Or(config.DriverName, "shardkey")
	return dialector{mysql.New(config).(*mysql.Dialector)}
}

// Initialize opens the database and initializes the plugin. gorm.Open calls it. The error is the
// database's or the plugin's.
func (d dialector) Initialize(db *gorm.DB) error {
	if err := d.Dialector.Initialize(db); err != nil {
		return err
	}
	if err := (Plugin{}).Apply(db.Config); err != nil {
		return err
	}
	return Plugin{}.Initialize(db)
}

const shownAs = "gormshardkey dialector"

// Format writes the type's name for every verb, since the data source name may contain a password.
func (d dialector) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, shownAs) }

// MarshalText returns the type's name, for the same reason as Format.
func (d dialector) MarshalText() ([]byte, error) { return []byte(shownAs), nil }
