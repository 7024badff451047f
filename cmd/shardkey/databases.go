package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/internal/schema"
)

// databasesHelp describes a flag -dsn that is given once a database.
const databasesHelp = "a database's data source `name`, or ds_0=name for the data source ds_0; once for\neach. env:NAME and ds_0=env:NAME take it from an environment variable, @file from a\nfile (@- is standard input): other users of the machine see a command's arguments. Without\n-dsn it is what the environment variable SHARDKEY_DSN says"

// database is one that -dsn names.
type database struct {
	name      string // of the data source; empty when none is given
	dsn       string
	config    *mysql.Config
	connector driver.Connector
}

var (
	sourceName = regexp.MustCompile(`^([\pL_][\pL\pN_.-]*)=(.*)$`)
	ourParam   = regexp.MustCompile(`(?i)([?&])shardkey\w*=[^&]*&?`)
)

// databases reads what the flags -dsn say. The errors show nothing of it, as it holds
// passwords.
func (p *program) databases(given []string) (list []database, err error) {
	if len(given) == 0 && os.Getenv("SHARDKEY_DSN") != "" {
		given = []string{"env:SHARDKEY_DSN"}
	}
	if len(given) == 0 {
		return nil, usagef("give the database with -dsn, as -dsn 'user:password@tcp(127.0.0.1:3306)/shop' or -dsn env:SHOP_DSN")
	}
	for _, text := range given {
		d := database{}
		if m := sourceName.FindStringSubmatch(text); m != nil {
			d.name, text = m[1], m[2]
		}
		if variable, ok := strings.CutPrefix(text, "env:"); ok {
			if text = strings.TrimSpace(os.Getenv(variable)); text == "" {
				return nil, usagef("-dsn: the environment variable %s is not set", variable)
			}
		} else if text, err = p.readDSN(text); err != nil {
			return nil, err
		}
		for _, other := range list {
			if other.name == d.name && d.name != "" {
				return nil, usagef("-dsn %s=… is given twice", d.name)
			}
		}
		if err := d.parse(text); err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// parse reads a data source name, which may have the wrapper's parameters.
func (d *database) parse(text string) (err error) {
	d.dsn = strings.TrimRight(ourParam.ReplaceAllString(text, "$1"), "?&")
	if d.config, err = mysql.ParseDSN(d.dsn); err == nil {
		d.config.Logger = &mysql.NopLogger{}
		d.connector, err = mysql.NewConnector(d.config)
	}
	if err != nil {
		return usagef("-dsn %sis not a data source name in go-sql-driver's form, as user:password@tcp(127.0.0.1:3306)/shop", strings.TrimPrefix(d.name+" ", " "))
	}
	return nil
}

// address is the database without user and password.
func (d *database) address() string {
	return fmt.Sprintf("%s(%s)/%s", d.config.Net, d.config.Addr, d.config.DBName)
}

// withoutPassword is a data source name that shows no secret.
func (d *database) withoutPassword() string { return d.config.User + "@" + d.address() }

// read reads the database's schema, and others on its server, and passes it on with its
// connection.
func (d *database) read(ctx context.Context, others []string, use func(*sql.Conn, *schema.Database) error) error {
	db := sql.OpenDB(d.connector)
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("%s cannot be reached: %w", d.address(), err)
	}
	defer conn.Close()
	if err := schema.PrepareSession(ctx, conn); err != nil {
		return fmt.Errorf("%s: %w", d.address(), err)
	}
	read, err := schema.Read(ctx, conn, others...)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", d.address(), err)
	case read.Name == "":
		return usagef("the data source name %s has no database after the last slash", d.address())
	}
	return use(conn, read)
}
