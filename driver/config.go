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
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/spi"
)

// Config configures a connector. Each field has a DSN parameter: Server is shardkeyServer, for
// example. A zero field keeps the default, so the zero Config is valid. A Config is an [Option].
type Config struct {
	// Server is the kind of the server: "auto" (the default), "mysql", "mariadb", "vitess", "tidb",
	// or "other" for another engine with the MySQL protocol. With "auto" the connector queries the
	// server once.
	Server string
	// Verify specifies whether a second parser, TiDB's, checks a statement before it is sent: "on"
	// (the default) or "off". It checks each statement once, before the plan is cached. It skips
	// statements of more than 256 KiB, or of more than 8 KiB without placeholders.
	Verify string
	// Statements specifies which INSERTs a connection caches prepared statements for. A cached
	// statement takes one round trip to the server instead of two or three. With "auto" (the
	// default) a connection caches the statements that the underlying driver would prepare for each
	// execution. For go-sql-driver these are the statements with arguments unless interpolateParams
	// is set. "always" caches all INSERTs, and "off" none.
	//
	// A statement is cached if it has arguments, at most 16 KiB, and no user variable (@). A
	// connection caches up to 16 statements. A connector caches up to an eighth of the server's
	// max_prepared_stmt_count, at most 2,048. A small statement takes 16 to 26 kB of the server's
	// memory. SET, USE, CALL, EXECUTE and several statements in one string empty a connection's
	// cache, since they may change how the server reads a statement. If the server reports that it
	// holds too many statements (error 1461), all connections of the connector stop caching.
	Statements string
	// Reload is the interval at which the rule's file is checked for changes, from 10 ms to 24 h.
	// With 0, the default, it isn't checked.
	//
	// A change is a write to the file, a rename, or a new target of a symbolic link to the file or
	// its directory. All connectors of the process with a Reload of this file get the new rule, or
	// none does. They keep the old rule if the new one or one of its generators can't be opened.
	// Each logs that error once, with file and line. The file is loaded after it is fixed.
	//
	// Running statements finish with the old rule. Generators with the same configuration stay open
	// and keep their worker ID ([rule.Live.Replace]); others are closed after their last use. Rules
	// given to [RegisterRule] are replaced too.
	Reload time.Duration
}

// param describes a DSN parameter. The parser, the check of a [Config] and the table in the
// page about configuration use these descriptions.
type param struct {
	name   string
	values []string // the default first; nil if the parameter isn't an enumeration
	form   string   // the form of the value, if values is nil
	about  string
	field  func(*Config) *string // nil if values is nil
}

// Names of parameters that errors mention.
const (
	paramPrefix     = "shardkey"
	paramRule       = "shardkeyRule"
	paramServer     = "shardkeyServer"
	paramVerify     = "shardkeyVerify"
	paramStatements = "shardkeyStatements"
	paramReload     = "shardkeyReload"
)

// params are the parameters of this package. All names that begin with "shardkey", in any case, are
// reserved for it.
var params = [...]param{
	{name: paramRule, form: "a path, or a name given to `RegisterRule`",
		about: "the rule; required. A path is relative to the working directory. Write `&` in it as `%26`"},
	{name: paramServer,
		values: []string{session.ServerAuto, session.ServerMySQL, session.ServerMariaDB, session.ServerVitess, session.ServerTiDB, session.ServerOther},
		about: "the kind of the server, if its version doesn't show it; " +
			"[what others get](sql.md#engines-that-get-less)",
		field: func(c *Config) *string { return &c.Server }},
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
		Reason: "unknown parameter; known: " + strings.Join(names, ", ")}
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

// check checks the fields that a program has set. Its error names the field.
func (c *Config) check() (err error) {
	for i := range params {
		err = cmp.Or(err, c.checkParam(&params[i]))
	}
	err = cmp.Or(err, c.checkReload())
	if wrong := (*DSNError)(nil); errors.As(err, &wrong) {
		wrong.Param = configPrefix + strings.TrimPrefix(wrong.Param, paramPrefix)
	}
	return err
}

