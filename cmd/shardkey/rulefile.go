package main

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/lint"
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/nearest"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	// ruleVariable is the environment variable that names the rule file. ruleDefault is the
	// file that is used if the variable isn't set.
	ruleVariable = "SHARDKEY_RULE"
	ruleDefault  = "rule.yaml"

	// offlineDSN stands for the application's database in commands that don't connect.
	// offlineName is its name in the descriptions of generators.
	offlineDSN  = "app@tcp(the-applications-own:3306)/database"
	offlineName = "the-applications-own:3306/database"
)

// withPassword matches strings that may be a DSN with a password.
var withPassword = regexp.MustCompile(`(?s):.*@`)

// ruleFlag declares --rule for a command that needs a rule.
func ruleFlag(fs *pflag.FlagSet) {
	fs.String("rule", "", "rule `file`, or - for standard input (default $"+ruleVariable+", then ./"+ruleDefault+")")
}

func ruleFile(c *cobra.Command) (string, error) {
	if f := c.Flag("rule"); f.Changed {
		return f.Value.String(), nil
	}
	return defaultRuleFile()
}

func defaultRuleFile() (string, error) {
	if file := os.Getenv(ruleVariable); file != "" {
		return file, nil
	}
	if _, err := os.Stat(ruleDefault); err == nil {
		return ruleDefault, nil
	}
	return "", usagef("no rule file: $%s is not set and ./%s does not exist", ruleVariable, ruleDefault)
}

// rule reads the rule file of a command.
func (p *program) rule(c *cobra.Command) (*rule.Rule, error) {
	file, err := ruleFile(c)
	if err != nil {
		return nil, err
	}
	return p.loadRule(file)
}

// loadRule reads a rule file. "-" is standard input.
func (p *program) loadRule(file string) (*rule.Rule, error) {
	switch {
	case file == "", withPassword.MatchString(file):
		return nil, usagef("expected the name of a rule file, found %s", quoted(file))
	case file != "-":
		return rule.Load(file)
	}
	content, err := p.readAll()
	if err != nil {
		return nil, err
	}
	return rule.Parse(stdinName, content)
}

// openRule reads a rule file and opens its generators, which don't connect before use.
func (p *program) openRule(file, dsn string) (*rule.Rule, *rule.Live, error) {
	r, err := p.loadRule(file)
	if err != nil {
		return nil, nil, err
	}
	live, err := r.Open(p.host(dsn))
	return r, live, err
}

func (p *program) host(dsn string) spi.Host {
	return spi.Host{DSN: spi.NewSecret(dsn), Clock: p.clock, Logger: p.logger()}
}

// openWith opens a rule's generators with the application's database from --dsn, if given.
func (p *program) openWith(r *rule.Rule) (*rule.Live, error) {
	databases, err := p.databases(0, 1)
	if err == nil {
		err = checkSources(r, databases)
	}
	if err != nil {
		return nil, err
	}
	dsn := ""
	for _, d := range databases {
		dsn = d.dsn
	}
	live, err := r.Open(p.host(dsn))
	if prop := (*spi.PropError)(nil); errors.As(err, &prop) && prop.Name == "dsn" && dsn == "" {
		err = fmt.Errorf("%w: use --dsn", err)
	}
	return live, err
}

func generatorNames(r *rule.Rule) (names []string) {
	for _, t := range r.Tables() {
		if !slices.Contains(names, t.GeneratorName) {
			names = append(names, t.GeneratorName)
		}
	}
	return names
}

// generatorName returns the name of a generator in the spelling of the rule's tables.
func generatorName(r *rule.Rule, name string) (string, error) {
	names := generatorNames(r)
	i := slices.IndexFunc(names, func(known string) bool { return strings.EqualFold(known, name) })
	if i < 0 {
		return "", usagef("%s has no generator %s; its tables use %s%s",
			r.Name(), quoted(name), list(names), didYouMean(name, names))
	}
	return names[i], nil
}

func tableNames(r *rule.Rule) (names []string) {
	for _, t := range r.Tables() {
		names = append(names, t.Logical)
	}
	return names
}

