package rule

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/shardkey/shardkey/spi"
)

// atWork are the generators and assigners that are open in this process.
// Connectors of one rule share them: else each sql.DB of a process would take a
// worker id.
var atWork = new(pool)

// pool holds open generators and assigners, each as long as somebody uses it.
type pool struct {
	mu   sync.Mutex
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
	uses  []*made       // the assigners of a generator

	refs int           // users; at 0 it is being closed. Guarded by pool.mu
	gone chan struct{} // closed when it is closed
}

// acquire returns what key stands for, made by build if it is not there, for the
// caller to release. What an earlier rule had is taken over when it is
// configured in the same way. One that is being closed is waited for, so
// that there is never a second one beside it.
func (p *pool) acquire(key makeKey, m makeSpec, earlier []*made, build func(*made) error) (*made, error) {
	for {
		p.mu.Lock()
		if err := p.otherDatabase(key, m); err != nil {
			p.mu.Unlock()
			return nil, err
		}
		e := p.made[key]
		if e == nil {
			if e = p.equal(key, earlier); e != nil {
				p.made[key] = e
			}
		}
		switch {
		case e == nil:
			e = &made{kind: key.kind, spec: m, refs: 1, ready: make(chan struct{}), gone: make(chan struct{})}
			if p.made == nil {
				p.made = map[makeKey]*made{}
			}
			p.made[key] = e
			p.mu.Unlock()
			return p.build(e, build)
		case e.refs > 0:
			e.refs++
			p.mu.Unlock()
			<-e.ready
			if e.err != nil {
				return nil, e.err
			}
			return e, nil
		}
		p.mu.Unlock()
		<-e.gone
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
func (p *pool) build(e *made, build func(*made) error) (*made, error) {
	e.err = fmt.Errorf("shardkey: the factory of %s %q panicked", e.kind, e.spec.name.text)
	defer func() {
		if e.err != nil {
			_ = p.releaseAll(e.uses)
			p.forget(e)
			close(e.gone)
		}
		close(e.ready)
	}()
	if e.err = build(e); e.err != nil {
		return nil, e.err
	}
	return e, nil
}

// release ends a use. The last one closes it, and then the assigners that it used;
// the error is theirs.
func (p *pool) release(e *made) error {
	p.mu.Lock()
	e.refs--
	last := e.refs == 0
	p.mu.Unlock()
	if !last {
		return nil
	}
	defer close(e.gone)
	defer p.forget(e)
	err := closeNamed(e.kind, e.spec.name.text, e.value)
	return errors.Join(err, p.releaseAll(e.uses))
}

func (p *pool) releaseAll(all []*made) error {
	var errs []error
	for _, e := range all {
		errs = append(errs, p.release(e))
	}
	return errors.Join(errs...)
}

func (p *pool) forget(e *made) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, other := range p.made {
		if other == e {
			delete(p.made, key)
		}
	}
}

// otherDatabase returns the error for a rule that is open for one database already,
// with state in it, and now for another one.
func (p *pool) otherDatabase(key makeKey, m makeSpec) error {
	if !m.needsOneDatabase() || key.database == "" {
		return nil
	}
	for other, e := range p.made {
		// By its type, not its name: a newer version of the rule's file may have renamed it.
		if other.scope == key.scope && other.kind == key.kind && strings.EqualFold(e.spec.typ.text, m.typ.text) &&
			other.database != "" && other.database != key.database && e.refs > 0 {
			return &otherDatabaseError{other.database, key.database}
		}
	}
	return nil
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
