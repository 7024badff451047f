package snowflake

import (
	"context"
	"errors"
	"testing"

	"github.com/shardkey/shardkey/spi"
)

// listing is an assigner that lists one worker id, mute one that lists none.
type (
	mute    struct{ spi.WorkerIDAssigner }
	listing struct{ mute }
)

func (listing) ListWorkerIDs(context.Context) (spi.WorkerIDs, error) {
	return spi.WorkerIDs{Store: "here", Max: -1, List: []spi.WorkerID{{ID: 3, State: "held"}}}, nil
}

func TestListWorkerIDs_ofTheAssigner(t *testing.T) {
	for _, test := range []struct {
		cfg   config
		store string
		id    int64
		state string
	}{
		{config{WorkerID: 7}, "worker-id", 7, "fixed"},
		{config{Assigner: listing{}}, "here", 3, "held"},
	} {
		g, err := newGenerator(test.cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		list, err := g.ListWorkerIDs(t.Context())
		if err != nil || list.Store != test.store || list.Max != 1023 || len(list.List) != 1 || list.List[0].ID != test.id || list.List[0].State != test.state {
			t.Errorf("have: %+v, %v\nwant: %s, worker id %d", list, err, test.store, test.id)
		}
	}
	g, err := newGenerator(config{Assigner: mute{}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if _, err := g.ListWorkerIDs(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("have: %v\nwant: errors.ErrUnsupported", err)
	}
}
