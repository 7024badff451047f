package workerid_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
	"github.com/shardkey/shardkey/keygen/workerid"
)

// swaps is what is known of the records of a few worker ids. The n-th record of each,
// counted from 1, is reserved until n, so that all swaps of one worker id are a
// chain in which each record has one successor.
type swaps struct {
	mu       sync.Mutex
	more     sync.Cond
	won      map[[2]int64]string // worker id and n: who was told to have written the n-th record
	unsaid   map[[2]int64]int    // whose attempts at it ended without an answer that can be relied on
	wins     int
	lost     int // swaps that found another record
	conflict int // swaps that the cluster undid
	wrong    []string
}

func newSwaps() *swaps {
	s := &swaps{won: map[[2]int64]string{}, unsaid: map[[2]int64]int{}}
	s.more.L = &s.mu
	return s
}

// await returns when n more swaps have been won.
func (s *swaps) await(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for end := s.wins + n; s.wins < end; {
		s.more.Wait()
	}
}

// errNotReady is of a node that is not of the cluster.
const errNotReady = 1047

// note takes in how an attempt to write a worker id's n-th record ended.
func (s *swaps) note(workerID, n int64, owner string, swapped bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	link := [2]int64{workerID, n}
	switch {
	case mysqldb.IsDeadlock(err):
		s.conflict++
	case mysqldb.Number(err) == errNotReady:
		// nothing was done
	case err != nil:
		s.unsaid[link]++
	case !swapped:
		s.lost++
	case s.won[link] != "":
		s.wrong = append(s.wrong, fmt.Sprintf("worker id %d, record %d: won by %s and by %s", workerID, n, s.won[link], owner))
	default:
		s.won[link] = owner
	}
	if err == nil && swapped {
		s.wins++
		s.more.Broadcast()
	}
}

// swap replaces records through one node until the test is over.
func (s *swaps) swap(ctx context.Context, store workerid.Store, name string, rng *rand.Rand, workerIDs int64, over *atomic.Bool) {
	for i := 0; !over.Load(); i++ {
		id := rng.Int64N(workerIDs)
		prev, err := store.Get(ctx, id)
		if err == nil {
			next := workerid.Record{Owner: fmt.Sprintf("%s %d", name, i), ReservedUntil: prev.ReservedUntil + 1, Holder: name, Since: 1}
			var swapped bool
			swapped, err = store.CompareAndSet(ctx, id, prev, next)
			s.note(id, next.ReservedUntil, next.Owner, swapped, err)
		}
		if err != nil && !mysqldb.IsDeadlock(err) {
			select { // the processor is for those whose node is there
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				return
			}
		}
	}
}

// 24 goroutines replace the records of three worker ids through three nodes, one of which is
// cut off for a while and another one killed. Each record is replaced once, and all
// nodes have the last ones.
func TestGalera_compareAndSet(t *testing.T) {
	if os.Getenv("SHARDKEY_ENGINES") == "" {
		t.Skip("make test-engines runs it")
	}
	const nodes, goroutines, workerIDs, wins = 3, 24, 3, 300
	g := testserver.StartGalera(t, nodes)
	mustExec(t, g.Nodes[0].DSN(), "CREATE DATABASE ids")
	open := func(node *testserver.Server, params string) workerid.Store {
		store := mustSQL(t, node.DSN()+"ids"+params, "shardkey_worker")
		t.Cleanup(func() { store.Close() })
		return store
	}
	serverID := func(node *testserver.Server) string {
		id, err := open(node, "").(workerid.Identified).ServerID(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	all := func(params string) (latest [nodes][]workerid.Entry) {
		for i, node := range g.Nodes {
			var err error
			if latest[i], err = open(node, params).List(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return latest
	}
	all("") // makes the table
	name := serverID(g.Nodes[0])
	for i, node := range g.Nodes {
		if id := serverID(node); id != name || id == "" {
			t.Errorf("node %d is named %q\nwant: %q, as the first one", i, id, name)
		}
	}

	s := newSwaps()
	var over atomic.Bool
	var running sync.WaitGroup
	for i := range goroutines {
		store := open(g.Nodes[i%nodes], "")
		running.Go(func() {
			s.swap(t.Context(), store, fmt.Sprintf("goroutine %d", i), rand.New(rand.NewPCG(1, uint64(i))), workerIDs, &over)
		})
	}
	stop := sync.OnceFunc(func() { over.Store(true); running.Wait() })
	defer stop()
	do := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}

	s.await(wins)
	cut, killed := g.Nodes[1], g.Nodes[2]
	do("cut a node off", g.Isolate(cut, true))
	do("go on without it", g.AwaitWithout(cut))
	s.await(wins)
	if id := serverID(cut); id != name {
		t.Errorf("a node that is cut off is named %q\nwant: %q", id, name)
	}
	newest, err := open(g.Nodes[0], "").Get(t.Context(), 0)
	do("read a record", err)
	if swapped, err := open(cut, "").CompareAndSet(t.Context(), 0, newest, workerid.Record{Owner: "nobody", ReservedUntil: 1 << 40, Holder: "h", Since: 1}); err == nil {
		t.Errorf("a node that is cut off answers a swap: %v", swapped)
	}
	do("let it hear the others", g.Isolate(cut, false))
	do("have it back", g.AwaitAll())
	s.await(wins)
	killed.Kill()
	do("go on without the killed one", g.AwaitWithout(killed))
	s.await(wins)
	killed.Start()
	do("have it back", g.AwaitAll())
	s.await(wins)
	stop()

	last := all("?wsrep_sync_wait=15")
	unknown := 0
	for i, entries := range last {
		if len(entries) != workerIDs {
			t.Fatalf("node %d has %d records\nwant: %d", i, len(entries), workerIDs)
		}
		for j, e := range entries {
			if e.Err != nil || e.Record != last[0][j].Record {
				t.Errorf("node %d, worker id %d: %+v, %v\nwant: %+v, as the first node", i, e.WorkerID, e.Record, e.Err, last[0][j].Record)
			}
		}
	}
	length := int64(0)
	for _, e := range last[0] {
		length += e.Record.ReservedUntil
		for n := int64(1); n <= e.Record.ReservedUntil; n++ {
			link := [2]int64{e.WorkerID, n}
			switch owner := s.won[link]; {
			case owner == "" && s.unsaid[link] == 0:
				t.Errorf("worker id %d, record %d: written by nobody", e.WorkerID, n)
			case owner == "":
				unknown++
			case n == e.Record.ReservedUntil && owner != e.Record.Owner:
				t.Errorf("worker id %d, record %d: of %s\nwant: of %s, who was told so", e.WorkerID, n, e.Record.Owner, owner)
			}
		}
	}
	for _, w := range s.wrong {
		t.Error(w)
	}
	if int64(s.wins+unknown) != length {
		t.Errorf("%d swaps were won and %d not answered\nwant: together the %d that the records say", s.wins, unknown, length)
	}
	if s.conflict+s.lost == 0 {
		t.Error("no swap met another one: the test shows nothing")
	}
	t.Logf("%d swaps won, of %d more the answer was lost; %d found another record, %d were undone by the cluster",
		s.wins, unknown, s.lost, s.conflict)
}
