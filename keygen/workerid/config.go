package workerid

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Defaults of the properties.
const (
	defaultNamespace = "shardkey"
	defaultLease     = 10 * time.Second
	defaultRenew     = 3 * time.Second

	defaultClockAhead = 5 * time.Minute
)

// Bounds of a lease. If a lease is too short to be renewed in time, keys may be unavailable, but
// they stay unique.
const (
	minLease      = 100 * time.Millisecond
	maxLease      = 24 * time.Hour
	minRenew      = 10 * time.Millisecond
	maxQuarantine = maxLease
	minClockAhead = time.Second
)

// config has the properties of lease assigners, which the page about leases describes.
type config struct {
	Namespace     string // the store's namespace, for messages
	Lease         time.Duration
	Renew         time.Duration
	Quarantine    time.Duration
	MaxClockAhead time.Duration
	Clock         spi.Clock
	Logger        *slog.Logger
}

// configFromProps reads the properties that all lease assigners have: namespace, lease, renew,
// quarantine and max-clock-ahead. The error is a [*spi.PropError].
func configFromProps(p spi.Props) (config, error) {
	c := config{Namespace: p.String("namespace", defaultNamespace), Clock: p.Clock(), Logger: p.Logger()}
	if !validNamespace(c.Namespace) {
		return config{}, p.Wrong("namespace", namespaceWant)
	}
	var errs [4]error
	c.Lease, errs[0] = p.Duration("lease", defaultLease, minLease, maxLease)
	c.Renew, errs[1] = p.Duration("renew", renewFor(c.Lease), minRenew, maxLease)
	c.Quarantine, errs[2] = p.Duration("quarantine", 0, 0, maxQuarantine)
	c.MaxClockAhead, errs[3] = p.Duration("max-clock-ahead", defaultClockAhead, minClockAhead, horizon)
	if err := cmp.Or(errs[:]...); err != nil {
		return config{}, err
	}
	if c.Renew >= c.Lease {
		return config{}, p.Wrong("renew", fmt.Sprintf("a duration shorter than lease (%v)", c.Lease))
	}
	return c, nil
}

func renewFor(lease time.Duration) time.Duration { return min(defaultRenew, lease/3) }

const maxNamespace = 64

const namespaceWant = "1..64 letters, digits, '.', '_' or '-', not beginning with '.'"

var validNamespace = regexp.MustCompile(`^[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,63}$`).MatchString

func init() {
	spi.RegisterWorkerIDAssigner("STATIC", newStatic)
	spi.RegisterWorkerIDAssigner("FILE", newFile)
	spi.RegisterWorkerIDAssigner("SQL", newSQL)
	spi.RegisterWorkerIDAssigner("IP", newMachine("IP", machineIP))
	spi.RegisterWorkerIDAssigner("HOSTNAME", newMachine("HOSTNAME", machineHostname))
}

func newStatic(p spi.Props) (spi.WorkerIDAssigner, error) {
	id, err := p.Int("worker-id", -1, 0, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	if id < 0 {
		return nil, &spi.PropError{Name: "worker-id", Want: "a worker ID that no other process has"}
	}
	return &fixed{kind: "STATIC", find: func() (int64, error) { return id, nil }}, nil
}

func newMachine(kind string, find func() (int64, error)) func(spi.Props) (spi.WorkerIDAssigner, error) {
	return func(spi.Props) (spi.WorkerIDAssigner, error) {
		return &fixed{kind: kind, find: find}, nil
	}
}

func newFile(p spi.Props) (spi.WorkerIDAssigner, error) {
	path := p.String("path", "")
	if !filepath.IsAbs(path) && !strings.HasPrefix(path, "/") {
		// Programs that start in two folders would have two stores and the same worker IDs.
		return nil, p.Wrong("path", "the absolute path of a directory that all processes of this machine share, for example /var/lib/app/workers")
	}
	return NewAssigner(p, func(namespace string) (Store, Info, error) {
		s := newFileStore(path, namespace)
		return s, s.info(), nil
	})
}

func newSQL(p spi.Props) (spi.WorkerIDAssigner, error) {
	dsn, table := p.Secret("dsn"), p.String("table", defaultTable)
	if dsn.Reveal() == "" {
		dsn = p.HostDSN()
	}
	if dsn.Reveal() == "" {
		const want = "a DSN, for example user:pass@tcp(127.0.0.1:3306)/app; the connector's own DSN isn't known here"
		return nil, &spi.PropError{Name: "dsn", Want: want}
	}
	return NewAssigner(p, func(namespace string) (Store, Info, error) {
		return newSQLStore(dsn.Reveal(), table, namespace)
	})
}