const configPrefix = "Config."

// checkParam returns an error for an unknown value, and for a value that this build doesn't
// support.
func (c *Config) checkParam(p *param) error {
	if p.field == nil {
		return nil
	}
	switch value := *p.field(c); {
	case value != "" && !slices.Contains(p.values, value):
		return &DSNError{Param: p.name, Nearest: nearest.Word(value, p.values),
			Reason: fmt.Sprintf("expected one of %[2]s, found %[1]q", value, strings.Join(p.values, ", "))}
	case p.name == paramVerify && value == "on" && secondParser == nil:
		return &DSNError{Param: p.name,
			Reason: "this program has no second parser; build it without the tag shardkey_noparser"}
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
		Reason: fmt.Sprintf("expected off or a duration from %[2]v to %[3]v such as 5s, found %[1]q", value, minReload, maxReload)}
}

// An Option configures a connector: a [Config], [WithLogger], [WithClock] or [WithKeyHook]. If
// several options set the same property, the last one wins.
type Option interface{ apply(*options) }

type options struct {
	Config
	clock   spi.Clock
	logger  *slog.Logger
	keyHook func(context.Context, GeneratedKeys)
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

// WithLogger sets the logger. The default is slog.Default().
//
// At level Debug, each INSERT that got keys is logged after the server has answered. The line has
// the statement with placeholders instead of values, the numbers of arguments and keys, and the
// duration. This is ShardingSphere's sql-show. It costs a few microseconds for each statement.
func WithLogger(logger *slog.Logger) Option {
	return optionFunc(func(o *options) { o.logger = logger })
}

// WithClock sets the clock of the generators, for tests. The default is the system clock.
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

// host returns the host for the generators of a connector with this data source name.
func (o options) host(dsn string) spi.Host {
	return spi.Host{DSN: spi.NewSecret(dsn), Clock: o.clock, Logger: cmp.Or(o.logger, slog.Default())}
}

const ruleAdvice = "no sharding rule: add ?shardkeyRule= with the path of the rule's file, " +
	"or a name given to driver.RegisterRule"

// dsn is a parsed data source name.
type dsn struct {
	base string // the underlying driver's part
	rule string // the value of shardkeyRule, not decoded
}

// parseDSN removes the parameters of this package from a DSN and sets config from them. The rest of
// the DSN stays unchanged.
func parseDSN(text string, config *Config) (dsn, error) {
	head, query, found := splitQuery(text)
	d, err := parseParams(head, query, found, config)
	if wrong := (*DSNError)(nil); errors.As(err, &wrong) && wrong.Param != "" && strings.Contains(query, "@") {
		// The parsed parameters may be the end of a password.
		return dsn{}, &DSNError{Reason: "the parameters are invalid and contain an @; " +
			"write it as %40, or, if the password contains \"@/?\", " +
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
			return dsn{}, &DSNError{Param: name, Reason: "it appears twice"}
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

// splitQuery finds the '?' in front of the parameters. go-sql-driver looks for the last '/', which
// may be part of a rule's path here. The password and the values may contain '?', '/' and '@'. So
// the right '?' is the last one after a complete DSN.
func splitQuery(text string) (head, query string, found bool) {
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] == '?' && isHead(text[:i]) {
			return text[:i], text[i+1:], true
		}
	}
	if isHead(text) {
		return text, "", false
	}
	// No '?' fits. Separate the parameters of this package anyway, to keep them out of the error.
	if i := strings.LastIndex(text, "?"+paramPrefix); i >= 0 {
		return text[:i], text[i+1:], true
	}
	return text, "", false
}

// isHead reports whether a string is [user[:password]@][net[(addr)]]/dbname. It parses as
// go-sql-driver does: the last '/' ends the address, and the last '@' before it ends the password.
func isHead(text string) bool {
	slash := strings.LastIndexByte(text, '/')
	if slash < 0 || strings.ContainsAny(text[slash:], "?") {
		return false
	}
	address := text[strings.LastIndexByte(text[:slash], '@')+1 : slash]
	network, rest, hasAddr := strings.Cut(address, "(")
	if hasAddr { // a program can register a dial function under the network's name
		return strings.HasSuffix(rest, ")") && !strings.ContainsAny(network, ":/?&=@() ")
	}
	return network == "" || network == "tcp" || network == "unix"
}

// unescape decodes percent-encoding. Unlike in a form, '+' is a plus sign. A value with invalid
// percent-encoding is returned unchanged.
func unescape(value string) string {
	if decoded, err := url.PathUnescape(value); err == nil {
		return decoded
	}
	return value
}

func (d dsn) baseConnector() (driver.Connector, error) {
	if _, err := parseBase(d.base); err != nil { // parseBase recovers from a panic, OpenConnector doesn't
		return nil, &DSNError{Reason: err.Error()}
	}
	return mysql.MySQLDriver{}.OpenConnector(d.base)
}

// checkBase returns an error for parts that go-sql-driver refuses. It checks them one by one, since
// go-sql-driver's error may quote the password, and its errors about parameters don't name the
// parameter.
func checkBase(head string, params []string) error {
	if _, err := parseBase(head); err != nil || head == "" {
		return &DSNError{Reason: "expected [user[:password]@][net[(addr)]]/dbname before the parameters" + constantPart(err)}
	}
	for _, param := range params {
		name, value, _ := strings.Cut(param, "=")
		if strings.Contains(value, "/") { // go-sql-driver would split the DSN there
			return &DSNError{Param: name, Reason: "expected no / in the value; write it as %2F"}
		}
		if _, err := parseBase("/?" + param); err != nil {
			return &DSNError{Param: name, Reason: err.Error()}
		}
	}
	return nil
}

// constantPart returns the message of a go-sql-driver error that quotes no part of the DSN.
func constantPart(err error) string {
	if err == nil || !strings.HasPrefix(err.Error(), "invalid DSN: ") {
		return ""
	}
	return " (" + err.Error() + ")"
}

// parseBase is mysql.ParseDSN without its panic for one parameter that was removed.
func parseBase(text string) (cfg *mysql.Config, err error) {
	defer func() {
		if r := recover(); r != nil {
			cfg, err = nil, errors.New(fmt.Sprint(r))
		}
	}()
	return mysql.ParseDSN(text)
}

// configOf returns the configuration of a go-sql-driver DSN, or nil if dsn isn't one.
func configOf(dsn string) *mysql.Config {
	if dsn == "" {
		return nil
	}
	cfg, _ := parseBase(dsn)
	return cfg
}

// GeneratedKeys describes an INSERT with generated keys that is about to be sent.
type GeneratedKeys struct {
	Table     string // the logical table
	Column    string // its key column
	Generator string // the generator's name in the rule
	Type      string // the generator's type in upper case; empty for a generator built in Go
	Rows      int    // the number of rows with a generated key
	FirstKey  any    // the first generated key
}

// WithKeyHook makes the driver call f for each INSERT with generated keys, before it is sent. The
// context is that of the execution, so f can add the keys to a trace span or a log. The keys of
// [NextKeys] aren't reported.
//
// Many goroutines call f at once, each in the goroutine of its caller, so f should return soon. If
// f panics, the statement returns an error.
func WithKeyHook(f func(ctx context.Context, filled GeneratedKeys)) Option {
	return optionFunc(func(o *options) { o.keyHook = f })
}

// callKeyHook calls the function of WithKeyHook.
func (r *ruleVersion) callKeyHook(ctx context.Context, t *keyedTable, rows int, keys *rewrite.Keys) error {
	if r.keyHook == nil {
		return nil
	}
	return hideBadConn(guard.Call("the function of WithKeyHook", func() error {
		r.keyHook(ctx, GeneratedKeys{t.rule.Logical, t.rule.Column, t.rule.GeneratorName, t.rule.GeneratorType, rows, keys.At(0)})
		return nil
	}))
}
