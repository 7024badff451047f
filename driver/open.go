package driver

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Open opens a database by a DSN as sql.Open("shardkey", dsn) does, and returns its
// [Connector] beside it, which has the generators' health, readiness and figures
// also while the server is away. Options are what cannot stand in a DSN; a
// parameter of the DSN goes before an option of the same meaning, and an option
// before one of shardkeyOptions ([RegisterOptions]).
//
// The error is a [*DSNError], or has [ErrNoRule] in its chain. The server is not
// asked for anything yet. Closing the sql.DB closes the connector.
func Open(dsn string, opts ...Option) (*sql.DB, *Connector, error) {
	if dsn == "" {
		return nil, nil, &DSNError{Reason: emptyDSN, Err: ErrNoRule}
	}
	c, err := Driver{}.openConnector(dsn, opts)
	if err != nil {
		return nil, nil, err
	}
	return sql.OpenDB(c), c, nil
}

const emptyDSN = "it is empty; " + ruleAdvice

// namedOptions are the options that a DSN can name.
var namedOptions = struct {
	sync.RWMutex
	byName map[string][]Option
}{byName: map[string][]Option{}}

// RegisterOptions lets a DSN say shardkeyOptions=name and so have options that
// cannot stand in it, as a logger: for programs that open databases with sql.Open,
// or by an ORM. A name that is registered already gets the new options, for
// connectors opened from then on. The error is for an empty name.
//
// It is safe for use by many goroutines at once.
func RegisterOptions(name string, opts ...Option) error {
	if name == "" {
		return errors.New("shardkey: register options: the name is empty")
	}
	namedOptions.Lock()
	defer namedOptions.Unlock()
	namedOptions.byName[name] = slices.Clone(opts)
	return nil
}

// optionsOf returns the options that a DSN names: by the name as it is written,
// or percent-decoded.
func optionsOf(value string) ([]Option, error) {
	if value == "" {
		return nil, nil
	}
	namedOptions.RLock()
	defer namedOptions.RUnlock()
	for _, name := range []string{value, unescape(value)} {
		if opts, ok := namedOptions.byName[name]; ok {
			return opts, nil
		}
	}
	registered := "none are registered"
	if len(namedOptions.byName) > 0 {
		registered = "registered: " + strings.Join(slices.Sorted(maps.Keys(namedOptions.byName)), ", ")
	}
	return nil, &DSNError{Param: paramOptions, Reason: fmt.Sprintf("no options of this name were given to driver.RegisterOptions (%s)", registered)}
}

// options returns the options of a DSN: those that it names, then opts, then its own
// parameters.
func (d dsn) options(opts []Option) (options, error) {
	named, err := optionsOf(d.named)
	if err != nil {
		return options{}, err
	}
	o := newOptions(slices.Concat(named, opts))
	if d.server != "" {
		o.server = d.server
	}
	if d.verify != "" {
		o.verify = d.verify
	}
	if d.statements != "" {
		o.statements = d.statements
	}
	if d.log != "" {
		o.log = d.log
	}
	if d.warnings != "" {
		o.warnings = d.warnings
	}
	if d.unlisted != "" {
		if o.unlisted, err = unlistedPolicy(d.unlisted); err != nil {
			return options{}, err
		}
	}
	o.reload, err = reloadInterval(d.reload)
	return o, err
}

// databaseName is the network address and the database of a DSN, without user,
// password and parameters; empty when there is none.
func databaseName(dsn string) string {
	cfg, err := parseBase(dsn)
	if dsn == "" || err != nil {
		return ""
	}
	return fmt.Sprintf("%s(%s)/%s", cfg.Net, cfg.Addr, cfg.DBName)
}
