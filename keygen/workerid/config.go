package workerid

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Defaults of [Config].
const (
	DefaultNamespace = "shardkey"
	DefaultLease     = 10 * time.Second
	DefaultRenew     = 3 * time.Second
)

// Bounds of a lease. Shorter ones than a store can renew in time cost
// availability, never uniqueness.
const (
	minLease = 100 * time.Millisecond
	maxLease = 24 * time.Hour
	minRenew = 10 * time.Millisecond
)

// Config is what lease assigners have in common. The zero value is the
// defaults.
type Config struct {
	// Namespace sets worker ids of one family of generators apart from others
	// in the same store: 1..64 letters, digits, '.', '_', '-'; not '.' first.
	// "" is DefaultNamespace. Stores are made for a namespace; here it is for
	// messages.
	Namespace string
	// Lease is how far ahead of now id time is reserved, 100ms..24h, 0 is
	// DefaultLease. So long do keys go on when the store is away, and so long
	// is the worker id of a crashed process not free.
	Lease time.Duration
	// Renew is how often the reservation is moved on, at least 10ms and
	// shorter than Lease, 0 is DefaultRenew (or a third of a shorter Lease).
	Renew time.Duration
	// Clock is nil for spi.SystemClock.
	Clock spi.Clock
	// Logger is nil for slog.Default().
	Logger *slog.Logger
}

// ConfigFromProps reads the properties that all lease assigners share:
// namespace, lease and renew. The error is a [*spi.PropError].
func ConfigFromProps(p spi.Props) (Config, error) {
	c := Config{Namespace: p.String("namespace", DefaultNamespace), Clock: p.Clock(), Logger: p.Logger()}
	if !validNamespace(c.Namespace) {
		return Config{}, p.Wrong("namespace", namespaceWant)
	}
	var err error
	if c.Lease, err = p.Duration("lease", DefaultLease, minLease, maxLease); err != nil {
		return Config{}, err
	}
	if c.Renew, err = p.Duration("renew", defaultRenew(c.Lease), minRenew, maxLease); err != nil {
		return Config{}, err
	}
	if c.Renew >= c.Lease {
		return Config{}, p.Wrong("renew", fmt.Sprintf("a duration shorter than lease (%v)", c.Lease))
	}
	return c, nil
}

// withDefaults fills in what is zero and checks what is not.
func (c Config) withDefaults() (Config, error) {
	if c.Namespace == "" {
		c.Namespace = DefaultNamespace
	}
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	if c.Renew == 0 {
		c.Renew = defaultRenew(c.Lease)
	}
	if c.Clock == nil {
		c.Clock = spi.SystemClock
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	switch {
	case !validNamespace(c.Namespace):
		return c, &spi.PropError{Name: "Namespace", Value: c.Namespace, Want: namespaceWant}
	case c.Lease < minLease || c.Lease > maxLease:
		return c, &spi.PropError{Name: "Lease", Value: c.Lease.String(), Want: fmt.Sprintf("%v..%v", minLease, maxLease)}
	case c.Renew < minRenew || c.Renew >= c.Lease:
		return c, &spi.PropError{Name: "Renew", Value: c.Renew.String(), Want: fmt.Sprintf("at least %v and shorter than Lease (%v)", minRenew, c.Lease)}
	}
	return c, nil
}

func defaultRenew(lease time.Duration) time.Duration {
	return min(DefaultRenew, lease/3)
}

const namespaceWant = "1..64 letters, digits, '.', '_' or '-', not '.' first"

func validNamespace(s string) bool {
	if s == "" || len(s) > 64 || s[0] == '.' {
		return false
	}
	for _, r := range s {
		if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '.' || r == '_' || r == '-') {
			return false
		}
	}
	return true
}

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
