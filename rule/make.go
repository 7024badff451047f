package rule

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/shardkey/shardkey/spi"
)

// packageOf gives the package in which a type lives that shardkey brings along,
// so that the error for a type that is not registered says what to import.
func packageOf(kind, typ string) string {
	switch typ = strings.ToUpper(typ); typ {
	case "REDIS":
		return "keygen/redis"
	case "ZOOKEEPER", "ETCD":
		if kind == assignerKind {
			return "keygen/" + strings.ToLower(typ)
		}
	case "LEAF_SNOWFLAKE":
		if kind == generatorKind {
			return "keygen/zookeeper"
		}
	case "SNOWFLAKE", "SNOWFLAKE_RING", "UUID", "NANOID", "LEAF_SEGMENT", "TICKET":
		if kind == generatorKind {
			return "driver"
		}
	case "STATIC", "FILE", "SQL", "IP", "HOSTNAME":
		if kind == assignerKind {
			return "driver"
		}
	}
	return ""
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
	// The host of a check is nobody's: a data source as every connector has
	// one, and no log, which is the live generators' to write.
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
	g, err := r.Open(host)
	if err != nil {
		return err
	}
	return g.Close()
}

func (r *Rule) newGenerator(m makeSpec, host spi.Host) (spi.KeyGenerator, error) {
	if m.ready != nil {
		return m.ready, nil
	}
	props, err := r.props(m, host)
	if err != nil {
		return nil, err
	}
	generator, err := spi.NewKeyGenerator(m.typ.text, props)
	if err == nil && generator == nil {
		err = errors.New("its factory returned nothing")
	}
	if err != nil {
		return nil, r.makeError(generatorKind, m, err)
	}
	return generator, nil
}

func (r *Rule) newAssigner(m makeSpec, host spi.Host) (spi.WorkerIDAssigner, error) {
	host.WorkerIDAssigner = nil // an assigner needs no assigner
	props, err := r.props(m, host)
	if err != nil {
		return nil, err
	}
	assigner, err := spi.NewWorkerIDAssigner(m.typ.text, props)
	if err == nil && assigner == nil {
		err = errors.New("its factory returned nothing")
	}
	if err != nil {
		return nil, r.makeError(assignerKind, m, err)
	}
	return assigner, nil
}

func (r *Rule) props(m makeSpec, host spi.Host) (spi.Props, error) {
	values := make(map[string]any, len(m.props))
	for i, p := range m.props {
		if other, dup := (makeSpec{props: m.props[:i]}).prop(p.name.text); dup {
			return spi.Props{}, errorAt(r.file, p.name, fmt.Sprintf("property %q is there as %q already%s", p.name.text, other.name.text, other.name.place.also()))
		}
		values[p.name.text] = p.value
	}
	props, err := spi.NewProps(values, host)
	if err != nil {
		return props, r.makeError("properties of", m, err)
	}
	return props, nil
}
