package redis

import (
	"strings"
	"testing"

	"github.com/shardkey/shardkey/keygen/workerid"
)

// A cluster of one node takes the same way through the client as one of many.
func TestServer_cluster(t *testing.T) {
	s := start(t, "--cluster-enabled", "yes")
	c := client(t, s.Addr())
	if err := c.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(c.ClusterInfo(t.Context()).Val(), "cluster_state:ok") {
	}
	nodes := s.Addr() + ", " + s.Addr()
	var all []int64
	for range 3 {
		all = append(all, mustKeys(t, open(t, nodes), 2000)...)
	}
	wantApart(t, all)

	store := openStore(t, nodes, "orders")
	r := workerid.Record{Owner: "a", ReservedUntil: 1}
	if ok, err := store.CompareAndSet(t.Context(), 1, workerid.Record{}, r); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if have, err := store.Get(t.Context(), 1); have != r || err != nil {
		t.Errorf("have: %v, %v\nwant: %v", have, err, r)
	}
}
