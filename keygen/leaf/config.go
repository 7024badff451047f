package leaf

import (
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
	"github.com/shardkey/shardkey/spi"
)

// typeName is the generator's name in rules.
const typeName = "LEAF_SEGMENT"

// The defaults and bounds of [config].
const (
	defaultMaxStep = 1_000_000 // Leaf's own
	defaultReserve = time.Minute
	defaultTimeout = 5 * time.Second

	maxStep = 1 << 30
	maxKey  = 128 // characters of biz_tag

	gapSteps = 10 // of the largest step: the default of failover-gap
	maxGap   = 1 << 40
)

// config says which sequence a [generator] hands out and how far ahead it
// fetches. Key and one of JDBCURL and DSN must be given.
type config struct {
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
	// MaxStep defaultMaxStep; the largest is 2^30.
	MinStep, MaxStep int64
	// Reserve is how long the numbers in memory shall last, at the rate seen,
	// when the next segment is fetched: the time that the database may be away
	// unnoticed. More of it means larger gaps at a restart. Zero is a minute.
	Reserve time.Duration
	// Timeout bounds one fetch. Zero is five seconds.
	Timeout time.Duration

	// FailoverGap is by how much max_id is raised when leaf_alloc is found to be on another
	// server than before, which may lack the last claims; 0 is not at all.
	FailoverGap int64

	// Logger is nil for slog.Default().
	Logger *slog.Logger
	// Clock is the time to live by; nil is the system's.
	Clock spi.Clock
}

// withoutSecrets is c without what may hold a password.
func (c config) withoutSecrets() config {
	c.JDBCURL, c.DSN, c.Password = "", "", ""
	return c
}