// allTableNames returns the logical and actual tables of a rule without duplicates.
func allTableNames(r *rule.Rule) (names []string) {
	for _, t := range r.Tables() {
		names = append(names, t.Logical)
		names = append(names, t.Actual...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// nearestTable suggests a table of a rule for a misspelt name, and keeps the number at its
// end. It returns "" if no table is similar, or if the names differ only in their numbers.
func nearestTable(r *rule.Rule, name string) string {
	unnumbered := func(name string) string { return strings.TrimRight(name, "0123456789_-") }
	var tables []string
	for _, table := range tableNames(r) {
		tables = append(tables, unnumbered(table))
	}
	base := unnumbered(name)
	word := nearest.Word(base, tables)
	if word != "" && !strings.EqualFold(word, base) && nearest.Distance(base, word) <= max(1, len(base)/8) {
		return word + name[len(base):]
	}
	return ""
}

// offline plans statements under a rule without a connection.
type offline struct {
	*sql.DB
	connector *driver.Connector
	rule      *rule.Rule
	mode      sqltoken.Mode
}

// openOffline opens a rule file for a kind of server and a sql_mode. Both may be empty.
func (p *program) openOffline(c *cobra.Command, server, sqlMode string) (*offline, error) {
	r, err := p.rule(c)
	if err != nil {
		return nil, err
	}
	mode, err := parseMode(sqlMode)
	if err != nil {
		return nil, err
	}
	const name = "shardkey-plan"
	if err := driver.RegisterRule(name, r); err != nil {
		return nil, err
	}
	defer driver.DeregisterRule(name)
	dsn := offlineDSN + "?multiStatements=true&shardkeyRule=" + name
	if sqlMode != "" {
		dsn += "&sql_mode=" + url.QueryEscape("'"+sqlMode+"'")
	}
	quiet := driver.WithLogger(slog.New(slog.DiscardHandler))
	db, connector, err := driver.Open(dsn, driver.Config{Server: server}, driver.WithClock(p.clock), quiet)
	if err != nil {
		return nil, err
	}
	return &offline{db, connector, r, mode}, nil
}

func (o *offline) linter() *lint.Linter {
	return &lint.Linter{Connector: o.connector, Names: allTableNames(o.rule), Mode: o.mode}
}

// modeWords are the modes that sql_mode may contain in MySQL 5.7 to 9 and MariaDB. Most
// don't affect INSERTs, but users copy them from SELECT @@sql_mode.
var modeWords = strings.Fields(`
	ALLOW_INVALID_DATES ANSI ANSI_QUOTES DB2 EMPTY_STRING_IS_NULL ERROR_FOR_DIVISION_BY_ZERO
	HIGH_NOT_PRECEDENCE IGNORE_BAD_TABLE_OPTIONS IGNORE_SPACE MAXDB MSSQL MYSQL323 MYSQL40
	NO_AUTO_CREATE_USER NO_AUTO_VALUE_ON_ZERO NO_BACKSLASH_ESCAPES NO_DIR_IN_CREATE
	NO_ENGINE_SUBSTITUTION NO_FIELD_OPTIONS NO_KEY_OPTIONS NO_TABLE_OPTIONS
	NO_UNSIGNED_SUBTRACTION NO_ZERO_DATE NO_ZERO_IN_DATE ONLY_FULL_GROUP_BY ORACLE
	PAD_CHAR_TO_FULL_LENGTH PIPES_AS_CONCAT POSTGRESQL REAL_AS_FLOAT SIMULTANEOUS_ASSIGNMENT
	STRICT_ALL_TABLES STRICT_TRANS_TABLES TIME_ROUND_FRACTIONAL TIME_TRUNCATE_FRACTIONAL
	TRADITIONAL`)

func parseMode(text string) (sqltoken.Mode, error) {
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if word != "" && !slices.Contains(modeWords, strings.ToUpper(word)) {
			return 0, usagef("--sql-mode: unknown mode %q%s", word, didYouMean(word, modeWords))
		}
	}
	return sqltoken.ParseMode(text), nil
}
