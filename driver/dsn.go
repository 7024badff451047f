package driver

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
)

const ruleAdvice = "no sharding rule: add ?shardkeyRule= with the path of the rule's file, a name given to driver.RegisterRule, or env:VARIABLE"

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
		return dsn{}, &DSNError{Reason: "the parameters are not understood, and there is an @ in them; write it as %40, or, where it stands after a password with \"@/?\" in it, " +
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

// splitQuery finds the '?' that the parameters follow. go-sql-driver
// looks for the last '/', which may be in a rule's path; the password before
// and the values after may hold '?', '/', '@' and more. So the right '?' is
// the last one that has a whole DSN before it.
func splitQuery(text string) (head, query string, found bool) {
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] == '?' && isHead(text[:i]) {
			return text[:i], text[i+1:], true
		}
	}
	if isHead(text) {
		return text, "", false
	}
	// No '?' fits. Our parameters still should not be what the
	// error is about.
	if i := strings.LastIndex(text, "?"+paramPrefix); i >= 0 {
		return text[:i], text[i+1:], true
	}
	return text, "", false
}

// isHead reports whether text is [user[:password]@][net[(addr)]]/dbname, read as
// go-sql-driver does: the last '/' ends the address, the last '@' before it the
// password.
func isHead(text string) bool {
	slash := strings.LastIndexByte(text, '/')
	if slash < 0 || strings.ContainsAny(text[slash:], "?") {
		return false
	}
	address := text[strings.LastIndexByte(text[:slash], '@')+1 : slash]
	network, rest, hasAddr := strings.Cut(address, "(")
	if !isNetwork(network) {
		return false
	}
	if !hasAddr {
		return network == "" || network == "tcp" || network == "unix"
	}
	return strings.HasSuffix(rest, ")")
}

// isNetwork reports whether a dial function could be registered under the name.
// It may be empty.
func isNetwork(name string) bool {
	return !strings.ContainsAny(name, ":/?&=@() ")
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

// checkBase finds what go-sql-driver refuses, part by part: its errors
// for the part with the password may quote the password, and its errors for
// parameters do not name the parameter.
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

// constantPart returns the text of those errors of go-sql-driver that quote
// nothing.
func constantPart(err error) string {
	if err == nil || !strings.HasPrefix(err.Error(), "invalid DSN: ") {
		return ""
	}
	return " (" + err.Error() + ")"
}

// parseBase is mysql.ParseDSN, which panics for one parameter that it no longer
// knows.
func parseBase(text string) (cfg *mysql.Config, err error) {
	defer func() {
		if r := recover(); r != nil {
			cfg, err = nil, errors.New(fmt.Sprint(r))
		}
	}()
	return mysql.ParseDSN(text)
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
