package workerid

import (
	"context"
	"time"
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

// assign makes an assigner of a store that has what else it offers as methods.
func assign(store Store, c config) *assigner { return newAssigner(store, infoOf(store), c) }

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
