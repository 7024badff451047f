package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/internal/schema"
	"github.com/shardkey/shardkey/rule"
	"github.com/spf13/pflag"
)

// dsnVariable is the environment variable that is used without --dsn.
const dsnVariable = "SHARDKEY_DSN"

// dsnFlag declares --dsn, which means the same in every command.
func dsnFlag(fs *pflag.FlagSet, value *[]string) {
	fs.StringArrayVar(value, "dsn", nil, "`database`: a DSN, env:NAME for an environment variable, or @FILE;\n"+
		"DATA_SOURCE=database for a data source of the rule, repeatable\n(default env:"+dsnVariable+")")
}

// database is one value of --dsn.
type database struct {
	name      string // of the rule's data source; empty if none is given
	dsn       string // without the parameters of shardkey
	config    *mysql.Config
	connector driver.Connector
}

var (
	namedDSN    = regexp.MustCompile(`(?s)^([\pL_][\pL\pN_.-]*)=(.*)$`)
	variableDSN = regexp.MustCompile(`^env:([A-Za-z_][A-Za-z0-9_]*)$`)
)

// databases reads the values of --dsn, or SHARDKEY_DSN; there may be none. The errors
// show nothing that may be a part of a password.
func (p *program) databases(given []string) (list []database, err error) {
	if len(given) == 0 && os.Getenv(dsnVariable) != "" {
		given = []string{"env:" + dsnVariable}
	}
	for _, text := range given {
		d, err := p.database(text)
		if err != nil {
			return nil, err
		}
		if d.name != "" && slices.ContainsFunc(list, func(other database) bool { return other.name == d.name }) {
			return nil, usagef("--dsn %s=… is given twice", d.name)
		}
		list = append(list, d)
	}
	return list, nil
}

// database reads a value of --dsn. An identifier before the first = is the name of a data
// source, and what follows is a reference or a DSN. Any other = belongs to a DSN.
func (p *program) database(text string) (d database, err error) {
	if m := namedDSN.FindStringSubmatch(text); m != nil {
		d.name, text = m[1], m[2]
	}
	where := "--dsn"
	if isReference(text) {
		where += " " + text
		if text, err = p.referred(text); err != nil {
			return d, err
		}
	}
	if d.parse(text) != nil {
		return d, usagef("%s: expected a DSN in go-sql-driver's form, user:password@tcp(127.0.0.1:3306)/shop", where)
	}
	return d, nil
}

func isReference(text string) bool {
	return strings.HasPrefix(text, "@") || variableDSN.MatchString(text)
}

// referred returns the DSN in an environment variable, a file, or standard input.
func (p *program) referred(reference string) (string, error) {
	if m := variableDSN.FindStringSubmatch(reference); m != nil {
		dsn := strings.TrimSpace(os.Getenv(m[1]))
		if dsn == "" {
			return "", usagef("--dsn %s: the environment variable is not set", reference)
		}
		return dsn, nil
	}
	read := os.ReadFile
	if reference == "@-" {
		read = func(string) ([]byte, error) { return p.readAll() }
	}
	content, err := read(reference[1:])
	if err != nil {
		return "", fmt.Errorf("--dsn %s: %w", reference, err)
	}
	return strings.TrimSpace(string(content)), nil
}

// parse reads a DSN, which may have parameters of shardkey.
func (d *database) parse(text string) (err error) {
	if text == "" {
		return errors.New("empty") // which go-sql-driver takes for its defaults
	}
	d.dsn = withoutParameters(text)
	if d.config, err = parseDSN(d.dsn); err != nil {
		return err
	}
	d.config.Logger = &mysql.NopLogger{}
	d.connector, err = mysql.NewConnector(d.config)
	return err
}

// withoutParameters drops the parameters that begin with shardkey. The parameters follow
// the last ? that has a whole DSN before it: a password may contain ?, and the path of a
// rule /.
func withoutParameters(dsn string) string {
	for i := strings.LastIndexByte(dsn, '?'); i >= 0; i = strings.LastIndexByte(dsn[:i], '?') {
		_, err := parseDSN(dsn[:i])
		if err != nil || strings.Contains(dsn[strings.LastIndexByte(dsn[:i], '/'):i], "?") {
			continue // a ? of the password, or of a parameter
		}
		rest := slices.DeleteFunc(strings.Split(dsn[i+1:], "&"), func(parameter string) bool {
			return strings.HasPrefix(strings.ToLower(parameter), "shardkey")
		})
		return strings.TrimSuffix(dsn[:i+1]+strings.Join(rest, "&"), "?")
	}
	return dsn
}

// parseDSN is mysql.ParseDSN, which panics for a parameter that it no longer supports.
func parseDSN(text string) (cfg *mysql.Config, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("unsupported parameter")
		}
	}()
	return mysql.ParseDSN(text)
}

// someDatabases is databases for a command that needs one.
func (p *program) someDatabases(given []string) ([]database, error) {
	list, err := p.databases(given)
	if err == nil && len(list) == 0 {
		err = usagef("no database: use --dsn, such as --dsn env:SHOP_DSN, or set %s", dsnVariable)
	}
	return list, err
}

func onlyOne(list []database) error {
	if len(list) > 1 {
		return usagef("expected one --dsn: run the command once for each database")
	}
	return nil
}

// checkSources refuses names that are no data sources of the rule.
func checkSources(r *rule.Rule, databases []database) error {
	sources := r.DataSources()
	for _, d := range databases {
		known := len(sources) == 0 || slices.ContainsFunc(sources, func(s string) bool {
			return strings.EqualFold(s, d.name) || strings.Contains(s, "${")
		})
		switch {
		case d.name == "" && len(databases) > 1:
			example := append(sources, "ds_0")[0]
			return usagef("several --dsn: name the data source of each, such as --dsn %s=…", example)
		case d.name != "" && !known:
			return usagef("%s has no data source %q; it has %s%s",
				r.Name(), d.name, list(sources), didYouMean(d.name, sources))
		}
	}
	return nil
}

// address is the database without user and password.
func (d *database) address() string {
	return fmt.Sprintf("%s(%s)/%s", d.config.Net, d.config.Addr, d.config.DBName)
}

// withoutPassword is a DSN that shows no secret.
func (d *database) withoutPassword() string { return d.config.User + "@" + d.address() }

// read reads the schema of the database, and others on its server, and passes it to use
// with the connection.
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
		return usagef("--dsn names no database after the last slash: %s", d.address())
	}
	return use(conn, read)
}
