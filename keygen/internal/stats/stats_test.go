package stats

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

func TestFigures_snapshotIsACopy(t *testing.T) {
	f := Figures{Health: spi.Health{Segment: new(spi.SegmentHealth)}}
	f.Wait(time.Second)
	f.Fetch(time.Millisecond)
	f.Error("store", spi.ErrStore, time.Unix(1, 0))
	h := f.Snapshot()
	f.Error("store", spi.ErrStore, time.Unix(2, 0))
	f.Fetch(time.Second)
	if *h.Waits != 1 || h.Waited != time.Second || *h.Segment != (spi.SegmentHealth{Fetches: 1, FetchTime: time.Millisecond}) ||
		h.Errors["store"] != 1 || h.LastError != spi.ErrStore || h.LastErrorTime != time.Unix(1, 0) {
		t.Errorf("have: %+v", h)
	}
}

func TestKindOf_ownFirst(t *testing.T) {
	own := errors.New("own")
	for _, test := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("%w: %w", spi.ErrStore, own), "own"},
		{fmt.Errorf("%w: %w", spi.ErrLeaseLimit, spi.ErrStore), "lease-limit"},
		{fmt.Errorf("%w: %w", spi.ErrStore, context.Canceled), "canceled"},
		{spi.ErrStore, "store"},
		{errors.New("?"), "other"},
	} {
		must.Equal(t, KindOf(test.err, Kind{own, "own"}), test.want, test.err)
	}
}
