package workerid

import (
	"math"

	"github.com/shardkey/shardkey/spi"
)

func init() {
	spi.RegisterWorkerIDAssigner("STATIC", newStatic)
	spi.RegisterWorkerIDAssigner("FILE", newFile)
	spi.RegisterWorkerIDAssigner("SQL", newSQL)
	spi.RegisterWorkerIDAssigner("IP", newMachine("IP", machineIP))
	spi.RegisterWorkerIDAssigner("HOSTNAME", newMachine("HOSTNAME", machineHostname))
}

// FromProps makes the assigner of a store and the shared properties
// (namespace, lease, renew), for the factories of lease assigners. open makes
// the store for a namespace, without input or output.
func FromProps(p spi.Props, open func(namespace string) (Store, error)) (spi.WorkerIDAssigner, error) {
	config, err := ConfigFromProps(p)
	if err != nil {
		return nil, err
	}
	store, err := open(config.Namespace)
	if err != nil {
		return nil, err
	}
	return NewAssigner(store, config)
}

func newStatic(p spi.Props) (spi.WorkerIDAssigner, error) {
	id, err := p.Int("worker-id", -1, 0, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	if id < 0 {
		return nil, &spi.PropError{Name: "worker-id", Want: "the worker id that this process alone has"}
	}
	return &given{kind: "STATIC", find: func() (int64, error) { return id, nil }}, nil
}

func newMachine(kind string, find func() (int64, error)) spi.WorkerIDAssignerFactory {
	return func(spi.Props) (spi.WorkerIDAssigner, error) {
		return &given{kind: kind, find: find}, nil
	}
}

func newFile(p spi.Props) (spi.WorkerIDAssigner, error) {
	path := p.String("path", "")
	if path == "" {
		return nil, &spi.PropError{Name: "path", Want: "a directory that the processes of this machine share, as /var/lib/app/workers"}
	}
	return FromProps(p, func(namespace string) (Store, error) {
		return NewFileStore(path, namespace), nil
	})
}

func newSQL(p spi.Props) (spi.WorkerIDAssigner, error) {
	dsn, table := p.Secret("dsn"), p.String("table", DefaultTable)
	if dsn == "" {
		dsn = p.HostDSN()
	}
	if dsn == "" {
		return nil, &spi.PropError{Name: "dsn", Want: "a DSN, as user:pass@tcp(127.0.0.1:3306)/app; the connector's own is not known here"}
	}
	return FromProps(p, func(namespace string) (Store, error) {
		return NewSQLStore(dsn, table, namespace)
	})
}
