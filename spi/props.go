package spi

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shardkey/shardkey/internal/registry"
	"github.com/shardkey/shardkey/internal/secrets"
)

// Props are the properties of one generator or assigner, as written in its rule. Names are
// case-insensitive, and "worker-id" and "worker.id" are the same name. The zero Props has no
// properties. Props records the names passed to its getters, and copies share this record. Use
// Props only in the goroutine that calls the factory.
//
// Each getter takes the default for a missing property. Its error is a [*PropError] with the
// property, its value and the valid values.
//
// The names passed to the getters are the properties of a type. After the factory returns,
// [NewKeyGenerator] refuses all other properties. A factory should therefore call the getters of
// all its properties each time. If it calls a getter only in one case, the property is refused in
// the other cases.
type Props struct {
	values   map[string]prop
	asked    map[string]string // normalised name → name passed to a getter
	secret   map[string]bool   // normalised names passed to Secret and Secrets
	host     Host
	usesHost *bool
}

// prop is a property. Whether it is a password is known only when a getter is called, so every
// value is a Secret.
type prop struct {
	name  string
	value Secret   // items of a list joined by commas
	list  []Secret // nil for a scalar
}

// Host is the connector that a generator generates keys for. The zero value has no data source, and
// uses the system clock and the default logger.
type Host struct {
	// DSN is the connector's own data source name in go-sql-driver/mysql's form, without shardkey's
	// parameters. It is empty if it isn't known.
	DSN Secret
	// Clock is the clock to use. Nil means SystemClock.
	Clock Clock
	// Logger is the logger for generators and assigners. Nil means slog.Default().
	Logger *slog.Logger
	// WorkerIDAssigner returns the worker-ID assigner with a name in the rule. Nil means that there
	// are none. The rule closes the assigner.
	WorkerIDAssigner func(name string) (WorkerIDAssigner, error)
}

// NewProps returns Props with these names and values. A value is a string, a [Secret], or a slice
// of either. A value of another type, and two spellings of the same name, are a [*PropError].
func NewProps(values map[string]any, host Host) (Props, error) {
	p := Props{values: map[string]prop{}, asked: map[string]string{}, secret: map[string]bool{}, host: host, usesHost: new(bool)}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		key := registry.PropKey(name)
		if other, dup := p.values[key]; dup {
			return Props{}, &PropError{Name: name, Want: fmt.Sprintf("the property once; it is also set as %q", other.name)}
		}
		switch v := values[name].(type) {
		case string:
			p.values[key] = prop{name: name, value: NewSecret(v)}
		case Secret:
			p.values[key] = prop{name: name, value: v}
		case []string:
			p.values[key] = listProp(name, v, NewSecret)
		case []Secret:
			p.values[key] = listProp(name, v, func(s Secret) Secret { return s })
		default:
			return Props{}, &PropError{Name: name, Want: fmt.Sprintf("a string or a list of strings, not a %T", v)}
		}
	}
	return p, nil
}

func listProp[T any](name string, items []T, secret func(T) Secret) prop {
	p := prop{name: name, list: make([]Secret, len(items))}
	texts := make([]string, len(items))
	for i, item := range items {
		p.list[i] = secret(item)
		texts[i] = p.list[i].Reveal()
	}
	p.value = NewSecret(strings.Join(texts, ","))
	return p
}

// Clock returns the host's clock, or [SystemClock] if there is none.
func (p Props) Clock() Clock {
	if p.host.Clock == nil {
		return SystemClock
	}
	return p.host.Clock
}

// Logger returns the host's logger, or slog.Default() if there is none.
func (p Props) Logger() *slog.Logger { return cmp.Or(p.host.Logger, slog.Default()) }

// ownDatabase is a property of every type that calls [Props.HostDSN].
const ownDatabase = "own-database"

// HostDSN returns the connector's own data source name. It is empty if it isn't known.
//
// A factory should call it only if no property names another database, because the call means that
// the state is in the connector's own database. If a rule has several databases, each of them would
// have its own state and generate the same keys. Such a rule is refused unless the property
// own-database is yes.
func (p Props) HostDSN() Secret {
	if p.usesHost != nil {
		*p.usesHost = true
		p.asked[ownDatabase] = ownDatabase
	}
	return p.host.DSN
}

