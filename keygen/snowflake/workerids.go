package snowflake

import (
	"context"
	"errors"
	"fmt"

	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/spi"
)

var _ spi.WorkerIDLister = (*generator)(nil)

// ListWorkerIDs says who has the worker ids of the generator's assigner; without
// one, which worker id is configured.
func (g *generator) ListWorkerIDs(ctx context.Context) (list spi.WorkerIDs, err error) {
	defer guard.Recover(&err, "the worker-id assigner")
	maxID := g.cfg.Layout.MaxWorkerID()
	if g.cfg.Assigner == nil {
		return spi.WorkerIDs{Store: "worker-id", Max: maxID, List: []spi.WorkerID{{ID: g.cfg.WorkerID, State: "fixed"}}}, nil
	}
	lister, ok := g.cfg.Assigner.(spi.WorkerIDLister)
	if !ok {
		return spi.WorkerIDs{}, fmt.Errorf("shardkey: worker ids of %T: %w", g.cfg.Assigner, errors.ErrUnsupported)
	}
	list, err = lister.ListWorkerIDs(ctx)
	list.Max = maxID
	return list, err
}
