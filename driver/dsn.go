package driver

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/internal/nearest"
	"github.com/shardkey/shardkey/rule"
)

// paramRule names the rule: a registered name or a file's path.
const paramRule = "shardkeyRule"

// paramServer says what the server is, where its version does not show it.
const paramServer = "shardkeyServer"

// paramVerify says which texts the second reader reads.
const paramVerify = "shardkeyVerify"

// paramWarnings says what becomes of a rule's warnings: log or error.
const paramWarnings = "shardkeyRuleWarnings"

// paramUnlisted says what becomes of INSERTs into tables that the rule does not
// list, but that look like one of a ruled table's.
const paramUnlisted = "shardkeyUnlisted"

// paramReload says how often the rule's file is looked at for changes.
const paramReload = "shardkeyReload"

// paramStatements says which prepared statements are kept.
const paramStatements = "shardkeyStatements"

// paramOptions names options that a program registered.
const paramOptions = "shardkeyOptions"

// paramLog says which statements are logged.
const paramLog = "shardkeyLog"

// params are the parameters that are ours. All names that begin with shardkey,
// in any case, are taken to be meant for us.
var params = [...]string{paramLog, paramOptions, paramReload, paramRule, paramWarnings, paramServer, paramStatements, paramUnlisted, paramVerify}

const paramPrefix = "shardkey"

const ruleAdvice = "no sharding rule: add ?shardkeyRule= with the path of the rule's file, a name given to driver.RegisterRule, or env:VARIABLE"

// dsn is a data source name, taken apart.
type dsn struct {
	base     string // what go-sql-driver gets
	rule     string // the value of shardkeyRule as it was written
	server   Server // the value of shardkeyServer, empty by default
	warnings string // the value of shardkeyRuleWarnings, empty by default
	verify   Verify // the value of shardkeyVerify, empty by default
	unlisted string // the value of shardkeyUnlisted, empty by default
	reload   string // the value of shardkeyReload, empty by default
	log      Log    // the value of shardkeyLog, empty by default
	named    string // the value of shardkeyOptions, empty by default

	statements Statements // the value of shardkeyStatements, empty by default
}

// parseDSN takes our parameters off a DSN; all the rest of it stays as it is.
func parseDSN(text string) (dsn, error) {
	head, query, found := splitQuery(text)
	d, err := parseParams(head, query, found)
	if wrong := (*DSNError)(nil); errors.As(err, &wrong) && wrong.Param != "" && strings.Contains(query, "@") {
		// What is taken for the parameters may be the end of a password.
		return dsn{}, &DSNError{Reason: "the parameters are not understood, and there is an @ in them; write it as %40, or, where it stands after a password with \"@/?\" in it, " +
			"set the password in a mysql.Config and use NewConnector"}
	}
	return d, err
}

func parseParams(head, query string, found bool) (dsn, error) {
	given := map[string]string{}
	var rest []string
	for _, param := range strings.Split(query, "&") {
		name, value, _ := strings.Cut(param, "=")
		if !isOurs(name) {
			rest = append(rest, param)
			continue
		}
		if err := checkParam(name, value, given); err != nil {
			return dsn{}, err
		}
		given[name] = value
	}
	d := dsn{base: head, rule: given[paramRule], server: Server(given[paramServer]),
		verify: Verify(given[paramVerify]), warnings: given[paramWarnings], unlisted: given[paramUnlisted], reload: given[paramReload],
		named: given[paramOptions], log: Log(given[paramLog]), statements: Statements(given[paramStatements])}
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

// checkParam refuses a parameter that is unknown, empty or given twice.
func checkParam(name, value string, given map[string]string) error {
	if err := knownParam(name); err != nil {
		return err
	}
	if _, dup := given[name]; dup {
		return &DSNError{Param: name, Reason: "it is given twice"}
	}
	if value == "" {
		return &DSNError{Param: name, Reason: "it has no value"}
	}
	return nil
}

func knownParam(name string) error {
	for _, known := range params {
		if name == known {
			return nil
		}
	}
	return &DSNError{Param: name, Nearest: nearest.Word(name, params[:]),
		Reason: "no such parameter; known: " + strings.Join(params[:], ", ")}
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

// namedRules are the rules that a DSN can name, as mysql.RegisterTLSConfig's
// are for tls=.
var namedRules = registeredRules{rules: map[string]*rule.Rule{}}

type registeredRules struct {
	sync.RWMutex
	rules map[string]*rule.Rule
}

// RegisterRule lets a DSN say shardkeyRule=name instead of a file's path. A
// name that is registered already gets the new rule, for connectors opened from
// then on. The error is for an empty name and a nil rule.
//
// It is safe for use by many goroutines at once.
func RegisterRule(name string, r *rule.Rule) error {
	switch {
	case name == "":
		return errors.New("shardkey: register rule: the name is empty")
	case r == nil:
		return fmt.Errorf("shardkey: register rule %q: %w", name, ErrNoRule)
	}
	namedRules.Lock()
	defer namedRules.Unlock()
	namedRules.rules[name] = r
	return nil
}

// DeregisterRule forgets a registered rule. Connectors that have it keep it.
func DeregisterRule(name string) {
	namedRules.Lock()
	defer namedRules.Unlock()
	delete(namedRules.rules, name)
}

// ruleOf finds the rule of a shardkeyRule parameter: a registered name as it is
// written, else a registered name, an environment variable or a path after
// percent-decoding.
func ruleOf(value string) (*rule.Rule, error) {
	if r, ok := namedRule(value); ok {
		return r, nil
	}
	path := unescape(value)
	if r, ok := namedRule(path); ok {
		return r, nil
	}
	if variable, ok := strings.CutPrefix(path, envPrefix); ok {
		return envRule(variable)
	}
	r, err := rule.Load(path)
	switch {
	case err == nil:
		return r, nil
	case errors.Is(err, fs.ErrNotExist) && strings.Contains(path, "@"):
		// It may be the end of a password that has "@/?" in it.
		return nil, &DSNError{Param: paramRule, Err: fs.ErrNotExist, Reason: "it is neither a registered rule nor a file, and not shown, as it has an @ in it"}
	case errors.Is(err, fs.ErrNotExist):
		return nil, &DSNError{Param: paramRule, Err: err,
			Reason: fmt.Sprintf("%q is neither a registered rule (%s) nor a file", path, namedRules.list())}
	}
	return nil, &DSNError{Param: paramRule, Reason: "the rule does not load", Err: err}
}

// checkWarnings refuses a rule that has warnings where they are errors.
func checkWarnings(r *rule.Rule, mode string) error {
	warnings := r.Warnings()
	switch {
	case mode != "" && mode != "log" && mode != "error":
		return &DSNError{Param: paramWarnings, Reason: fmt.Sprintf("%q is none of log, error", mode)}
	case len(warnings) > 0 && mode == "error":
		return &DSNError{Param: paramWarnings, Reason: fmt.Sprintf("the rule has %d warnings, the first being", len(warnings)), Err: warnings[0]}
	}
	return nil
}

func logWarnings(r *rule.Rule, logger *slog.Logger) {
	for _, w := range r.Warnings() {
		logger.Warn("shardkey: the rule has a warning", "warning", w)
	}
}

func namedRule(name string) (*rule.Rule, bool) {
	namedRules.RLock()
	defer namedRules.RUnlock()
	r, ok := namedRules.rules[name]
	return r, ok
}

func (n *registeredRules) list() string {
	n.RLock()
	defer n.RUnlock()
	if len(n.rules) == 0 {
		return "none is registered"
	}
	return "registered: " + strings.Join(slices.Sorted(maps.Keys(n.rules)), ", ")
}