// Used reports how a factory has used the properties: whether it called HostDSN, and the names of the
// secrets among them. It is for the caller of the factory.
func (p Props) Used() (hostDSN bool, secrets []string) {
	for key, given := range p.values {
		if p.isSecret(key) {
			secrets = append(secrets, given.name)
		}
	}
	return p.usesHost != nil && *p.usesHost, secrets
}

// WorkerIDAssigner returns the rule's worker-ID assigner that the property names, or nil if the
// property is missing. The caller must not close it.
func (p Props) WorkerIDAssigner(name string) (WorkerIDAssigner, error) {
	v, ok := p.get(name)
	if !ok {
		return nil, nil
	}
	if p.host.WorkerIDAssigner == nil {
		return nil, p.Wrong(name, "the name of a worker-ID assigner; the rule has no workerIdAssigners")
	}
	return p.host.WorkerIDAssigner(v)
}

// Has reports whether the property is set.
func (p Props) Has(name string) bool {
	_, ok := p.get(name)
	return ok
}

// String returns the value as written, or def if the property is missing.
func (p Props) String(name, def string) string {
	if v, ok := p.get(name); ok {
		return v
	}
	return def
}

// Secret returns a value that must not appear in errors, logs or descriptions. It is empty if the
// property is missing. [Props.Wrong] doesn't show it. If a factory's error may contain the value,
// the message is replaced. The value counts if it occurs as a word, or anywhere if it has 8
// characters or more.
func (p Props) Secret(name string) Secret {
	p.keepSecret(name)
	v, _ := p.get(name)
	return NewSecret(v)
}

// Secrets is like List, for values that are secrets, for example addresses with passwords.
func (p Props) Secrets(name string) []Secret {
	p.keepSecret(name)
	items := p.List(name)
	if items == nil {
		return nil
	}
	secrets := make([]Secret, len(items))
	for i, item := range items {
		secrets[i] = NewSecret(item)
	}
	return secrets
}

func (p Props) keepSecret(name string) {
	if p.secret != nil {
		p.secret[registry.PropKey(name)] = true
	}
}

// isSecret reports whether the property is a secret: Secret or Secrets was called for it, or its
// name contains password, passwd, secret, token or credential.
func (p Props) isSecret(name string) bool {
	key := registry.PropKey(name)
	return p.secret[key] || slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(key, word) })
}

// secretWords are parts of the names of properties that are always secrets.
var secretWords = []string{"password", "passwd", "secret", "token", "credential"}

// List returns the items of a list or of a comma-separated string, without surrounding spaces. It
// is nil if the property is missing.
func (p Props) List(name string) []string {
	v, ok := p.get(name)
	if !ok {
		return nil
	}
	items := strings.Split(v, ",")
	if list := p.values[registry.PropKey(name)].list; list != nil {
		items = make([]string, len(list))
		for i, item := range list {
			items[i] = item.Reveal()
		}
	}
	for i, item := range items {
		items[i] = strings.TrimSpace(item)
	}
	return items
}

