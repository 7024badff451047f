package engines_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/test/engines"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/spi"
)

// swaps records the swaps of the records of a few worker IDs. The n-th record of each, counted
// from 1, is reserved until n. So the swaps of one worker ID form a chain in which each record
// has one successor.
type swaps struct {
	mu       sync.Mutex
	more     sync.Cond
	won      map[[2]int64]string // worker ID and n to the owner whose write of the n-th record succeeded
	unsaid   map[[2]int64]int    // worker ID and n to the number of attempts with an unreliable answer
	wins     int
	lost     int // swaps that found another record
	conflict int // swaps that the cluster rolled back
	wrong    []string
}

func newSwaps() *swaps {
	s := &swaps{won: map[[2]int64]string{}, unsaid: map[[2]int64]int{}}
	s.more.L = &s.mu
	return s
}

// await returns when n more swaps have succeeded.
func (s *swaps) await(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for end := s.wins + n; s.wins < end; {
		s.more.Wait()
	}
}

// errNotReady is the error of a node that isn't a member of the cluster.
const errNotReady = 1047

// isConflict reports whether the cluster or group has rolled back a transaction because of a
// conflicting one.
func isConflict(err error) bool {
	const (
		errDuringCommit = 1180
		errLockTimeout  = 1205
		errDeadlock     = 1213
		errRolledBack   = 3101
	)
	return slices.Contains([]uint16{errDuringCommit, errLockTimeout, errDeadlock, errRolledBack}, number(err))
}

// number returns the server's error number, or 0.
func number(err error) uint16 {
	if answer, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return answer.Number
	}
	return 0
}

// note records the result of an attempt to write a worker ID's n-th record.
func (s *swaps) note(workerID, n int64, owner string, swapped bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	link := [2]int64{workerID, n}
	switch {
	case isConflict(err):
		s.conflict++
	case number(err) == errNotReady:
		// nothing was written
	case err != nil:
		s.unsaid[link]++
	case !swapped:
		s.lost++
	case s.won[link] != "":
		s.wrong = append(s.wrong, fmt.Sprintf("worker ID %d, record %d: won by %s and by %s", workerID, n, s.won[link], owner))
	default:
		s.won[link] = owner
	}
	if err == nil && swapped {
		s.wins++
		s.more.Broadcast()
	}
}

// swap replaces records through one node until the end of the test.
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
		if err != nil && !isConflict(err) {
			select { // leave the processor to goroutines whose node is running
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				return
			}
		}
	}
}

// swapRace runs 24 goroutines that replace the records of three worker IDs, each through one of
// several nodes.
type swapRace struct {
	*swaps
	t     *testing.T
	nodes []*testserver.Server
	stop  func() // returns when no goroutine swaps any more
}

// swapWorkerIDs is the number of worker IDs that the goroutines share.
const swapWorkerIDs = 3

func startSwaps(t *testing.T, nodes []*testserver.Server) *swapRace {
	t.Helper()
	const goroutines = 24
	mustRun(t, nodes[0].DSN(), "CREATE DATABASE ids")
	r := &swapRace{newSwaps(), t, nodes, nil}
	for i := range nodes { // the first creates the table
		r.list(i, "")
	}
	var over atomic.Bool
	var running sync.WaitGroup
	for i := range goroutines {
		store := r.open(nodes[i%len(nodes)], "")
		running.Go(func() {
			r.swap(t.Context(), store, fmt.Sprintf("goroutine %d", i), rand.New(rand.NewPCG(1, uint64(i))), swapWorkerIDs, &over)
		})
	}
	r.stop = sync.OnceFunc(func() { over.Store(true); running.Wait() })
	return r
}

func (r *swapRace) open(node *testserver.Server, params string) workerid.Store {
	props := must.Get(spi.NewProps(map[string]any{
		"dsn": spi.NewSecret(node.DSN() + "ids" + params), "namespace": "orders",
	}, spi.Host{}))(r.t)
	assigner := must.Get(spi.NewWorkerIDAssigner("SQL", props))(r.t)
	r.t.Cleanup(func() { assigner.(io.Closer).Close() })
	return assigner.(interface{ Store() workerid.Store }).Store()
}

func (r *swapRace) list(node int, params string) []workerid.Entry {
	r.t.Helper()
	return must.Get(r.open(r.nodes[node], params).List(r.t.Context()))(r.t, "list the records")
}

// name returns the server name that a node's store reports.
func (r *swapRace) name(node *testserver.Server) string {
	r.t.Helper()
	store := r.open(node, "").(interface {
		ServerID(context.Context) (string, error)
	})
	return must.Get(store.ServerID(r.t.Context()))(r.t, "ask for the server's name")
}

