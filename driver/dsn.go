package driver

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// ParseDSN returns the configuration in a data source name of this driver. The error is a [*DSNError],
// also for a DSN without a rule. ParseDSN doesn't load the rule.
func ParseDSN(dsn string) (*Config, error) {
	var c Config
	base, err := c.parse(dsn)
	if err != nil {
		return nil, err
	}
	if c.MySQL, err = parseBase(base); err != nil {
		return nil, &DSNError{Reason: err.Error()}
	}
	return &c, nil
}

// FormatDSN returns the data source name of a configuration: go-sql-driver's, which contains the
// password, with the parameters of this package. Of MySQL it has what [mysql.Config.FormatDSN] has,
// for example no TLS configuration that isn't registered.
func (cfg *Config) FormatDSN() string {
	under := cfg.MySQL
	if under == nil {
		under = mysql.NewConfig()
	}
	given := *cfg
	values := map[string]string{paramRule: rulePath.Replace(url.PathEscape(cfg.Rule))}
	for i := range params {
		if field := params[i].field; field != nil {
			values[params[i].name] = *field(&given)
		}
	}
	if cfg.Reload != 0 {
		values[paramReload] = cfg.Reload.String()
	}
	text := under.FormatDSN()
	separator := "?"
	if strings.Contains(text[strings.LastIndexByte(text, '/'):], "?") { // parameters have no /
		separator = "&"
	}
	for i := range params {
		if value := values[params[i].name]; value != "" {
			text += separator + params[i].name + "=" + value
			separator = "&"
		}
	}
	return text
}

// rulePath escapes what url.PathEscape leaves and a DSN doesn't allow in the rule's path.
var rulePath = strings.NewReplacer("&", "%26", "@", "%40")

// parse sets the fields of cfg from the parameters of this package, and returns the rest of the DSN
// unchanged.
func (cfg *Config) parse(text string) (base string, err error) {
	head, query, found := splitQuery(text)
	base, err = cfg.parseParams(head, query, found)
	if wrong := (*DSNError)(nil); errors.As(err, &wrong) && wrong.Param != "" && strings.Contains(query, "@") {
		// The parsed parameters may be the end of a password.
		return "", &DSNError{Reason: "the parameters are invalid and contain an @; " +
			"write it as %40, or, if the password contains \"@/?\", " +
			"set the password in a mysql.Config and use Config.NewConnector"}
	}
	return base, err
}

func (cfg *Config) parseParams(head, query string, found bool) (base string, err error) {
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
			return "", err
		case given[name]:
			return "", &DSNError{Param: name, Reason: "it appears twice"}
		case value == "":
			return "", &DSNError{Param: name, Reason: "it has no value"}
		}
		if err := cfg.set(p, value); err != nil {
			return "", err
		}
		given[name] = true
	}
	base = head
	if params := strings.Join(rest, "&"); found && params != "" {
		base += "?" + params
	}
	if err := checkBase(head, rest); err != nil {
		return "", err
	}
	if !given[paramRule] {
		return "", &DSNError{Reason: ruleAdvice, Err: ErrNoRule}
	}
	return base, nil
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

func baseConnector(dsn string) (driver.Connector, error) {
	if _, err := parseBase(dsn); err != nil { // parseBase recovers from a panic, OpenConnector doesn't
		return nil, &DSNError{Reason: err.Error()}
	}
	return mysql.MySQLDriver{}.OpenConnector(dsn)
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
