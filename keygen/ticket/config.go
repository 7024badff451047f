package ticket

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
	"github.com/shardkey/shardkey/spi"
)

// typeName is the generator's name in rules.
const typeName = "TICKET"

// The defaults and bounds of [config].
const (
	defaultTable   = "Tickets64" // Flickr's
	defaultTimeout = 2 * time.Second

	maxIncrement = 65535 // MySQL's
	maxKeys      = 1 << 24
)

// config says which ticket servers a [generator] asks. DSNs must be given.
type config struct {
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

func (c config) withDefaults() (config, error) {
	if c.Table == "" {
		c.Table = defaultTable
	}
	if c.Increment == 0 {
		c.Increment = max(1, int64(len(c.DSNs)))
	}
	if c.Batch == 0 {
		c.Batch = 1
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Clock == nil {
		c.Clock = spi.SystemClock
	}
	return c, c.check()
}

func (c config) check() error {
	servers := int64(len(c.DSNs))
	if c.Increment < max(1, servers) {
		return bad("increment", c.Increment, fmt.Sprintf("an integer in %d..%d: the servers' auto_increment_increment, at least their number", max(1, servers), maxIncrement))
	}
	if _, ok := mysqldb.QuoteTable(c.Table); !ok {
		return bad("table", c.Table, "a table, or schema.table")
	}
	return c.checkOffsets()
}

func (c config) checkOffsets() error {
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

// parseDSN is a server's connection as the generator needs it. A statement that is no
// longer waited for does not wait for a lock either: it would be done all the same when
// its turn comes, and others wait behind it.
func parseDSN(dsn string, timeout time.Duration) (*mysql.Config, error) {
	if dsn == "" {
		// The driver would take it for root at 127.0.0.1.
		return nil, &spi.PropError{Name: "dsns", Want: "no empty item"}
	}
	cfg, err := mysqldb.ParseDSN("dsns", dsn, "user:pass@tcp(127.0.0.1:3306)/tickets")
	if err != nil {
		return nil, err
	}
	cfg.MultiStatements = true // of our own fixed text only
	wait := fmt.Sprint(lockWait(timeout))
	mysqldb.SetSession(cfg, map[string]string{"lock_wait_timeout": wait, "innodb_lock_wait_timeout": wait})
	return cfg, nil
}

// lockWait is a timeout in whole seconds, within what the server takes:
// https://dev.mysql.com/doc/refman/en/server-system-variables.html#sysvar_lock_wait_timeout
func lockWait(timeout time.Duration) int64 {
	const most = 31536000
	return max(1, min(int64((timeout-1)/time.Second)+1, most))
}

func init() {
	spi.RegisterKeyGenerator(typeName, newFromProps)
}

// newFromProps makes a generator of a rule's properties. Without dsns the table
// is looked for in the connector's own database; that it has none is an error
// at the first key, because a rule is also checked without a connector.
func newFromProps(p spi.Props) (spi.KeyGenerator, error) {
	c := config{Table: p.String("table", defaultTable), Clock: p.Clock()}
	dsns := p.Secrets("dsns")
	if dsns == nil && !p.HostDSN().IsZero() {
		dsns = []spi.Secret{p.HostDSN()}
	}
	for _, dsn := range dsns {
		c.DSNs = append(c.DSNs, dsn.Reveal())
	}
	var err error
	if c.Increment, err = p.Int("increment", 0, 1, maxIncrement); err != nil {
		return nil, err
	}
	if c.Batch, err = p.Int("batch", 1, 1, maxKeys); err != nil {
		return nil, err
	}
	if c.Timeout, err = p.Duration("timeout", defaultTimeout, time.Millisecond, math.MaxInt64); err != nil {
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
