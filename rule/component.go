package rule

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/registry"
	"github.com/shardkey/shardkey/spi"
)

// Kinds of a componentSpec, as error messages name them.
const (
	generatorKind = registry.KeyGenerators
	assignerKind  = registry.WorkerIDAssigners
)

// check opens and closes all generators and assigners, so that a wrong type or property is an error
// when the rule is made. It also records which assigners and databases they use. Factories contact
// no server.
func (r *Rule) check() error {
	// This host belongs to no connector. It has a data source, as every connector does. It discards
	// logs, because the generators log when they are opened for use.
	host := spi.Host{
		DSN:    spi.NewSecret("shardkey@tcp(127.0.0.1:3306)/shardkey"),
		Logger: slog.New(slog.DiscardHandler),
	}
	for i, m := range r.assigners.all {
		e := &component{spec: m}
		if err := makeComponent(r, host, e, spi.NewWorkerIDAssigner); err != nil {
			return err
		}
		r.assigners.all[i] = e.spec
		if err := m.close(e.value); err != nil {
			return err
		}
	}
	l, err := r.openGenerators(newPool(), host, nil)
	if err != nil {
		return err
	}
	for i, e := range l.generators {
		g := &r.generators.all[i]
		if err := g.readShardBits(e.value); err != nil {
			return errors.Join(r.componentError(*g, err), l.Close())
		}
		g.ownDatabase, g.ownMeant, g.assigners, g.secrets = e.spec.ownDatabase, e.spec.ownMeant, e.spec.assigners, e.spec.secrets
		for _, a := range g.assigners {
			r.assigners.all[a].used = r.assigners.all[a].used || g.used
		}
	}
	return l.Close()
}

func (l *Live) openGenerator(m componentSpec, earlier map[componentKey]*component) (*component, error) {
	if m.ready != nil {
		return &component{spec: m, value: m.ready}, nil
	}
	return l.pool.open(l, m, earlier, func(e *component) error { return l.makeGenerator(earlier, e) })
}

// makeGenerator makes a generator, and opens the assigners that its factory asks for.
func (l *Live) makeGenerator(earlier map[componentKey]*component, e *component) error {
	r, host, done := l.rule, l.host, false
	host.WorkerIDAssigner = func(name string) (spi.WorkerIDAssigner, error) {
		a, known := r.assigners.find(name)
		switch {
		case done:
			return nil, fmt.Errorf("%w: only a factory can open a worker-ID assigner, before it returns", spi.ErrClosed)
		case !known:
			return nil, r.undefinedAssigner(e.spec, name)
		}
		build := func(used *component) error { return makeComponent(r, l.host, used, spi.NewWorkerIDAssigner) }
		used, err := l.pool.open(l, r.assigners.all[a], earlier, build)
		if err != nil {
			return nil, err
		}
		e.uses, e.spec.assigners = append(e.uses, used), append(e.spec.assigners, a)
		return used.value.(spi.WorkerIDAssigner), nil
	}
	defer func() { done = true }()
	return makeComponent(r, host, e, spi.NewKeyGenerator)
}

// makeComponent sets e.value with the factory of a type.
func makeComponent[T any](r *Rule, host spi.Host, e *component, factory func(string, spi.Props) (T, error)) error {
	props, err := r.props(e.spec, host)
	if err != nil {
		return err
	}
	value, err := factory(e.spec.typ.text, props)
	if err != nil {
		return r.componentError(e.spec, err)
	}
	e.value = value
	return r.note(props, e)
}

// undefinedAssigner returns an error at the property of the generator whose value is name.
func (r *Rule) undefinedAssigner(m componentSpec, name string) error {
	w := word{name, m.name.position}
	for _, p := range m.props {
		if p.value.Reveal() != name {
			continue
		}
		if w.position = p.position; p.fromEnv {
			w.text = p.written.Reveal()
		}
	}
	return undefined(r.file, assignerKind, "workerIdAssigners", w, r.assigners)
}

func undefined(file, kind, list string, name word, makers components) error {
	var defined []string
	for _, m := range makers.all {
		defined = append(defined, m.name.text)
	}
	reason := fmt.Sprintf("%s %q is not defined; defined: %s", kind, name.text, strings.Join(defined, ", "))
	if len(defined) == 0 {
		reason = fmt.Sprintf("%s %q is not defined; the rule has no %s", kind, name.text, list)
	}
	return errorAt(file, name, reason, defined...)
}

// note records whether the factory used the connector's own database, and which properties are
// secrets. It returns an error if a Config has a secret property as a string instead of an spi.Secret.
func (r *Rule) note(props spi.Props, e *component) (err error) {
	own, secrets := props.Used()
	if e.spec.ownDatabase = own; own {
		e.spec.ownMeant, err = props.Bool(ownDatabase, false)
	}
	e.spec.secrets = nil // of another opening
	for _, p := range e.spec.props {
		if !slices.Contains(secrets, p.name.text) {
			continue
		}
		e.spec.secrets = append(e.spec.secrets, p.name.text)
		if p.plain && err == nil {
			err = &spi.PropError{Name: p.name.text, Want: "a spi.Secret or a []spi.Secret; spi.NewSecret returns one"}
		}
	}
	if err != nil {
		_ = e.spec.close(e.value)
		return r.componentError(e.spec, err)
	}
	return nil
}

func (r *Rule) props(m componentSpec, host spi.Host) (spi.Props, error) {
	attr := map[string]string{generatorKind: "generator", assignerKind: "assigner"}[m.kind]
	host.Logger = cmp.Or(host.Logger, slog.Default()).With(attr, m.name.text)
	values, seen := make(map[string]any, len(m.props)), make(map[string]word, len(m.props))
	for _, p := range m.props {
		if other, dup := seen[registry.PropKey(p.name.text)]; dup {
			return spi.Props{}, errorAt(r.file, p.name, fmt.Sprintf("property %q is already set as %q%s", p.name.text,
				other.text, other.position.also()))
		}
		seen[registry.PropKey(p.name.text)] = p.name
		if m.kind == generatorKind && p.isShardBits() {
			continue
		}
		if values[p.name.text] = p.value; p.list != nil {
			values[p.name.text] = p.list
		}
	}
	props, err := spi.NewProps(values, host)
	if err != nil {
		return props, r.componentError(m, err)
	}
	return props, nil
}