// withDefaults fills the zeros and checks the key and what two properties say
// together; newFromProps has checked each by itself.
func (c config) withDefaults() (config, error) {
	if err := checkKey(c.Key); err != nil {
		return c, err
	}
	if c.MaxStep == 0 {
		c.MaxStep = max(defaultMaxStep, c.MinStep)
	}
	if c.Reserve == 0 {
		c.Reserve = defaultReserve
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Clock == nil {
		c.Clock = spi.SystemClock
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.MaxStep < c.MinStep {
		return c, &spi.PropError{Name: "max-step", Value: fmt.Sprint(c.MaxStep), Want: fmt.Sprintf("an integer in %d..%d", c.MinStep, maxStep)}
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
func (c config) mysqlConfig() (*mysql.Config, error) {
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
	mysqldb.OwnSession(cfg)
	cfg.RejectReadOnly = true // after a failover, look for the new primary
	return cfg, nil
}

func (c config) parseAddress() (*mysql.Config, error) {
	switch {
	case c.JDBCURL != "" && c.DSN != "":
		return nil, &spi.PropError{Name: "dsn", Want: "it only without leaf.jdbc.url"}
	case c.JDBCURL != "":
		return parseJDBC(c.JDBCURL)
	case c.DSN == "":
		return nil, nil
	}
	return mysqldb.ParseDSN("dsn", c.DSN, "user:pass@tcp(127.0.0.1:3306)/leaf")
}

func init() {
	spi.RegisterKeyGenerator(typeName, newFromProps)
}

// newFromProps makes a generator of a rule's properties. Without leaf.jdbc.url
// and dsn the table is looked for in the connector's own database; that it has
// none is an error at the first key, because a rule is also checked without a
// connector.
func newFromProps(p spi.Props) (spi.KeyGenerator, error) {
	c, err := configFromProps(p)
	if err != nil {
		return nil, err
	}
	return newGenerator(c)
}

func configFromProps(p spi.Props) (config, error) {
	c := config{
		Key:      p.String("leaf.key", ""),
		JDBCURL:  p.Secret("leaf.jdbc.url").Reveal(),
		DSN:      p.Secret("dsn").Reveal(),
		User:     p.String("leaf.jdbc.username", ""),
		Password: p.Secret("leaf.jdbc.password").Reveal(),
		Clock:    p.Clock(),
		Logger:   p.Logger(),
	}
	if !p.Has("leaf.jdbc.url") && !p.Has("dsn") {
		c.DSN = p.HostDSN().Reveal()
	}
	var err error
	if c.MinStep, err = p.Int("min-step", 0, 1, maxStep); err != nil {
		return c, err
	}
	if c.MaxStep, err = p.Int("max-step", 0, 1, maxStep); err != nil {
		return c, err
	}
	if c.Reserve, err = p.Duration("reserve", defaultReserve, 0, 24*time.Hour); err != nil {
		return c, err
	}
	if c.Timeout, err = p.Duration("timeout", defaultTimeout, time.Millisecond, math.MaxInt64); err != nil {
		return c, err
	}
	if c.FailoverGap, err = p.Int("failover-gap", gapSteps*max(c.MaxStep, c.MinStep, defaultMaxStep), 0, maxGap); err != nil {
		return c, err
	}
	return c, nil
}

// parseJDBC reads a database's address in the form of MySQL's and MariaDB's
// JDBC drivers, jdbc:mysql://host:port/database?option=value&…:
// https://dev.mysql.com/doc/connector-j/en/connector-j-reference-jdbc-url-format.html
//
// Of the options those about TLS (useSSL, requireSSL,
// verifyServerCertificate, sslMode), connectTimeout and socketTimeout (both in
// milliseconds), user and password are followed; the rest, serverTimezone and
// characterEncoding among them, do not touch what this package reads and are
// ignored. TLS is used when the server has it unless the options say otherwise.
//
// The errors are [*spi.PropError] and do not show the address: it may hold a
// password.
func parseJDBC(address string) (*mysql.Config, error) {
	rest, ok := cutScheme(address)
	if !ok {
		return nil, badJDBC("one address of the form jdbc:mysql://host:3306/database")
	}
	u, err := url.Parse("mysql://" + rest)
	if err != nil || u.Host == "" {
		return nil, badJDBC("host, port and database as in jdbc:mysql://host:3306/database; percent-encode what is special in them")
	}
	if strings.ContainsAny(u.Host, ",()") {
		return nil, badJDBC("one host: two servers would hand out the same numbers")
	}
	if strings.Contains(u.Path+u.Fragment, "@") || u.Fragment != "" {
		return nil, badJDBC("percent-encoding where the password has /, ? or #")
	}
	cfg := mysql.NewConfig()
	cfg.Net = "tcp"
	cfg.Addr = hostPort(u)
	cfg.DBName = strings.TrimPrefix(u.Path, "/")
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, badJDBC("options of the form name=value, joined by &")
	}
	return cfg, applyOptions(cfg, query)
}

func cutScheme(address string) (string, bool) {
	for _, scheme := range []string{"jdbc:mysql://", "jdbc:mariadb://"} {
		if len(address) > len(scheme) && strings.EqualFold(address[:len(scheme)], scheme) {
			return address[len(scheme):], true
		}
	}
	return "", false
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "3306"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

func applyOptions(cfg *mysql.Config, query url.Values) error {
	option, err := single(query)
	if err != nil {
		return err
	}
	for name, field := range map[string]*string{"user": &cfg.User, "password": &cfg.Passwd} {
		if v := option[name]; v != "" {
			*field = v
		}
	}
	connect, err := milliseconds(option, "connectTimeout")
	if err != nil {
		return err
	}
	socket, err := milliseconds(option, "socketTimeout")
	if err != nil {
		return err
	}
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = connect, socket, socket
	cfg.TLSConfig, err = tlsMode(option)
	return err
}

// single returns each option by its name in lower case, and refuses one that is
// given twice: which of them counts, drivers do not agree on.
func single(query url.Values) (map[string]string, error) {
	option := map[string]string{}
	for name, values := range query {
		lower := strings.ToLower(name)
		_, twice := option[lower]
		secret := lower == "user" || lower == "password"
		switch {
		case strings.Contains(name, "@"), !secret && strings.Contains(values[0], "@"):
			// The password's end, after a '?' in it.
			return nil, badJDBC("percent-encoding where the password has /, ? or #")
		case twice || len(values) > 1:
			return nil, badJDBC("each option once, in whatever case")
		}
		option[lower] = values[0]
	}
	return option, nil
}

func milliseconds(option map[string]string, name string) (time.Duration, error) {
	v := option[strings.ToLower(name)]
	if v == "" {
		return 0, nil
	}
	ms, err := strconv.ParseUint(v, 10, 31)
	if err != nil {
		return 0, badJDBC(name + " in milliseconds")
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// tlsMode maps Connector/J's options
// (https://dev.mysql.com/doc/connector-j/en/connector-j-connp-props-security.html)
// to go-sql-driver's tls parameter. sslMode takes precedence over the older ones. VERIFY_CA checks the host name too here.
func tlsMode(option map[string]string) (string, error) {
	useSSL, err := yesOrNo(option, "useSSL")
	if err != nil {
		return "", err
	}
	require, err := yesOrNo(option, "requireSSL")
	if err != nil {
		return "", err
	}
	verify, err := yesOrNo(option, "verifyServerCertificate")
	if err != nil {
		return "", err
	}
	switch mode := strings.ToUpper(strings.ReplaceAll(option["sslmode"], "-", "_")); mode {
	case "":
	case "DISABLED", "DISABLE":
		return "false", nil
	case "PREFERRED":
		return "preferred", nil
	case "REQUIRED", "TRUST":
		return "skip-verify", nil
	case "VERIFY_CA", "VERIFY_IDENTITY", "VERIFY_FULL":
		return "true", nil
	default:
		return "", badJDBC("sslMode DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY")
	}
	switch {
	case useSSL == no:
		return "false", nil
	case verify == yes:
		return "true", nil
	case useSSL == yes, require == yes:
		return "skip-verify", nil
	}
	return "preferred", nil
}

// answer is the value of an option that Connector/J takes true, false, yes and no
// for.
type answer int

const (
	absent answer = iota
	yes
	no
)

func yesOrNo(option map[string]string, name string) (answer, error) {
	switch v := option[strings.ToLower(name)]; {
	case v == "":
		return absent, nil
	case strings.EqualFold(v, "true"), strings.EqualFold(v, "yes"):
		return yes, nil
	case strings.EqualFold(v, "false"), strings.EqualFold(v, "no"):
		return no, nil
	}
	return absent, badJDBC(name + " true, false, yes or no")
}

func badJDBC(want string) error {
	return &spi.PropError{Name: "leaf.jdbc.url", Want: want}
}
