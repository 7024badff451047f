package rule

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/shardkey/shardkey/spi"
)

// assigners are the worker-id assigners of one connector, each made when a
// generator first asks for it.
type assigners struct {
	rule *Rule
	host spi.Host

	mu     sync.Mutex
	made   map[int]spi.WorkerIDAssigner // by index in Rule.assigners
	closed bool
}

func newAssigners(r *Rule, host spi.Host) *assigners {
	return &assigners{rule: r, host: host, made: map[int]spi.WorkerIDAssigner{}}
}

// get returns the assigner of that name, always the same one.
func (a *assigners) get(name string) (spi.WorkerIDAssigner, error) {
	for i, spec := range a.rule.assigners {
		if strings.EqualFold(spec.name.text, name) {
			return a.make(i, spec)
		}
	}
	return nil, a.undefined(name)
}

func (a *assigners) make(i int, spec makeSpec) (spi.WorkerIDAssigner, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, fmt.Errorf("%w: worker-id assigner %s", spi.ErrClosed, spec.name.text)
	}
	if made, ok := a.made[i]; ok {
		return made, nil
	}
	made, err := a.rule.newAssigner(spec, a.host)
	if err == nil {
		a.made[i] = made
	}
	return made, err
}

// undefinedAssigner is turned into an [Error] at the property that names it.
type undefinedAssigner struct {
	name    string
	defined []string
}

func (e *undefinedAssigner) Error() string {
	s := fmt.Sprintf("worker-id assigner %q is not defined", e.name)
	if len(e.defined) == 0 {
		return s + "; the rule has no workerIdAssigners"
	}
	return s + "; defined: " + strings.Join(e.defined, ", ")
}

func (a *assigners) undefined(name string) error {
	e := &undefinedAssigner{name: name}
	for _, spec := range a.rule.assigners {
		e.defined = append(e.defined, spec.name.text)
	}
	return e
}

func (a *assigners) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	var errs []error
	for i, spec := range a.rule.assigners {
		if made, ok := a.made[i]; ok {
			errs = append(errs, closeNamed("worker-id assigner", spec.name.text, made))
		}
	}
	return errors.Join(errs...)
}

// each calls do with each assigner that has been made, in the rule's order.
func (a *assigners) each(do func(makeSpec, spi.WorkerIDAssigner)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, spec := range a.rule.assigners {
		if made, ok := a.made[i]; ok {
			do(spec, made)
		}
	}
}

// What a makeSpec makes, in the words of errors.
const (
	generatorKind = "key generator"
	assignerKind  = "worker-id assigner"
)

// check opens and closes all generators and assigners, so that what is wrong
// with their types and properties is an error when the rule is made. Factories
// ask no server, so nothing needs to be there.
func (r *Rule) check() error {
	// The host of a check belongs to no connector: a data source as every
	// connector has one, and no log, which is the live generators' to write.
	host := spi.Host{
		DSN:    "shardkey@tcp(127.0.0.1:3306)/shardkey",
		Logger: slog.New(slog.DiscardHandler),
	}
	a := newAssigners(r, host)
	for i, spec := range r.assigners {
		if _, err := a.make(i, spec); err != nil {
			return errors.Join(err, a.close())
		}
	}
	if err := a.close(); err != nil {
		return err
	}
	l, err := r.Open(host)
	if err != nil {
		return err
	}
	return l.Close()
}

func (r *Rule) newGenerator(m makeSpec, host spi.Host, a *assigners) (spi.KeyGenerator, error) {
	if m.ready != nil {
		return m.ready, nil
	}
	props, err := r.props(m, host)
	if err != nil {
		return nil, err
	}
	generator, err := spi.NewKeyGenerator(m.typ.text, props.WithWorkerIDAssigners(a.get))
	if err != nil {
		return nil, r.makeError(generatorKind, m, err)
	}
	return generator, nil
}

func (r *Rule) newAssigner(m makeSpec, host spi.Host) (spi.WorkerIDAssigner, error) {
	props, err := r.props(m, host)
	if err != nil {
		return nil, err
	}
	assigner, err := spi.NewWorkerIDAssigner(m.typ.text, props)
	if err != nil {
		return nil, r.makeError(assignerKind, m, err)
	}
	return assigner, nil
}

func (r *Rule) props(m makeSpec, host spi.Host) (spi.Props, error) {
	values := make(map[string]any, len(m.props))
	for i, p := range m.props {
		if other, dup := (makeSpec{props: m.props[:i]}).prop(p.name.text); dup {
			return spi.Props{}, errorAt(r.file, p.name, fmt.Sprintf("property %q is already given as %q%s", p.name.text, other.name.text, other.name.place.also()))
		}
		values[p.name.text] = p.value
	}
	props, err := spi.NewProps(values, host)
	if err != nil {
		return props, r.makeError("properties of", m, err)
	}
	return props, nil
}
