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
	"github.com/shardkey/shardkey/cmd/shardkey/internal/migrate"
	"github.com/shardkey/shardkey/cmd/shardkey/internal/textfile"
	"github.com/shardkey/shardkey/internal/plainsession"
	"github.com/shardkey/shardkey/rule"
	"github.com/spf13/pflag"
)

// dsnVariable is the environment variable with the DSN for commands without --dsn.
const dsnVariable = "SHARDKEY_DSN"

// dsnFlag declares --dsn, which has the same forms in every command.
func (p *program) dsnFlag(fs *pflag.FlagSet) {
	fs.StringArrayVar(&p.dsns, "dsn", nil, "`database`: a DSN, env:NAME for an environment variable, or @FILE;\n"+
		"DATA_SOURCE=database for one data source of the rule; repeatable\n(default env:"+dsnVariable+")")
}

type database struct {
	name      string // data source of the rule, or ""
	dsn       string // without shardkey's parameters
	config    *mysql.Config
	connector driver.Connector
}

var (
	namedDSN    = regexp.MustCompile(`(?s)^([\pL_][\pL\pN_.-]*)=(.*)$`)
	variableDSN = regexp.MustCompile(`^env:([A-Za-z_][A-Za-z0-9_]*)$`)
)

// databases parses least to most values of --dsn, or SHARDKEY_DSN if there are none. Errors show no
// part of a DSN, since it may contain a password.
func (p *program) databases(least, most int) (list []database, err error) {
	given := p.dsns
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
	switch {
	case len(list) < least:
		return nil, usagef("no database: use --dsn, such as --dsn env:SHOP_DSN, or set %s", dsnVariable)
	case len(list) > most:
		return nil, usagef("expected one --dsn: run the command once for each database")
	}
	return list, nil
}

// database parses a value of --dsn. An identifier before the first "=" names a data source,
// and the rest is a reference or a DSN. Any other "=" is part of the DSN.
func (p *program) database(text string) (d database, err error) {
	if m := namedDSN.FindStringSubmatch(text); m != nil {
		d.name, text = m[1], m[2]
	}
	where := "--dsn"
	if strings.HasPrefix(text, "@") || variableDSN.MatchString(text) {
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

// referred reads the DSN from an environment variable, a file, or standard input.
func (p *program) referred(reference string) (string, error) {
	if m := variableDSN.FindStringSubmatch(reference); m != nil {
		dsn := strings.TrimSpace(os.Getenv(m[1]))
		if dsn == "" {
			return "", usagef("--dsn %s: the environment variable is not set", reference)
		}
		return dsn, nil
	}
	read := textfile.Read
	if reference == "@-" {
		read = func(string) ([]byte, error) { return p.readAll() }
	}
	content, err := read(reference[1:])
	if err != nil {
		return "", fmt.Errorf("--dsn %s: %w", reference, err)
	}
	return strings.TrimSpace(string(content)), nil
}

func (d *database) parse(text string) (err error) {
	if text == "" {
		return errors.New("empty") // go-sql-driver would connect to its default address
	}
	d.dsn = withoutParameters(text)
	if d.config, err = parseDSN(d.dsn); err != nil {
		return err
	}
	d.config.Logger = &mysql.NopLogger{}
	plainsession.Set(d.config)
	d.connector, err = mysql.NewConnector(d.config)
	return err
}

// withoutParameters drops the DSN's parameters that begin with "shardkey". A password may
// contain "?", so the parameters follow the last "?" that is preceded by a complete DSN.
// The value of a parameter, such as the path of a rule, may contain "/".
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

// parseDSN calls mysql.ParseDSN, which panics for a parameter that it no longer supports,
// and returns an error instead.
func parseDSN(text string) (cfg *mysql.Config, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("unsupported parameter")
		}
	}()
	return mysql.ParseDSN(text)
}

// checkSources returns an error if a database's name is no data source of the rule.
func checkSources(r *rule.Rule, databases []database) error {
	sources := r.DataSources()
	for _, d := range databases {
		known := len(sources) == 0 || slices.ContainsFunc(sources, func(s string) bool {
			return strings.EqualFold(s, d.name) || strings.Contains(s, "${")
		})
		switch {
		case d.name == "" && len(databases) > 1:
			example := append(sources, "ds_0")[0]
			return usagef("several --dsn: each needs the name of its data source, such as --dsn %s=…", example)
		case d.name != "" && !known:
			return usagef("%s has no data source %q; it has %s%s",
				r.Name(), d.name, list(sources), didYouMean(d.name, sources))
		}
	}
	return nil
}

// address returns the database's network address and name, without user and password.
func (d *database) address() string {
	return fmt.Sprintf("%s(%s)/%s", d.config.Net, d.config.Addr, d.config.DBName)
}

// read reads the schema of the database, and of the others on its server. It passes the
// schema to use, with the connection.
func (d *database) read(ctx context.Context, others []string, use func(*sql.Conn, migrate.Source) error) error {
	db := sql.OpenDB(d.connector)
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("cannot connect to %s: %w", d.address(), err)
	}
	defer conn.Close()
	read, err := migrate.Read(ctx, conn, others...)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", d.address(), err)
	case d.config.DBName == "":
		return usagef("--dsn: expected a database name after the last slash, found %s", d.address())
	}
	withoutPassword := mysql.NewConfig()
	withoutPassword.User, withoutPassword.Net, withoutPassword.Addr = d.config.User, d.config.Net, d.config.Addr
	withoutPassword.DBName = d.config.DBName
	read.DSN = withoutPassword.FormatDSN()
	return use(conn, read)
}
