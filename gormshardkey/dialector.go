package gormshardkey

import (
	"fmt"
	"io"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
)

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
	if config.DriverName == "" {
		config.DriverName = "shardkey"
	}
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
