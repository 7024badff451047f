package spi_test

import (
	"errors"
	"testing"

	"github.com/shardkey/shardkey/spi"
)

func TestStoreError_text(t *testing.T) {
	kind, cause := errors.New("kind"), errors.New("cause")
	for want, e := range map[string]*spi.StoreError{
		"shardkey: REDIS at h:1: cause":                   {Store: "REDIS at h:1", Cause: cause},
		"shardkey: REDIS at h:1: cause; do it":            {Store: "REDIS at h:1", Cause: cause, Advice: "do it"},
		"shardkey: REDIS at h:1: no number: cause; do it": {Store: "REDIS at h:1", Detail: "no number", Cause: cause, Advice: "do it"},
		"shardkey: REDIS at h:1: the row is bad; fix it.": {Store: "REDIS at h:1", Detail: "the row is bad", Kind: kind, Advice: "fix it."},
	} {
		if e.Error() != want || !errors.Is(e, spi.ErrStore) || errors.Is(e, kind) != (e.Kind != nil) || errors.Is(e, cause) != (e.Cause != nil) {
			t.Errorf("have: %v\nwant: %s", e, want)
		}
	}
}