// Int returns an integer in min..max, or def if the property is missing. It panics if min is greater
// than max.
func (p Props) Int(name string, def, min, max int64) (int64, error) {
	checkBounds(name, min, max)
	v, ok := p.get(name)
	if !ok {
		return def, nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
	if p.values[registry.PropKey(name)].list != nil {
		err = strconv.ErrSyntax
	}
	if err != nil || n < min || n > max {
		return 0, p.wrong(name, fmt.Sprintf("an integer in %d..%d", min, max))
	}
	return n, nil
}

// checkBounds panics if a factory passes its bounds in the wrong order, since no user could set the
// property.
func checkBounds[T int64 | time.Duration](name string, min, max T) {
	if min > max {
		panic(fmt.Sprintf("spi: property %q: expected bounds min <= max, found %v and %v", name, min, max))
	}
}

// Bool returns the value of true, false, yes or no, or def if the property is missing.
func (p Props) Bool(name string, def bool) (bool, error) {
	v, ok := p.get(name)
	if !ok {
		return def, nil
	}
	switch strings.ToLower(v) {
	case "true", "yes":
		return true, nil
	case "false", "no":
		return false, nil
	}
	return false, p.wrong(name, "true or false")
}

// Duration returns a duration in min..max, or def if the property is missing. The value is in Go's
// notation ("10s", "1h30m"). A number without a unit is an error. It panics if min is greater than
// max.
func (p Props) Duration(name string, def, min, max time.Duration) (time.Duration, error) {
	checkBounds(name, min, max)
	v, ok := p.get(name)
	if !ok {
		return def, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < min || d > max {
		return 0, p.wrong(name, fmt.Sprintf("a duration in %v..%v, for example \"10s\"", min, max))
	}
	return d, nil
}

// Time returns a time, or def if the property is missing. The value is in RFC 3339
// ("2016-11-01T00:00:00Z") or is a date ("2016-11-01"), which means midnight UTC.
func (p Props) Time(name string, def time.Time) (time.Time, error) {
	v, ok := p.get(name)
	if !ok {
		return def, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, v); err == nil {
			return t, nil
		}
	}
	return time.Time{}, p.wrong(name, "a time with its zone, for example 2016-11-01T00:00:00Z")
}

// Enum returns one of the allowed words, or def if the property is missing. Words are
// case-insensitive.
func (p Props) Enum(name, def string, allowed ...string) (string, error) {
	v, ok := p.get(name)
	if !ok {
		return def, nil
	}
	for _, a := range allowed {
		if strings.EqualFold(a, v) {
			return a, nil
		}
	}
	return "", p.wrong(name, "one of "+strings.Join(allowed, ", "))
}

// Wrong returns a [*PropError] for a property whose value is invalid. want describes the valid
// values. The error shows the value unless it is a secret.
func (p Props) Wrong(name, want string) error {
	e := p.wrong(name, want)
	e.fixed = false
	return e
}

func (p Props) wrong(name, want string) *PropError {
	e := &PropError{Name: name, Want: want, fixed: true}
	if given, ok := p.values[registry.PropKey(name)]; ok {
		e.Name = given.name
		if !p.isSecret(name) {
			e.Value = given.value.Reveal()
		}
	}
	return e
}

func (p Props) get(name string) (string, bool) {
	key := registry.PropKey(name)
	if p.asked != nil {
		p.asked[key] = name
	}
	v, ok := p.values[key]
	return v.value.Reveal(), ok
}

// unknown returns an error for the first property that no getter was called for.
func (p Props) unknown() error {
	for _, key := range slices.Sorted(maps.Keys(p.values)) {
		if _, ok := p.asked[key]; !ok {
			if key == ownDatabase {
				return p.Wrong(ownDatabase, "no value; only a generator or assigner with its state in the connector's own database has this property")
			}
			known := slices.Sorted(maps.Values(p.asked))
			e := &PropError{Name: p.values[key].name, Unknown: true, Known: known}
			if shown := secrets.ShownName(e.Name); shown != e.Name {
				e.Name, e.Want = shown, "a name of letters, digits, '.', '-' and '_'; add a space after its ':'"
			}
			for _, of := range known {
				if rest, below := strings.CutPrefix(strings.ToLower(e.Name), of+"."); below && rest != "" && p.isSecret(of) {
					e.Name, e.Want = of, "a string, not a map" // the rest of the name may be the secret
				}
			}
			return e
		}
	}
	return nil
}

// CheckAddress returns an error like [Props.Wrong] if address, which is part of the property's
// value, isn't host:port with a numeric port. Addresses are sometimes written with a user and a
// password, as in URLs. The error shows the value only if it contains neither.
func (p Props) CheckAddress(name, address, want string) error {
	if isHostPort(address) {
		return nil
	}
	return p.wrongAddress(name, want)
}

func isHostPort(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil || !isAddress(host) {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

func (p Props) wrongAddress(name, want string) error {
	value := p.String(name, "")
	shown := true
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		for _, scheme := range []string{"http://", "https://"} {
			item = strings.TrimPrefix(item, scheme)
		}
		shown = shown && isAddress(item)
	}
	if shown {
		return p.Wrong(name, want)
	}
	if strings.Contains(value, "@") {
		want += "; user and password go into the properties username and password"
	}
	return &PropError{Name: name, Want: want}
}

// isAddress reports whether text only has characters that occur in hosts and ports.
var isAddress = regexp.MustCompile(`^[a-zA-Z0-9.:_\[\]%\x{80}-\x{10FFFF}-]*$`).MatchString
