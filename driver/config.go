package driver

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/internal/nearest"
	"github.com/shardkey/shardkey/internal/rewrite"
	"github.com/shardkey/shardkey/spi"
)

// Config is how a connector works. A field is the DSN's parameter of the same name:
// Server is shardkeyServer. A field that is zero leaves the default, so the zero
// Config is valid. A Config is an [Option].
type Config struct {
	// Server is the kind of the server: "auto", the default, asks for it once in a
	// connector. The others are "mysql", "mariadb", "vitess", "tidb" and "other", an
	// engine that speaks their protocol.
	Server string
	// Unlisted is how an INSERT is handled whose table the rule doesn't list, although
	// its name looks like a shard of a listed table: "refuse", the default, "warn" or
	// "pass". The rule's own setting for a table comes first.
	Unlisted string
	// RuleWarnings is how warnings about the rule are handled: "log", the default, or
	// "error", which refuses the rule.
	RuleWarnings string
	// Verify is whether TiDB's parser checks how statements are understood, before they
	// are sent: "on", the default, or "off". It checks a statement once, before its plan
	// is cached: not one of more than 256 KiB, or 8 KiB without placeholders.
	Verify string
	// Statements is which INSERTs a connection caches the prepared statements of, so that executing
	// one again takes one round trip to the server, and not two or three: "auto", the default,
	// those that the underlying driver prepares for each execution, as go-sql-driver does without
	// interpolateParams; "always", all of them; "off", none.
	//
	// A statement is cached if it has arguments, at most 16 KiB, and no user variable (@). A
	// connection caches 16, each for the types of arguments that it was prepared with, and a
	// connector an eighth of the server's max_prepared_stmt_count, at most 2,048. A small statement
	// takes 16 to 26 kB of the server's memory. SET, USE, CALL, EXECUTE and several statements in
	// one string empty a connection's cache, since they may change how the server reads a
	// statement. When the server has no room for another statement (error 1461), the connector's
	// connections empty their caches and cache no more.
	Statements string
	// Reload is how often the rule's file is checked for changes, from 10 ms to 24 h;
	// 0, the default, is never. See [WatchRule].
	Reload time.Duration
}

// param is a parameter of the DSN. From this table come the parser, the check of a
// [Config] and the table in docs/reference/configuration.md.
type param struct {
	name   string
	values []string // the default first; nil for one that isn't an enumeration
	form   string   // of a parameter without values
	about  string
	field  func(*Config) *string // of a parameter with values
}

// Names of parameters that errors mention.
const (
	paramPrefix     = "shardkey"
	paramRule       = "shardkeyRule"
	paramServer     = "shardkeyServer"
	paramUnlisted   = "shardkeyUnlisted"
	paramWarnings   = "shardkeyRuleWarnings"
	paramVerify     = "shardkeyVerify"
	paramStatements = "shardkeyStatements"
	paramReload     = "shardkeyReload"
)

// params are our parameters. All names that begin with shardkey, in any case, are meant for us.
var params = [...]param{
	{name: paramRule, form: "a path, a name given to `RegisterRule`, or `env:NAME`",
		about: "the rule; required. A path is relative to the working directory. Write `&` in it as `%26`"},
	{name: paramServer,
		values: []string{session.ServerAuto, session.ServerMySQL, session.ServerMariaDB, session.ServerVitess, session.ServerTiDB, session.ServerOther},
		about: "the kind of the server, if its version doesn't show it; " +
			"[what others get](sql.md#engines-that-get-less)",
		field: func(c *Config) *string { return &c.Server }},
	{name: paramUnlisted, values: []string{"refuse", "warn", "pass"},
		about: "how an INSERT is handled into " +
			"[a table that the rule seems to have forgotten](rule-files.md#tables-that-were-forgotten)",
		field: func(c *Config) *string { return &c.Unlisted }},
	{name: paramWarnings, values: []string{"log", "error"},
		about: "how the rule's warnings are handled; `error` refuses the rule",
		field: func(c *Config) *string { return &c.RuleWarnings }},
	{name: paramVerify, values: []string{"on", "off"},
		about: "whether a second parser checks statements before they are sent",
		field: func(c *Config) *string { return &c.Verify }},
	{name: paramStatements, values: []string{statementsAuto, statementsAlways, statementsOff},
		about: "which [prepared statements are cached](sql.md#cached-prepared-statements)",
		field: func(c *Config) *string { return &c.Statements }},
	{name: paramReload, form: "a duration such as `5s`; `off`",
		about: "how often the rule's file is checked for changes: [live reload](rule-files.md#changes-at-run-time). " +
			"The default is `off`"},
}

// Values of Config.Statements.
const (
	statementsAuto   = "auto"
	statementsAlways = "always"
	statementsOff    = "off"
)

func paramOf(name string) (*param, error) {
	var names []string
	for i := range params {
		if params[i].name == name {
			return &params[i], nil
		}
		names = append(names, params[i].name)
	}
	return nil, &DSNError{Param: name, Nearest: nearest.Word(name, names),
		Reason: "no such parameter; known: " + strings.Join(names, ", ")}
}

