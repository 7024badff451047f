package gormshardkey

import (
	"fmt"
	"io"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
)

// dialector is gorm.io/driver/mysql's with the plugin.
type dialector struct{ *mysql.Dialector }

var (
	_ gorm.Dialector                     = dialector{}
	_ gorm.SavePointerDialectorInterface = dialector{}
	_ gorm.ErrorTranslator               = dialector{}
)

// Open returns a dialector over the driver "shardkey". Its data source name is
// go-sql-driver's with shardkeyRule: see package driver.
func Open(dsn string) gorm.Dialector { return New(mysql.Config{DSN: dsn}) }

// New is [Open] with all that mysql.Config has. DriverName is "shardkey" by
// default; any other is that of a driver around it, as one that traces.
func New(config mysql.Config) gorm.Dialector {
	if config.DriverName == "" {
		config.DriverName = "shardkey"
	}
	return dialector{mysql.New(config).(*mysql.Dialector)}
}

// Initialize opens the database and initializes the plugin. gorm.Open calls it.
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

// Format writes the type's name, whatever the verb: the data source name may have
// a password in it.
func (d dialector) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, shownAs) }

// MarshalText is Format, for JSON and others.
func (d dialector) MarshalText() ([]byte, error) { return []byte(shownAs), nil }
