package spi_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

func TestHealth_jsonLeavesOutWhatIsNotSet(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	for _, c := range []struct {
		name   string
		health spi.Health
		want   string
	}{
		{"nothing", spi.Health{}, `{}`},
		// A pointer to 0 is a worker ID, and nil is none.
		{"worker 0", spi.Health{WorkerID: new(int64(0))}, `{"workerId":0}`},
		{"a figure of 0 is one", spi.Health{Waits: new(int64), Clock: &spi.ClockHealth{Steps: new(int64)}}, `{"waits":0,"clockSteps":0,"borrowedSeconds":0}`},
		{"errors have texts", spi.Health{
			Err:       errors.New("shardkey: key store: refused"),
			LastError: errors.New("shardkey: closed"), LastErrorTime: at,
			Errors: map[string]int64{"store": 2},
		}, `{"error":"shardkey: key store: refused","errors":{"store":2},"lastErrorTime":"2026-02-03T04:05:06Z","lastError":"shardkey: closed"}`},
		{"durations are seconds", spi.Health{Waits: new(int64(2)), Waited: 1500 * time.Millisecond,
			Lease:   &spi.LeaseHealth{Limit: at, Length: 10 * time.Second, Renewals: 3},
			Segment: &spi.SegmentHealth{Left: new(int64(7)), Size: 100, Fetches: 2, FetchTime: time.Millisecond}},
			`{"waits":2,"leaseLimit":"2026-02-03T04:05:06Z","leaseRenewals":3,"leasesLost":0,"segmentLeft":7,"segmentSize":100,"fetches":2,` +
				`"waitedSeconds":1.5,"leaseSeconds":10,"fetchSeconds":0.001}`},
	} {
		have, err := json.Marshal(map[string]spi.Health{"g": c.health})
		if want := `{"g":` + c.want + `}`; err != nil || string(have) != want {
			t.Errorf("%s\nhave: %s, %v\nwant: %s", c.name, have, err, want)
		}
	}
}
