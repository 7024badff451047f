package rule

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/internal/registry"
	"github.com/shardkey/shardkey/spi"
)

// atWork has the generators of this process's open rules. Connectors of the same rule share them.
// Otherwise each sql.DB would lease its own worker ID.
var atWork = newPool()

// pool has the generators and assigners that open rules share. It closes one when it has no user.
type pool struct {
	mu         sync.Mutex
	components map[componentKey]*component
	databases  map[databaseKey]map[string]int // the number of keys in components, by their database
}

func newPool() *pool {
	return &pool{components: map[componentKey]*component{}, databases: map[databaseKey]map[string]int{}}
}

// componentKey identifies a generator or assigner. Rules share those with equal keys.
type componentKey struct {
	scope      any    // equal for two rules that share generators: the file, or the *Rule without one
	kind, name string // generatorKind or assignerKind; name in lower case
	config     string // type, properties and assigners
	clock      any
	database   string // the connector's own database, without user and parameters; "" if unused
}

func (k componentKey) inAnyScope() componentKey {
	k.scope = nil
	return k
}

// databaseKey identifies the generators or assigners that must not have several databases. It has
// their type, not their name: a newer version of the file may have renamed them.
type databaseKey struct {
	scope     any
	kind, typ string
}

type component struct {
	spec  componentSpec
	keys  []componentKey // guarded by pool.mu: its keys in pool.components
	users int            // guarded by pool.mu: open rules, or generators that use the assigner; 0: closing
	made  sync.Once      // sets value or err
	value any            // spi.KeyGenerator or spi.WorkerIDAssigner
	uses  []*component   // assigners that a generator uses
	err   error          // error of the factory
	gone  chan struct{}  // closed when value is closed
}

// open returns a generator or assigner for l, and calls build to make it if it doesn't exist. If an
// earlier rule of the same connector configured it in the same way, open reuses it. If it is just
// being closed, open waits, so that two never run at the same time. The caller must release the
// result.
func (p *pool) open(l *Live, m componentSpec, earlier map[componentKey]*component, build func(*component) error) (*component, error) {
	key := l.rule.keyOf(m, l.host)
	for {
		p.mu.Lock()
		if other := p.otherDatabase(key, m); other != "" {
			p.mu.Unlock()
			reason := fmt.Sprintf("the rule is open for two databases in this process, %s and %s", other, key.database)
			return nil, l.rule.ownDatabaseError(m, reason)
		}
		e := cmp.Or(p.components[key], earlier[key.inAnyScope()])
		if e == nil {
			m.assigners = nil // the factory will ask for them
			e = &component{spec: m, gone: make(chan struct{})}
		} else if e.users == 0 {
			p.mu.Unlock()
			<-e.gone
			maps.DeleteFunc(earlier, func(_ componentKey, of *component) bool { return of == e })
			continue
		}
		p.add(key, e)
		e.users++
		p.mu.Unlock()
		e.made.Do(func() { p.build(e, build) })
		return e, e.err
	}
}

func (p *pool) add(key componentKey, e *component) {
	if p.components[key] == e {
		return
	}
	p.components[key] = e
	e.keys = append(e.keys, key)
	if key.database != "" {
		of := e.spec.databaseKey(key.scope)
		if p.databases[of] == nil {
			p.databases[of] = map[string]int{}
		}
		p.databases[of][key.database]++
	}
}

func (m componentSpec) databaseKey(scope any) databaseKey {
	return databaseKey{scope, m.kind, strings.ToLower(m.typ.text)}
}

// leaveDatabases undoes what add did to databases.
func (p *pool) leaveDatabases(e *component) {
	for _, key := range e.keys {
		of := e.spec.databaseKey(key.scope)
		databases := p.databases[of]
		if databases == nil {
			continue
		}
		if databases[key.database]--; databases[key.database] <= 0 {
			delete(databases, key.database)
		}
		if len(databases) == 0 {
			delete(p.databases, of)
		}
	}
}

// held returns the generators and assigners that l uses, by their keys without the scope.
func (p *pool) held(l *Live) map[componentKey]*component {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[componentKey]*component{}
	for _, e := range l.generators {
		for _, e := range append(e.uses, e) {
			for _, key := range e.keys {
				all[key.inAnyScope()] = e
			}
		}
	}
	return all
}

// build makes the generator or assigner. Goroutines that wait for it get the same error.
func (p *pool) build(e *component, build func(*component) error) {
	e.err = fmt.Errorf("shardkey: the factory of %s panicked", e.spec)
	defer func() {
		if e.err == nil {
			return
		}
		p.mu.Lock()
		p.leaveDatabases(e)
		p.forget(e)
		p.mu.Unlock()
		for _, a := range e.uses {
			_ = p.release(a)
		}
	}()
	e.err = build(e)
}

// release ends one use of a generator or assigner. The last one closes it, and then the assigners
// that it uses.
func (p *pool) release(e *component) error {
	if e.spec.ready != nil {
		return nil // it was made, and is closed, outside of the rule
	}
	p.mu.Lock()
	e.users--
	last := e.users == 0
	if last {
		p.leaveDatabases(e)
	}
	p.mu.Unlock()
	if !last {
		return nil
	}
	errs := []error{e.spec.close(e.value)}
	for _, a := range e.uses {
		errs = append(errs, p.release(a))
	}
	p.mu.Lock()
	p.forget(e)
	p.mu.Unlock()
	close(e.gone)
	return errors.Join(errs...)
}