// oneName checks that all nodes report the same name, and returns it.
func (r *swapRace) oneName() string {
	r.t.Helper()
	name := r.name(r.nodes[0])
	for i, node := range r.nodes {
		if id := r.name(node); id != name || id == "" {
			r.t.Errorf("node %d is named %q\nwant: %q, as the first one", i, id, name)
		}
	}
	return name
}

// check ends the race, and compares a node's records with the results of the swaps.
func (r *swapRace) check(last []workerid.Entry) {
	r.t.Helper()
	r.stop()
	if len(last) != swapWorkerIDs {
		r.t.Fatalf("there are %d records\nwant: %d", len(last), swapWorkerIDs)
	}
	length, unknown := int64(0), 0
	for _, e := range last {
		length += e.Record.ReservedUntil
		for n := int64(1); n <= e.Record.ReservedUntil; n++ {
			link := [2]int64{e.WorkerID, n}
			switch owner := r.won[link]; {
			case owner == "" && r.unsaid[link] == 0:
				r.t.Errorf("worker ID %d, record %d: written by nobody", e.WorkerID, n)
			case owner == "":
				unknown++
			case n == e.Record.ReservedUntil && owner != e.Record.Owner:
				r.t.Errorf("worker ID %d, record %d: of %s\nwant: of %s, who was told so", e.WorkerID, n, e.Record.Owner, owner)
			}
		}
	}
	for _, w := range r.wrong {
		r.t.Error(w)
	}
	if int64(r.wins+unknown) != length {
		r.t.Errorf("%d swaps were won and %d not answered\nwant: together the %d that the records say", r.wins, unknown, length)
	}
	if r.conflict+r.lost == 0 {
		r.t.Error("no swap met another one: the test shows nothing")
	}
	r.t.Logf("%d swaps won, of %d more the answer was lost; %d found another record, %d were undone by the cluster",
		r.wins, unknown, r.lost, r.conflict)
}

// swapsInTurn is the number of successful swaps between two faults.
const swapsInTurn = 300

// One node is disconnected for a while and another one is killed. Each record is replaced once,
// and all nodes have the last records.
func TestGalera_compareAndSet(t *testing.T) {
	g := engines.StartGalera(t, 3)
	r := startSwaps(t, g.Nodes)
	defer r.stop()
	name := r.oneName()
	cut, killed := g.Nodes[1], g.Nodes[2]

	r.await(swapsInTurn)
	must.Do(r.t, g.Isolate(cut, true), "cut a node off")
	must.Do(r.t, g.AwaitWithout(cut), "continue without it")
	r.await(swapsInTurn)
	must.Equal(t, r.name(cut), name, "a node that is cut off is named")
	newest, err := r.open(g.Nodes[0], "").Get(t.Context(), 0)
	must.Do(r.t, err, "read a record")
	nobody := workerid.Record{Owner: "nobody", ReservedUntil: 1 << 40, Holder: "h", Since: 1}
	_, err = r.open(cut, "").CompareAndSet(t.Context(), 0, newest, nobody)
	must.Fail(t, err, "a swap on a node that is cut off")
	must.Do(r.t, g.Isolate(cut, false), "let it hear the others")
	must.Do(r.t, g.AwaitAll(), "have it back")
	r.await(swapsInTurn)
	killed.Kill()
	must.Do(r.t, g.AwaitWithout(killed), "continue without the killed one")
	r.await(swapsInTurn)
	killed.Start()
	must.Do(r.t, g.AwaitAll(), "have it back")
	r.await(swapsInTurn)

	r.stop()
	last := r.list(0, "?wsrep_sync_wait=15")
	for i := range g.Nodes {
		must.EqualSlices(t, r.list(i, "?wsrep_sync_wait=15"), last, "node", i)
	}
	r.check(last)
}

// One member of a MySQL replication group is killed, and the others continue.
func TestGroup_compareAndSet(t *testing.T) {
	g := engines.StartGroup(t, 3)
	r := startSwaps(t, g.Members)
	defer r.stop()
	r.oneName()
	r.await(swapsInTurn)
	g.Members[2].Kill()
	r.await(swapsInTurn)
	r.stop()
	last := r.list(0, "?group_replication_consistency=%27BEFORE%27")
	must.EqualSlices(t, r.list(1, "?group_replication_consistency=%27BEFORE%27"), last, "the other member")
	r.check(last)
}
