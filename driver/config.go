package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/nearest"
	"github.com/shardkey/shardkey/spi"
)

// Config configures a connector. Each field but MySQL has a DSN parameter: Server is shardkeyServer, for
// example. A zero field keeps the default. A Config is an [Option], whose MySQL and Rule aren't used.
// [ParseDSN] returns the Config of a DSN.
type Config struct {
	// MySQL is go-sql-driver's configuration.
	MySQL *mysql.Config
	// Rule is the path of the rule's file, relative to the working directory, or a name given to
	// [RegisterRule].
	Rule string
	// Server is the kind of the server: "auto" (the default), "mysql", "mariadb", "vitess", or
	// "other" for another engine with the MySQL protocol. With "auto" the connector queries the
	// server once.
	Server string
	// Verify specifies whether a second parser, TiDB's, checks a statement before it is sent: "on"
	// (the default) or "off". It checks each statement once, before the plan is cached. It skips
	// statements of more than 64 KiB, or of more than 8 KiB without placeholders.
	Verify string
	// Statements specifies which INSERTs a connection caches prepared statements for. A cached
	// statement takes one round trip to the server instead of two or three. With "auto" (the
	// default) a connection caches the statements that the underlying driver would prepare for each
	// execution. For go-sql-driver these are the statements with arguments unless interpolateParams
	// is set. With interpolateParams, a connection caches a statement from its third execution, if
	// the server is MySQL or MariaDB and stores the same rows. The values must be placeholders,
	// literals, NULL, DEFAULT or calls without arguments, followed at most by RETURNING with the key
	// column. Each argument must be nil, an integer below 1<<63, a bool, a time.Time, or a string in
	// UTF-8 that isn't a number with a sign, an exponent, blanks or more than 18 digits. Other
	// arguments stay in the text. If the server refuses such a statement, the connection sends it as
	// text, and caches no more of them. "always" caches all INSERTs, and "off" none.
	//
	// If a program prepares an INSERT with such values itself, as GORM does in each transaction, the
	// connection caches the statement when the program closes it, for the next Prepare. This needs
	// go-sql-driver.
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

// param is a DSN parameter. The parser and the check of a [Config] use these descriptions.
type param struct {
	name   string
	values []string              // the default first; nil if the parameter isn't an enumeration
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
	{name: paramRule},
	{name: paramServer,
		values: []string{session.ServerAuto, session.ServerMySQL, session.ServerMariaDB, session.ServerVitess, session.ServerOther},
		field:  func(c *Config) *string { return &c.Server }},
	{name: paramVerify, values: []string{"on", "off"},
		field: func(c *Config) *string { return &c.Verify }},
	{name: paramStatements, values: []string{statementsAuto, statementsAlways, statementsOff},
		field: func(c *Config) *string { return &c.Statements }},
	{name: paramReload},
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
func (cfg *Config) set(p *param, value string) (err error) {
	switch {
	case p.field != nil:
		*p.field(cfg) = value
		return cfg.checkParam(p)
	case p.name == paramRule:
		cfg.Rule = ruleName(value)
		return nil
	}
	if cfg.Reload = 0; value != "off" {
		if cfg.Reload, err = time.ParseDuration(value); err != nil || cfg.Reload == 0 {
			return reloadError(value)
		}
	}
	return cfg.checkReload()
}

// check checks the fields that a program has set. Its error names the field.
func (cfg *Config) check() (err error) {
	for i := range params {
		err = cmp.Or(err, cfg.checkParam(&params[i]))
	}
	err = cmp.Or(err, cfg.checkReload())
	if wrong := (*DSNError)(nil); errors.As(err, &wrong) {
		wrong.Param = configPrefix + strings.TrimPrefix(wrong.Param, paramPrefix)
	}
	return err
}

const configPrefix = "Config."

// checkParam returns an error for an unknown value, and for a value that this build doesn't
// support.
func (cfg *Config) checkParam(p *param) error {
	if p.field == nil {
		return nil
	}
	switch value := *p.field(cfg); {
	case value != "" && !slices.Contains(p.values, value):
		return &DSNError{Param: p.name, Nearest: nearest.Word(value, p.values),
			Reason: fmt.Sprintf("expected one of %[2]s, found %[1]q", value, strings.Join(p.values, ", "))}
	case p.name == paramVerify && value == "on" && secondParser == nil:
		return &DSNError{Param: p.name,
			Reason: "this program has no second parser; build it without the tag shardkey_noparser"}
	}
	return nil
}

func (cfg *Config) checkReload() error {
	if cfg.Reload != 0 && (cfg.Reload < minReload || cfg.Reload > maxReload) {
		return reloadError(cfg.Reload.String())
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

func (cfg Config) apply(o *options) {
	for i := range params {
		if field := params[i].field; field != nil {
			*field(&o.Config) = cmp.Or(*field(&cfg), *field(&o.Config))
		}
	}
	o.Reload = cmp.Or(cfg.Reload, o.Reload)
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

const ruleAdvice = "no sharding rule: add ?shardkeyRule= with the path of the rule's file, " +
	"or a name given to driver.RegisterRule"