func (p *pool) forget(e *component) {
	for _, key := range e.keys {
		delete(p.components, key)
	}
}

// otherDatabase returns another database for which the same rule is open with state in its own
// database, or "" if there is none.
func (p *pool) otherDatabase(key componentKey, m componentSpec) string {
	if !m.needsOneDatabase() || key.database == "" {
		return ""
	}
	for database := range p.databases[m.databaseKey(key.scope)] {
		if database != key.database {
			return database
		}
	}
	return ""
}

// keyOf returns the key of a generator or assigner for a host.
func (r *Rule) keyOf(m componentSpec, host spi.Host) componentKey {
	key := componentKey{scope: r, kind: m.kind, name: strings.ToLower(m.name.text), config: m.config(), clock: host.Clock}
	if r.source.path != "" {
		key.scope = source{path: r.source.path}
	}
	if key.clock == nil {
		key.clock = spi.SystemClock
	}
	if !reflect.ValueOf(key.clock).Comparable() {
		key.clock = new(byte) // equal to no other clock
	}
	if m.ownDatabase {
		key.database = databaseName(host.DSN.Reveal())
	}
	for _, i := range m.assigners {
		a := r.keyOf(r.assigners.all[i], host)
		key.config += fmt.Sprintf(" %q=(%s %q)", a.name, a.config, a.database)
	}
	return key
}

// config returns a string that identifies the type and the properties. It is a hash, because
// properties may be passwords.
func (m componentSpec) config() string {
	props := make([]string, len(m.props))
	for i, p := range m.props {
		values := []string{p.value.Reveal()}
		for _, v := range p.list {
			values = append(values, v.Reveal())
		}
		props[i] = fmt.Sprintf("%q=%q", registry.PropKey(p.name.text), values)
	}
	slices.Sort(props)
	sum := sha256.Sum256([]byte(strings.Join(props, " ")))
	return strings.ToUpper(m.typ.text) + " " + hex.EncodeToString(sum[:])
}

// ErrOwnDatabase is in the chain of the error for a rule over several databases whose generator or
// worker-ID assigner keeps its state in the connector's own database. Each database would generate
// the same keys. To fix it, set the property dsn to one database for all of them. The property
// own-database: yes permits it where the keys never share a table.
var ErrOwnDatabase = errors.New("shardkey: the databases of one rule would generate the same keys")

// ownDatabase is the property that permits state in the connector's own database.
const ownDatabase = "own-database"

// needsOneDatabase reports whether two databases, each with this state, would generate the same
// keys.
func (m componentSpec) needsOneDatabase() bool { return m.used && m.ownDatabase && !m.ownMeant }

// checkDatabases returns an error if the rule has several data sources and keeps state in each of
// them.
func (r *Rule) checkDatabases() error {
	reason := r.severalSources()
	if reason == "" {
		return nil
	}
	all := slices.Concat(r.assigners.all, r.generators.all)
	if i := slices.IndexFunc(all, componentSpec.needsOneDatabase); i >= 0 {
		return r.ownDatabaseError(all[i], reason)
	}
	return nil
}

// severalSources returns how the rule shows that its tables are in more than one data source. It
// returns "" if it doesn't.
func (r *Rule) severalSources() string {
	switch {
	case len(r.sources) > 1 || len(r.sources) == 1 && strings.Contains(r.sources[0], "${"):
		shown := strings.Join(r.sources[:min(3, len(r.sources))], ", ")
		if len(r.sources) > 3 {
			shown += ", …"
		}
		return "the tables are in several data sources (" + shown + ")"
	case r.spread != "":
		return fmt.Sprintf("a databaseStrategy distributes table %q over several data sources", r.spread)
	}
	return ""
}

func (r *Rule) ownDatabaseError(m componentSpec, reason string) *Error {
	way := "the property dsn with one database for all of them"
	if strings.EqualFold(m.typ.text, "TICKET") {
		way = "the property dsns with the same ticket servers for all of them"
	}
	e := errorAt(r.file, m.name, fmt.Sprintf(
		"%s keeps its state in the connector's own database, but %s, and each would generate the same keys; add %s"+
			"; %s: yes permits it where rows never move between the databases",
		m, reason, way, ownDatabase))
	e.Err = ErrOwnDatabase
	return e
}

// databaseOf returns the default database of a data source name in go-sql-driver/mysql's form. It
// returns "" if there is none, or if the name is invalid.
func databaseOf(dsn string) string {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return ""
	}
	return cfg.DBName
}

// databaseName returns the address and the database of a data source name, without user, password
// and parameters. Two names for the same database at the same address give the same result. It
// returns "" for an empty or invalid name.
func databaseName(dsn string) string {
	cfg, err := mysql.ParseDSN(dsn)
	if dsn == "" || err != nil {
		return ""
	}
	if cfg.Net == "tcp" {
		cfg.Addr = strings.ToLower(cfg.Addr)
	}
	return fmt.Sprintf("%s(%s)/%s", cfg.Net, cfg.Addr, cfg.DBName)
}
