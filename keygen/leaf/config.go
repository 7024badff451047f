package leaf

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/spi"
)

// The defaults and bounds of [Config].
const (
	DefaultMaxStep = 1_000_000 // Leaf's own
	DefaultReserve = time.Minute
	DefaultTimeout = 5 * time.Second

	maxStep = 1 << 30
	maxKey  = 128 // characters of biz_tag
)

// Config says which sequence a [Generator] hands out and how far ahead it
// fetches. Key and one of JDBCURL and DSN must be given.
type Config struct {
	// Key is the row's biz_tag: 1 to 128 characters, none of them a slash.
	Key string
	// JDBCURL is the database in JDBC's form, as Leaf's own configuration
	// writes it: jdbc:mysql://host:3306/leaf?useSSL=false.
	JDBCURL string
	// DSN is the database in go-sql-driver's form: user:pass@tcp(host:3306)/leaf.
	DSN string
	// User and Password take the place of those in JDBCURL or DSN when they
	// are not empty.
	User, Password string

	// MinStep and MaxStep bound the numbers that one fetch claims. The first
	// fetch claims the row's own step. A zero MinStep is the row's step, a zero
	// MaxStep DefaultMaxStep; the largest is 2^30.
	MinStep, MaxStep int64
	// Reserve is how long the numbers in memory shall last, at the rate seen,
	// when the next segment is fetched: the time that the database may be away
	// unnoticed. More of it means larger gaps at a restart. Zero is a minute.
	Reserve time.Duration
	// Timeout bounds one fetch. Zero is five seconds.
	Timeout time.Duration

	// Clock is the time to live by; nil is the system's.
	Clock spi.Clock
}

// withDefaults checks the settings that need no database and fills the zeros.
func (c Config) withDefaults() (Config, error) {
	if err := checkKey(c.Key); err != nil {
		return c, err
	}
	if c.MaxStep == 0 {
		c.MaxStep = max(DefaultMaxStep, c.MinStep)
	}
	if c.Reserve == 0 {
		c.Reserve = DefaultReserve
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Clock == nil {
		c.Clock = spi.SystemClock
	}
	switch {
	case c.MinStep < 0 || c.MinStep > maxStep:
		return c, &spi.PropError{Name: "min-step", Value: fmt.Sprint(c.MinStep), Want: fmt.Sprintf("an integer in 1..%d", maxStep)}
	case c.MaxStep < 1 || c.MaxStep > maxStep || c.MaxStep < c.MinStep:
		return c, &spi.PropError{Name: "max-step", Value: fmt.Sprint(c.MaxStep), Want: fmt.Sprintf("an integer in %d..%d", max(1, c.MinStep), maxStep)}
	case c.Reserve < 0:
		return c, &spi.PropError{Name: "reserve", Value: c.Reserve.String(), Want: "a duration of 0 or more"}
	case c.Timeout < 0:
		return c, &spi.PropError{Name: "timeout", Value: c.Timeout.String(), Want: "a duration above 0"}
	}
	return c, nil
}

func checkKey(key string) error {
	want := ""
	switch {
	case key == "":
		want = "the biz_tag of a row in leaf_alloc"
	case strings.Contains(key, "/"):
		want = "a biz_tag without a slash"
	case len([]rune(key)) > maxKey:
		want = fmt.Sprintf("a biz_tag of at most %d characters", maxKey)
	default:
		return nil
	}
	return &spi.PropError{Name: "leaf.key", Value: key, Want: want}
}

// mysqlConfig is the database's connection as the generator needs it. It is
// nil when neither form of address is given.
func (c Config) mysqlConfig() (*mysql.Config, error) {
	cfg, err := c.parseAddress()
	if cfg == nil || err != nil {
		return nil, err
	}
	if c.User != "" {
		cfg.User = c.User
	}
	if c.Password != "" {
		cfg.Passwd = c.Password
	}
	// What the driver would log it returns as well.
	cfg.Logger = &mysql.NopLogger{}
	setSession(cfg, "autocommit", "1")
	setSession(cfg, "sql_mode", "'STRICT_ALL_TABLES'")
	return cfg, nil
}

func (c Config) parseAddress() (*mysql.Config, error) {
	switch {
	case c.JDBCURL != "" && c.DSN != "":
		return nil, &spi.PropError{Name: "dsn", Want: "it only without leaf.jdbc.url"}
	case c.JDBCURL != "":
		return ParseJDBC(c.JDBCURL)
	case c.DSN == "":
		return nil, nil
	}
	cfg, err := mysql.ParseDSN(c.DSN)
	if err != nil {
		return nil, badDSN(err)
	}
	return cfg, nil
}

// badDSN passes on only those of the driver's errors that are fixed texts: the
// others quote parts of the DSN, and a password may be among them.
func badDSN(err error) error {
	want := "a DSN in go-sql-driver's form, as user:pass@tcp(127.0.0.1:3306)/leaf"
	if text := err.Error(); strings.HasPrefix(text, "invalid DSN: ") {
		want += " (" + text + ")"
	}
	return &spi.PropError{Name: "dsn", Want: want}
}

// setSession fixes a session variable whatever the address says: with
// autocommit off a claim would be rolled back after its numbers were handed
// out, and without a strict mode a narrow max_id would be cut off silently.
func setSession(cfg *mysql.Config, name, value string) {
	params := map[string]string{name: value}
	for k, v := range cfg.Params {
		if !strings.EqualFold(k, name) {
			params[k] = v
		}
	}
	cfg.Params = params
}