// set sets the field of a parameter from the DSN.
func (c *Config) set(p *param, value string) (err error) {
	if p.field != nil {
		*p.field(c) = value
		return c.checkParam(p)
	}
	if c.Reload = 0; value != "off" {
		if c.Reload, err = time.ParseDuration(value); err != nil || c.Reload == 0 {
			return reloadError(value)
		}
	}
	return c.checkReload()
}

func (c *Config) check() error {
	for i := range params {
		if err := c.checkParam(&params[i]); err != nil {
			return err
		}
	}
	return c.checkReload()
}

// checkParam refuses a value that a parameter doesn't have, or this build can't do.
func (c *Config) checkParam(p *param) error {
	if p.field == nil {
		return nil
	}
	switch value := *p.field(c); {
	case value != "" && !slices.Contains(p.values, value):
		return &DSNError{Param: p.name, Nearest: nearest.Word(value, p.values),
			Reason: fmt.Sprintf("%q is unknown; it must be one of %s", value, strings.Join(p.values, ", "))}
	case p.name == paramVerify && value == "on" && secondReader == nil:
		return &DSNError{Param: p.name,
			Reason: "this program has no second parser: it was built with the tag shardkey_noparser"}
	}
	return nil
}

func (c *Config) checkReload() error {
	if c.Reload != 0 && (c.Reload < minReload || c.Reload > maxReload) {
		return reloadError(c.Reload.String())
	}
	return nil
}

func reloadError(value string) error {
	return &DSNError{Param: paramReload,
		Reason: fmt.Sprintf("%q must be off or a duration from %v to %v, such as 5s", value, minReload, maxReload)}
}

// An Option sets how a connector works: a [Config], [WithLogger], [WithClock] or
// [WithFilled]. If several set the same, the last one holds.
type Option interface{ apply(*options) }

type options struct {
	Config
	clock  spi.Clock
	logger *slog.Logger
	filled func(context.Context, Filled)
}

func (c Config) apply(o *options) {
	for i := range params {
		if field := params[i].field; field != nil {
			*field(&o.Config) = cmp.Or(*field(&c), *field(&o.Config))
		}
	}
	o.Reload = cmp.Or(c.Reload, o.Reload)
}

type optionFunc func(*options)

func (f optionFunc) apply(o *options) { f(o) }

// WithLogger sets the logger. The default is slog.Default(). A line whose handler panics is lost.
//
// At level Debug each INSERT that got keys is logged after the server has answered: as it was sent,
// with placeholders in place of values; the number of its arguments and keys, and how long it took.
// ShardingSphere calls this sql-show. It takes some microseconds for a statement.
func WithLogger(logger *slog.Logger) Option {
	return optionFunc(func(o *options) { o.logger = logger })
}

// WithClock gives the generators another clock than the system's. It is for tests.
func WithClock(clock spi.Clock) Option {
	return optionFunc(func(o *options) { o.clock = clock })
}

func newOptions(opts []Option) options {
	var o options
	for _, opt := range opts {
		if opt != nil {
			opt.apply(&o)
		}
	}
	return o
}

// host is what the generators of a connector with this data source see.
func (o options) host(dsn string) spi.Host {
	return spi.Host{DSN: spi.NewSecret(dsn), Clock: o.clock, Logger: guard.NewLogger(cmp.Or(o.logger, slog.Default()))}
}

const ruleAdvice = "no sharding rule: add ?shardkeyRule= with the path of the rule's file, " +
	"a name given to driver.RegisterRule, or env:VARIABLE"

// dsn is a data source name, taken apart.
type dsn struct {
	base string // the underlying driver's
	rule string // the value of shardkeyRule as it was written
}

// parseDSN takes our parameters off a DSN and sets config from them. The rest of the
// DSN stays as it is.
func parseDSN(text string, config *Config) (dsn, error) {
	head, query, found := splitQuery(text)
	d, err := parseParams(head, query, found, config)
	if wrong := (*DSNError)(nil); errors.As(err, &wrong) && wrong.Param != "" && strings.Contains(query, "@") {
		// What is taken for the parameters may be the end of a password.
		return dsn{}, &DSNError{Reason: "the parameters are not understood, and there is an @ in them; " +
			"write it as %40, or, where it stands after a password with \"@/?\" in it, " +
			"set the password in a mysql.Config and use NewConnector"}
	}
	return d, err
}

func parseParams(head, query string, found bool, config *Config) (dsn, error) {
	d := dsn{base: head}
	given := map[string]bool{}
	var rest []string
	for text := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(text, "=")
		if !isOurs(name) {
			rest = append(rest, text)
			continue
		}
		p, err := paramOf(name)
		switch {
		case err != nil:
			return dsn{}, err
		case given[name]:
			return dsn{}, &DSNError{Param: name, Reason: "it is given twice"}
		case value == "":
			return dsn{}, &DSNError{Param: name, Reason: "it has no value"}
		case name == paramRule:
			d.rule = value
		default:
			if err := config.set(p, value); err != nil {
				return dsn{}, err
			}
		}
		given[name] = true
	}
	if base := strings.Join(rest, "&"); found && base != "" {
		d.base += "?" + base
	}
	if err := checkBase(head, rest); err != nil {
		return dsn{}, err
	}
	if d.rule == "" {
		return dsn{}, &DSNError{Reason: ruleAdvice, Err: ErrNoRule}
	}
	return d, nil
}

