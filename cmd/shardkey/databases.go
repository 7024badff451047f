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

// dsnHelp describes the flag -dsn, the same for every command that has it.
const dsnHelp = "a database's data source `name`, or ds_0=name for the data source ds_0 of the\n" +
	"rule. env:NAME takes it from an environment variable, @file from a file (@- is\n" +
	"standard input), also behind ds_0=: other users of the machine see a command's\n" +
	"arguments. Parameters that begin with shardkey are dropped. Without -dsn it is\n" +
	"what the environment variable SHARDKEY_DSN says"

// ownHelp is that of commands that need a database for some rules only.
const ownHelp = dsnHelp + ".\nGenerators and worker-id assigners that work in the application's own database\nneed it"

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

// databases reads what the flags -dsn say, or SHARDKEY_DSN: none where neither says
// anything. The errors show nothing of it, as it holds passwords.
func (p *program) databases(given []string) (list []database, err error) {
	if len(given) == 0 && os.Getenv("SHARDKEY_DSN") != "" {
		given = []string{"env:SHARDKEY_DSN"}
	}
	for _, text := range given {
		d := database{}
		if m := sourceName.FindStringSubmatch(text); m != nil {
			d.name, text = m[1], m[2]
		}
		if text, err = p.revealed(text); err != nil {
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

// someDatabases are those of a command that needs one at least.
func (p *program) someDatabases(given []string) ([]database, error) {
	list, err := p.databases(given)
	if err == nil && len(list) == 0 {
		err = usagef("give the database with -dsn, as -dsn 'user:password@tcp(127.0.0.1:3306)/shop' or -dsn env:SHOP_DSN")
	}
	return list, err
}

// onlyOne refuses several databases.
func onlyOne(list []database) error {
	if len(list) > 1 {
		return usagef("give one -dsn: run the command once for each database")
	}
	return nil
}

// revealed finds a data source name where other users don't see its password: in an
// environment variable or a file.
func (p *program) revealed(given string) (dsn string, err error) {
	if variable, ok := strings.CutPrefix(given, "env:"); ok {
		if dsn = strings.TrimSpace(os.Getenv(variable)); dsn == "" {
			err = usagef("-dsn: the environment variable %s is not set", variable)
		}
		return dsn, err
	}
	file, ok := strings.CutPrefix(given, "@")
	if !ok {
		return given, nil
	}
	var text []byte
	if file == "-" {
		file = stdinName
		text, err = p.readText()
	} else {
		text, err = os.ReadFile(file)
	}
	dsn = strings.TrimSpace(string(text))
	if err == nil && dsn == "" {
		err = fmt.Errorf("%s holds no data source name", file)
	}
	return dsn, err
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
