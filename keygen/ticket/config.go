package ticket

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/spi"
)

// The defaults and bounds of [Config].
const (
	DefaultTable   = "Tickets64" // Flickr's
	DefaultTimeout = 2 * time.Second

	maxIncrement = 65535 // MySQL's
	maxKeys      = 1 << 24
)

// Config says which ticket servers a [Generator] asks. DSNs must be given.
type Config struct {
	// DSNs are the ticket servers, each in go-sql-driver's form:
	// user:pass@tcp(host:3306)/tickets.
	DSNs []string
	// Table is the ticket table, with its schema before a dot if it is not the
	// DSN's. Empty is Tickets64.
	Table string
	// Increment is what auto_increment_increment must be on each server, at
	// least the number of servers. Zero is the number of servers.
	Increment int64
	// Offsets are what auto_increment_offset must be, server by server. Without
	// them it is only checked that no two of the servers that were reached have
	// the same one.
	Offsets []int64
	// Batch is how many numbers one fetch asks for at least; what is left over
	// serves later calls from memory. Zero is 1: nothing is kept.
	Batch int64
	// Timeout bounds how long one server is waited for. Zero is two seconds.
	Timeout time.Duration

	// Clock is the time to live by; nil is the system's.
	Clock spi.Clock
}

func (c Config) withDefaults() (Config, error) {
	if c.Table == "" {
		c.Table = DefaultTable
	}
	if c.Increment == 0 {
		c.Increment = max(1, int64(len(c.DSNs)))
	}
	if c.Batch == 0 {
		c.Batch = 1
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Clock == nil {
		c.Clock = spi.SystemClock
	}
	return c, c.check()
}

func (c Config) check() error {
	servers := int64(len(c.DSNs))
	switch {
	case c.Increment < max(1, servers) || c.Increment > maxIncrement:
		return bad("increment", c.Increment, fmt.Sprintf("an integer in %d..%d: the servers' auto_increment_increment, at least their number", max(1, servers), maxIncrement))
	case c.Batch < 1 || c.Batch > maxKeys:
		return bad("batch", c.Batch, fmt.Sprintf("an integer in 1..%d", maxKeys))
	case c.Timeout < 0:
		return bad("timeout", c.Timeout, "a duration above 0")
	case strings.ContainsAny(c.Table, "`\x00") || strings.Contains("."+c.Table+".", "..") || strings.Count(c.Table, ".") > 1:
		return bad("table", c.Table, "a table, or schema.table, without backquotes")
	}
	return c.checkOffsets()
}

func (c Config) checkOffsets() error {
	if len(c.Offsets) == 0 {
		return nil
	}
	if len(c.Offsets) != len(c.DSNs) {
		return bad("offsets", c.Offsets, fmt.Sprintf("as many as dsns, %d", len(c.DSNs)))
	}
	seen := map[int64]bool{}
	for _, o := range c.Offsets {
		if o < 1 || o > c.Increment || seen[o] {
			return bad("offsets", c.Offsets, fmt.Sprintf("integers in 1..%d, each of them once", c.Increment))
		}
		seen[o] = true
	}
	return nil
}

func bad(name string, value any, want string) error {
	return &spi.PropError{Name: name, Value: fmt.Sprint(value), Want: want}
}

// quotedTable is the table as SQL text.
func (c Config) quotedTable() string {
	return "`" + strings.ReplaceAll(c.Table, ".", "`.`") + "`"
}

// parseDSN is a server's connection as the generator needs it.
func parseDSN(dsn string) (*mysql.Config, error) {
	if dsn == "" {
		// The driver would take it for root at 127.0.0.1.
		return nil, &spi.PropError{Name: "dsns", Want: "no empty item"}
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, badDSN(err)
	}
	cfg.MultiStatements = true // of our own fixed text only
	// What the driver would log it returns as well.
	cfg.Logger = &mysql.NopLogger{}
	setSession(cfg, "autocommit", "1")
	setSession(cfg, "sql_mode", "'STRICT_ALL_TABLES'")
	return cfg, nil
}

// badDSN passes on only those of the driver's errors that are fixed texts: the
// others quote parts of the DSN, and a password may be among them.
func badDSN(err error) error {
	want := "DSNs in go-sql-driver's form, as user:pass@tcp(127.0.0.1:3306)/tickets"
	if text := err.Error(); strings.HasPrefix(text, "invalid DSN: ") {
		want += " (" + text + ")"
	}
	return &spi.PropError{Name: "dsns", Want: want}
}

// setSession fixes a session variable whatever the DSN says: with autocommit
// off a REPLACE would keep its row locked, and be undone.
func setSession(cfg *mysql.Config, name, value string) {
	params := map[string]string{name: value}
	for k, v := range cfg.Params {
		if !strings.EqualFold(k, name) {
			params[k] = v
		}
	}
	cfg.Params = params
}

// Type is the generator's name in rules.
const Type = "TICKET"

func init() {
	spi.RegisterKeyGenerator(Type, newFromProps)
}

// newFromProps makes a generator of a rule's properties. Without dsns the table
// is looked for in the connector's own database; that it has none is an error
// at the first key, because a rule is also checked without a connector.
func newFromProps(p spi.Props) (spi.KeyGenerator, error) {
	c := Config{DSNs: p.List("dsns"), Table: p.String("table", DefaultTable), Clock: p.Clock()}
	if c.DSNs == nil && p.HostDSN() != "" {
		c.DSNs = []string{p.HostDSN()}
	}
	var err error
	if c.Increment, err = p.Int("increment", 0, 1, maxIncrement); err != nil {
		return nil, err
	}
	if c.Batch, err = p.Int("batch", 1, 1, maxKeys); err != nil {
		return nil, err
	}
	if c.Timeout, err = p.Duration("timeout", DefaultTimeout, time.Millisecond, math.MaxInt64); err != nil {
		return nil, err
	}
	for _, item := range p.List("offsets") {
		o, err := strconv.ParseInt(item, 10, 64)
		if err != nil {
			return nil, p.Wrong("offsets", "integers, one for each of dsns")
		}
		c.Offsets = append(c.Offsets, o)
	}
	return newGenerator(c)
}