func isOurs(name string) bool {
	return len(name) >= len(paramPrefix) && strings.EqualFold(name[:len(paramPrefix)], paramPrefix)
}

// splitQuery finds the '?' that the parameters follow. go-sql-driver looks for the last '/', which
// may be in a rule's path; the password before and the values after may hold '?', '/', '@' and
// more. So the right '?' is the last one that has a whole DSN before it.
func splitQuery(text string) (head, query string, found bool) {
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] == '?' && isHead(text[:i]) {
			return text[:i], text[i+1:], true
		}
	}
	if isHead(text) {
		return text, "", false
	}
	// No '?' fits. Our parameters still should not be what the error is about.
	if i := strings.LastIndex(text, "?"+paramPrefix); i >= 0 {
		return text[:i], text[i+1:], true
	}
	return text, "", false
}

// isHead reports whether text is [user[:password]@][net[(addr)]]/dbname, read as go-sql-driver
// does: the last '/' ends the address, the last '@' before it the password.
func isHead(text string) bool {
	slash := strings.LastIndexByte(text, '/')
	if slash < 0 || strings.ContainsAny(text[slash:], "?") {
		return false
	}
	address := text[strings.LastIndexByte(text[:slash], '@')+1 : slash]
	network, rest, hasAddr := strings.Cut(address, "(")
	if hasAddr { // a dial function could be registered under the network's name
		return strings.HasSuffix(rest, ")") && !strings.ContainsAny(network, ":/?&=@() ")
	}
	return network == "" || network == "tcp" || network == "unix"
}

// unescape decodes percent signs. Other than in a form, '+' is a plus; what is
// not percent-encoding is meant as it stands.
func unescape(value string) string {
	if decoded, err := url.PathUnescape(value); err == nil {
		return decoded
	}
	return value
}

func (d dsn) baseConnector() (driver.Connector, error) {
	if _, err := parseBase(d.base); err != nil { // which can panic, as the next line could
		return nil, &DSNError{Reason: err.Error()}
	}
	return mysql.MySQLDriver{}.OpenConnector(d.base)
}

// checkBase finds what go-sql-driver refuses, part by part: its errors for the part with the
// password may quote the password, and its errors for parameters do not name the parameter.
func checkBase(head string, params []string) error {
	if _, err := parseBase(head); err != nil || head == "" {
		return &DSNError{Reason: "want [user[:password]@][net[(addr)]]/dbname before the parameters" + constantPart(err)}
	}
	for _, param := range params {
		name, value, _ := strings.Cut(param, "=")
		if strings.Contains(value, "/") { // the base would split there
			return &DSNError{Param: name, Reason: "write / in its value as %2F"}
		}
		if _, err := parseBase("/?" + param); err != nil {
			return &DSNError{Param: name, Reason: err.Error()}
		}
	}
	return nil
}

// constantPart returns the text of those errors of go-sql-driver that quote nothing.
func constantPart(err error) string {
	if err == nil || !strings.HasPrefix(err.Error(), "invalid DSN: ") {
		return ""
	}
	return " (" + err.Error() + ")"
}

// parseBase is mysql.ParseDSN, which panics for one parameter that it no longer knows.
func parseBase(text string) (cfg *mysql.Config, err error) {
	defer func() {
		if r := recover(); r != nil {
			cfg, err = nil, errors.New(fmt.Sprint(r))
		}
	}()
	return mysql.ParseDSN(text)
}

// configOf returns the configuration in a DSN of go-sql-driver, nil if it is none.
func configOf(dsn string) *mysql.Config {
	if dsn == "" {
		return nil
	}
	cfg, _ := parseBase(dsn)
	return cfg
}

// Filled is an INSERT whose keys have been made, and which is about to be sent.
type Filled struct {
	Table     string // the logical table
	Column    string // its key column
	Generator string // the generator's name in the rule
	Type      string // the generator's type in upper case; empty for one built in Go
	Rows      int    // those that got a key
	FirstKey  any    // of the first of them
}

// WithFilled has f called for each INSERT that gets keys, with the context of its
// execution, in the caller's goroutine: to write the keys into the span of a trace, or
// into a log. f returns soon, and is called by many goroutines at once. A panic in it is
// an error of the statement. Keys of [NextKeys] are not told.
func WithFilled(f func(ctx context.Context, filled Filled)) Option {
	return optionFunc(func(o *options) { o.filled = f })
}

// tellFilled calls the program's function for an INSERT.
func (r *ruleSet) tellFilled(ctx context.Context, t *table, rows int, keys *rewrite.Keys) error {
	if r.filled == nil {
		return nil
	}
	return hideBadConn(guard.Call("the function of WithFilled", func() error {
		r.filled(ctx, Filled{t.rule.Logical, t.rule.Column, t.rule.GeneratorName, t.rule.GeneratorType, rows, keys.At(0)})
		return nil
	}))
}
