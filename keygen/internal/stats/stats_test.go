package stats

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

func TestFigures_snapshotIsACopy(t *testing.T) {
	var f Figures
	f.Wait(time.Second)
	f.Fetch(time.Millisecond)
	f.Error("store", spi.ErrStore, time.Unix(1, 0))
	h := f.Snapshot()
	f.Error("store", spi.ErrStore, time.Unix(2, 0))
	if *h.Waits != 1 || h.Waited != time.Second || *h.Fetches != 1 || h.FetchTime != time.Millisecond ||
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
		if have := KindOf(test.err, Kind{own, "own"}); have != test.want {
			t.Errorf("%v\nhave: %s\nwant: %s", test.err, have, test.want)
		}
	}
}

func TestStoreError_text(t *testing.T) {
	kind, cause := errors.New("kind"), errors.New("cause")
	for want, e := range map[string]*StoreError{
		"shardkey: REDIS at h:1: cause":                    {Store: "REDIS at h:1", Cause: cause},
		"shardkey: REDIS at h:1: cause; do it":             {Store: "REDIS at h:1", Cause: cause, Advice: "do it"},
		"shardkey: REDIS at h:1: no number: cause; do it":  {Store: "REDIS at h:1", Detail: "no number", Cause: cause, Advice: "do it"},
		"shardkey: REDIS at h:1: the row is bad; mend it.": {Store: "REDIS at h:1", Detail: "the row is bad", Kind: kind, Advice: "mend it."},
	} {
		if e.Error() != want || !errors.Is(e, spi.ErrStore) || errors.Is(e, kind) != (e.Kind != nil) || errors.Is(e, cause) != (e.Cause != nil) {
			t.Errorf("have: %v\nwant: %s", e, want)
		}
	}
}
