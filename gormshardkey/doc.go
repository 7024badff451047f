// Package gormshardkey is a GORM plugin that sets the keys of created rows in their structs and
// maps.
//
// Without the plugin, GORM adds 1, 2 and so on to LastInsertId. This is right for one row and for
// consecutive keys. It is wrong for keys with gaps, for keys that aren't integers, and for existing
// rows of an upsert or INSERT IGNORE. With the plugin, each element gets the key of its row, of any
// type. An element keeps its zero value if its row was not inserted or its key is unknown. The plugin
// does nothing that GORM does right.
//
// # Opening
//
// Pass the plugin as an option of gorm.Open. This is the recommended way:
//
//	import (
//		"github.com/shardkey/shardkey/gormshardkey"
//		"gorm.io/driver/mysql"
//		"gorm.io/gorm"
//	)
//
//	db, err := gorm.Open(mysql.New(mysql.Config{
//		DriverName: "shardkey", // the one line to change
//		DSN:        "user:pass@tcp(127.0.0.1:3306)/app?parseTime=true&shardkeyRule=rule.yaml",
//	}), &gorm.Config{}, gormshardkey.Plugin{})
//
// For an open database, pass it to Use:
//
//	err := db.Use(gormshardkey.Plugin{})
//
// Or use the dialector, whose Name is "mysql":
//
//	db, err := gorm.Open(gormshardkey.Open(dsn), &gorm.Config{})
//
// The plugin replaces the callback "gorm:create". Callbacks before and after it stay in place. If
// another plugin replaces the callback later, this plugin has no effect.
//
// # Supported methods
//
// The plugin works with Create, CreateInBatches, Save, FirstOrCreate, associations and the generics
// interface. It accepts structs, slices and arrays of structs or pointers, maps, and slices of
// maps. A key is missing if the field is zero or nil, or if it is a pointer or a driver.Valuer to
// zero. Hooks before the INSERT can set the key. Hooks after it and saved associations see the key.
//
// The field is that of the rule's key column, even if it isn't the primary key. A map without a
// model gets its key as the entry "@id", as in GORM.
//
// If a field can't store its key, for example an int32 field and a SNOWFLAKE, the error is a
// [FieldError], or database/sql's if GORM reads the key by RETURNING. GORM then rolls back its default
// transaction.
//
// # Upserts
//
// On MySQL, a Create of one row with clause.OnConflict gets the key of its row, whether the row is
// new or existed. In a Create of several rows, new rows get their keys, and existing rows keep zero,
// since MySQL doesn't report their keys. If the key column isn't the primary key, OnConflict with
// UpdateAll changes the key of an existing row.
//
// If associations need the key of an existing row, the plugin reads it by the values of the table's
// unique indexes. It uses the INSERT's connection, with a shared lock. If it doesn't find exactly one
// row, Create returns [ErrUnknownKey].
//
// # RETURNING
//
// On MariaDB 10.5 and later, GORM reads the primary key and other columns with a default by
// RETURNING, also of existing rows. The plugin keeps that. It repairs two forms. After IGNORE, GORM
// would assign rows to the wrong elements, since the server returns fewer rows. To a slice of maps,
// GORM would append the rows.
//
// # WithKeys
//
// The plugin uses driver.WithKeys for the INSERT only. If you add Keys to the context of
// db.WithContext, they receive the keys of the last statement of the Create, which may be an
// association's. A connection pool between GORM and the driver must pass the context on. Otherwise
// the plugin has no effect.
//
// db.Exec and db.Raw have no model, so the plugin sets no keys. DryRun and ToSQL generate no keys.
package gormshardkey
