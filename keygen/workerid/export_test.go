package workerid

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// What the tests from outside the package handle: those that use workeridtest,
// which imports this package.
type (
	Assigner        = assigner
	Config          = config
	LeaseLostError  = leaseLostError
	ClockError      = clockError
	NoWorkerIDError = noWorkerIDError
	TableError      = tableError
)

var (
	NewFileStore = newFileStore
	TableDDL     = tableDDL
)

// Assign is assign with the error of NewAssigner.
func Assign(store Store, c Config) (*Assigner, error) { return assign(store, c), nil }

// assign makes an assigner of a store that has what else it offers as methods. What is zero in
// the configuration has its default.
func assign(store Store, c config) *assigner {
	c.Namespace = cmp.Or(c.Namespace, defaultNamespace)
	c.Lease = cmp.Or(c.Lease, defaultLease)
	c.Renew = cmp.Or(c.Renew, renewFor(c.Lease))
	c.MaxClockAhead = cmp.Or(c.MaxClockAhead, defaultClockAhead)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Clock == nil {
		c.Clock = spi.SystemClock
	}
	return newAssigner(store, infoOf(store), c)
}

// Open returns a store as NewAssigner's function does.
func Open(store Store) (Store, Info) { return store, infoOf(store) }

func infoOf(store Store) Info {
	if s, ok := store.(interface{ info() Info }); ok {
		return s.info()
	}
	info := Info{Name: "TEST"}
	if s, ok := store.(interface {
		Now(ctx context.Context) (time.Time, error)
	}); ok {
		info.Now = s.Now
	}
	if s, ok := store.(interface {
		ServerID(ctx context.Context) (string, error)
		Notes() Store
	}); ok {
		info.serverID, info.notes = s.ServerID, s.Notes()
	}
	return info
}
