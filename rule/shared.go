package rule

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/shardkey/shardkey/spi"
)

// atWork are the rules that are open in this process. Connectors of one rule share its
// generators and assigners: otherwise each sql.DB of a process would take a worker ID.
var atWork = new(pool)

// pool holds open rules, and the generators and assigners that they share. It closes a
// generator when no open rule holds it any more.
type pool struct {
	mu   sync.Mutex
	live map[*Live]struct{}
	made map[makeKey]*made
}

// makeKey tells which generators and assigners are the same. Equal keys mean one.
type makeKey struct {
	scope      any    // the rule: its file, or the *Rule
	kind, name string // generatorKind or assignerKind; in lower case
	config     string // type, properties, and the assigners that a generator uses
	clock      any
	database   string // the own database where it is used, without user and parameters
}

// made is an open generator or assigner.
type made struct {
	kind  string
	spec  makeSpec
	ready chan struct{} // closed when value or err is set
	value any           // the spi.KeyGenerator or spi.WorkerIDAssigner
	err   error         // of the factory
	gone  chan struct{} // closed when it is closed

	// Guarded by pool.mu, as is Live.held.
	uses    []*made // the assigners of a generator
	closing bool
}

// enter adds a rule that is being opened.
func (p *pool) enter(l *Live) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live == nil {
		p.live, p.made = map[*Live]struct{}{}, map[makeKey]*made{}
	}
	p.live[l] = struct{}{}
}

// open returns l's generator or assigner, made by build if it is not there. An open rule holds
// it from hold on, which is called first, with the lock. What an earlier rule had is taken
// over when it is configured in the same way. One that is being closed is waited for, so
// that there is never a second one next to it.
func (p *pool) open(l *Live, kind string, m makeSpec, earlier []*made,
	hold func(*made), build func(*made) error,
) (*made, error) {
	key := l.rule.keyOf(kind, m, l.host)
	for {
		p.mu.Lock()
		if other := p.otherDatabase(key, m); other != "" {
			p.mu.Unlock()
			reason := fmt.Sprintf("the rule is open for two databases in this process, %s and %s", other, key.database)
			return nil, l.rule.ownDatabaseError(kind, m, reason)
		}
		e := p.made[key]
		if e == nil {
			e = p.equal(key, earlier)
		}
		isNew := e == nil
		if isNew {
			m.assigners = nil // the factory asks for them
			e = &made{kind: key.kind, spec: m, ready: make(chan struct{}), gone: make(chan struct{})}
		}
		if e.closing {
			p.mu.Unlock()
			<-e.gone
			continue
		}
		p.made[key] = e
		hold(e)
		p.mu.Unlock()
		if isNew {
			p.build(e, build)
		}
		<-e.ready
		return e, e.err
	}
}

// equal finds the one of an earlier rule that only its scope tells from key.
func (p *pool) equal(key makeKey, earlier []*made) *made {
	for other, e := range p.made {
		if other.scope = key.scope; other == key && slices.Contains(earlier, e) {
			return e
		}
	}
	return nil
}

// build makes it. Those who wait for it get its error as well.
func (p *pool) build(e *made, build func(*made) error) {
	e.err = fmt.Errorf("shardkey: the factory of %s %q panicked", e.kind, e.spec.name.text)
	defer func() {
		if e.err != nil {
			p.forget(e)
		}
		close(e.ready)
	}()
	e.err = build(e)
}

// leave removes an open rule, and closes what no other holds: generators, and then the
// assigners that they used.
func (p *pool) leave(l *Live) error {
	unused := p.unused(l)
	var errs []error
	for _, e := range unused {
		errs = append(errs, e.close())
	}
	p.forget(unused...)
	for _, e := range unused {
		close(e.gone)
	}
	return errors.Join(errs...)
}

// unused removes an open rule, and returns what only it held.
func (p *pool) unused(l *Live) (unused []*made) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.live, l)
	held := map[*made]bool{}
	for other := range p.live {
		for _, e := range other.holds() {
			held[e] = true
		}
	}
	for _, e := range l.holds() {
		if !held[e] {
			held[e], e.closing = true, true
			unused = append(unused, e)
		}
	}
	return unused
}

// close closes it, if it was made.
func (e *made) close() error {
	if e.err != nil {
		return nil
	}
	return closeNamed(e.kind, e.spec.name.text, e.value)
}

func (p *pool) forget(all ...*made) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.made, func(_ makeKey, e *made) bool { return slices.Contains(all, e) })
}

// otherDatabase returns the database for which a rule with state in it is open already, where
// key's is another one; empty for none.
func (p *pool) otherDatabase(key makeKey, m makeSpec) string {
	if !m.needsOneDatabase() || key.database == "" {
		return ""
	}
	for other, e := range p.made {
		// By its type, not its name: a newer version of the rule's file may have renamed it.
		if other.scope == key.scope && other.kind == key.kind && strings.EqualFold(e.spec.typ.text, m.typ.text) &&
			other.database != "" && other.database != key.database && !e.closing {
			return other.database
		}
	}
	return ""
}

// keyOf is the key of a generator or assigner of the rule, for a host.
func (r *Rule) keyOf(kind string, m makeSpec, host spi.Host) makeKey {
	key := makeKey{scope: r.scope(), kind: kind, name: strings.ToLower(m.name.text), config: m.config(), clock: host.Clock}
	if key.clock == nil {
		key.clock = spi.SystemClock
	}
	if !reflect.ValueOf(key.clock).Comparable() {
		key.clock = new(byte) // equal to no other
	}
	if m.ownDatabase {
		key.database = databaseName(host.DSN.Reveal())
	}
	for _, i := range m.assigners {
		a := r.keyOf(assignerKind, r.assigners[i], host)
		key.config += fmt.Sprintf(" %q=(%s %q)", a.name, a.config, a.database)
	}
	return key
}

// config tells the type and the properties of a generator or assigner from others.
// It is a hash, since properties may be passwords.
func (m makeSpec) config() string {
	props := make([]string, len(m.props))
	for i, p := range m.props {
		values := []string{p.value.Reveal()}
		for _, v := range p.list {
			values = append(values, v.Reveal())
		}
		props[i] = fmt.Sprintf("%q=%q", propKey(p.name.text), values)
	}
	slices.Sort(props)
	sum := sha256.Sum256([]byte(strings.Join(props, " ")))
	return strings.ToUpper(m.typ.text) + " " + hex.EncodeToString(sum[:])
}
