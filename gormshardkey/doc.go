// Package gormshardkey gives GORM the key of every row that shardkey filled.
//
// GORM knows no more than LastInsertId and counts on from it. That is right for
// one row, and for several as long as their keys are consecutive; it is wrong for
// keys with gaps, for keys that are no integers, and for rows of an upsert or
// INSERT IGNORE that were there already. With this package each element of what
// is created holds the key that its row has, of whatever type, and keeps its
// zero value where that key is not known or the row was not inserted.
//
// # Opening
//
// There are three forms. As an option, which is the recommended one, since the
// dialector stays GORM's own:
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
// for a database that is open already, as mysql.Config.Conn or any other:
//
//	err := db.Use(gormshardkey.Plugin{})
//
// and as a dialector, whose Name is "mysql":
//
//	db, err := gorm.Open(gormshardkey.Open(dsn), &gorm.Config{})
//
// The plugin takes the place of the callback "gorm:create". Callbacks that are
// registered before or after that one stay where they are. Another plugin that
// replaces it later takes this one out.
//
// # What is filled
//
// Create, CreateInBatches, Save, FirstOrCreate, associations and the generics
// interface: structs, slices and arrays of structs or pointers, maps and slices
// of maps. A key is missing where the field is zero, nil, or a pointer or a
// driver.Valuer to zero; hooks before the INSERT may still set it. Hooks after it,
// and the associations that are saved after it, see the key.
//
// The field is that of the rule's key column, whether it is the primary key or
// not. Without a model the key of a map is its entry "@id", as in GORM.
//
// A key that its field cannot hold, as a SNOWFLAKE in an int32, is a
// [FieldError]; GORM's default transaction is rolled back then.
//
// # Upserts
//
// The one row of a Create with clause.OnConflict gets the key that its row has,
// also if that row existed. Of several rows those that were inserted get their
// keys. Those that existed keep their zero, except where there was exactly one, and
// in associations, which GORM saves by upserts: their keys are asked for row by
// row, since what belongs to them would get the foreign key 0. Where keys are no
// integers, those of existing rows are not known.
// Where the key column is not the primary key, OnConflict with UpdateAll gives
// the existing row the new key, as its SQL says.
//
// # RETURNING
//
// On MariaDB from 10.5, GORM reads the primary key and other columns with a
// default by RETURNING. It still does for a plain INSERT of structs, and for the
// upserts by which it saves associations, so that there those that existed have
// their keys too. For other upserts, INSERT IGNORE and maps it would give some
// elements the values of other rows, add maps to a slice, and count the rows
// returned as those affected; with a table of the rule such statements run as they
// do on MySQL. A clause.Returning that the caller gives is left as it is, and of
// its rows the keys are corrected where GORM may have mixed them up.
//
// # WithKeys
//
// The driver tells the keys by driver.WithKeys, which the plugin puts into the
// statement's context around the INSERT alone. Keys that the caller has put into
// the context of db.WithContext are those of the last statement of the Create: of
// an association, where there is one. A connection pool between GORM and the
// driver has to pass the context on; where one does not, GORM's own way stands.
//
// db.Exec and db.Raw have no model, and nothing is filled. DryRun and ToSQL make
// no key.
package gormshardkey
