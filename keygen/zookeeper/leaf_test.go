package zookeeper

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	testclock "github.com/shardkey/shardkey/internal/test/clock"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/spi"
)

func leafProps(t testing.TB, name string, port int) map[string]any {
	t.Helper()
	return map[string]any{
		"leaf.zk.list": testserver.ZooKeeper(t), "leaf.key": name, "ip": "10.1.2.3", "port": fmt.Sprint(port),
		"timeout": "1m", "session-timeout": "1m",
	}
}

// longGrace is a time in which a busy machine leases a worker ID after Leaf's report.
const longGrace = 30 * time.Minute

// openAs opens a generator that shares nothing with others, like one in another process.
func openAs(t testing.TB, values map[string]any, clock, grace time.Duration) *leaf {
	t.Helper()
	p := must.Get(spi.NewProps(values, spi.Host{Clock: testclock.New(clock)}))(t)
	l := must.Get(newLeaf(p, grace))(t).(*leaf)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// makeKeys generates n keys.
func makeKeys(t testing.TB, l *leaf, n int) ([]int64, error) {
	keys := make([]int64, n)
	err := l.GenerateInt64Keys(t.Context(), spi.Column{}, keys)
	return keys, err
}

func mustKeys(t testing.TB, l *leaf, n int) []int64 {
	t.Helper()
	return must.Get(makeKeys(t, l, n))(t)
}

// wantNoID checks that a generator gets no worker ID for a reason.
func wantNoID(t testing.TB, what string, l *leaf, reason string) {
	t.Helper()
	if _, err := makeKeys(t, l, 1); !errors.Is(err, spi.ErrNoWorkerID) || !strings.Contains(err.Error(), reason) {
		t.Errorf("%s\nhave: %v\nwant: spi.ErrNoWorkerID, %q", what, err, reason)
	}
}

func worker(t testing.TB, l *leaf, key int64) int64 {
	t.Helper()
	parts := must.Get(l.DecodeKey(key))(t)
	return parts.WorkerID
}

func wantApart(t testing.TB, keys []int64) {
	t.Helper()
	sorted := slices.Sorted(slices.Values(keys))
	must.Equal(t, len(slices.Compact(sorted)), len(keys), "different keys")
}

// leafReads reads a node like Leaf: one JSON value with exactly three fields. It ignores the
// rest.
func leafReads(t testing.TB, c *zk.Conn, path string) leafReport {
	t.Helper()
	data, _, err := c.Get(path)
	must.Do(t, err)
	var report leafReport
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	must.Do(t, d.Decode(&report), "Leaf cannot read", data)
	return report
}

func leafWrites(t testing.TB, c *zk.Conn, path string, at time.Time) {
	t.Helper()
	must.Get(c.Set(path, leafsData(8080, at), -1))(t)
}

func leafsData(port int, at time.Time) []byte {
	return fmt.Appendf(nil, `{"ip":"10.1.2.3","port":"%d","timestamp":%d}`, port, at.UnixMilli())
}

// Two machines that are the first to start at the same time both get worker ID 0 from Leaf. Here
// they get different ones.
func TestLeaf_firstStartersDiffer(t *testing.T) {
	name := unique(t)
	var mu sync.Mutex
	var keys []int64
	workers := map[int64]bool{}
	var wg sync.WaitGroup
	for i := range 8 {
		l := openAs(t, leafProps(t, name, 8001+i), 0, leafGrace)
		wg.Go(func() {
			for range 10 {
				more, err := makeKeys(t, l, 500)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				keys = append(keys, more...)
				workers[worker(t, l, more[0])] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	wantApart(t, keys)
	must.Equal(t, len(workers), 8, "worker IDs", workers)
}

func TestLeaf_nodesAreTakenOver(t *testing.T) {
	name, c := unique(t), client(t, testserver.ZooKeeper(t))
	forever := "/snowflake/" + name + "/forever"
	old := time.Now().Add(-time.Hour)
	mustCreate(t, c, forever, "")
	for port := 8080; port < 8084; port++ {
		path := fmt.Sprintf("%s/10.1.2.3:%d-", forever, port)
		must.Get(c.Create(path, leafsData(port, old), zk.FlagSequence, zk.WorldACL(zk.PermAll)))(t)
	}
	values := leafProps(t, name, 8082)
	l := openAs(t, values, 0, time.Nanosecond)
	key := mustKeys(t, l, 1)[0]
	parts, err := l.DecodeKey(key)
	if err != nil || parts.WorkerID != 2 || time.Since(parts.Time).Abs() > time.Minute {
		t.Errorf("the key\nhave: %+v, %v\nwant: worker 2, now", parts, err)
	}
	must.Equal(t, key, (parts.Time.UnixMilli()-1288834974657)<<22|2<<12|parts.Sequence, "the key in Leaf's layout")
	path := forever + "/10.1.2.3:8082-0000000002"
	if r := leafReads(t, c, path); r.IP != "10.1.2.3" || r.Port != "8082" || r.Timestamp <= parts.Time.UnixMilli() {
		t.Errorf("what Leaf reads while we run\nhave: %+v\nwant: a time after the keys'", r)
	}
	must.Do(t, l.Close())
	soon := time.Now().Add(time.Second).UnixMilli()
	if r := leafReads(t, c, path); r.Timestamp <= parts.Time.UnixMilli() || r.Timestamp > soon {
		t.Errorf("what Leaf reads when we have closed\nhave: %+v\nwant: a time right after the keys', so that it starts", r)
	}
	if names, _, _ := c.Children(forever); len(names) != 4 {
		t.Errorf("nodes\nhave: %v\nwant: Leaf's four", names)
	}
}

// A Leaf server that runs at the address keeps its worker ID.
func TestLeaf_serverStillRuns(t *testing.T) {
	name, c := unique(t), client(t, testserver.ZooKeeper(t))
	path := "/snowflake/" + name + "/forever/10.1.2.3:8080-0000000000"
	for clock, what := range map[time.Duration]string{0: "in time", -time.Hour: "with its clock an hour back"} {
		mustCreate(t, c, path, "")
		leafWrites(t, c, path, time.Now().Add(clock))
		l := openAs(t, leafProps(t, name, 8080), 0, longGrace)
		wantNoID(t, what, l, "a Leaf server at 10.1.2.3:8080")
		_ = l.Close()
		must.Do(t, c.Delete(path, -1))
	}
}

// A Leaf server that starts at our address overwrites our record. The generator notices and
// stops.
func TestLeaf_serverAtTheSameAddress(t *testing.T) {
	name, c := unique(t), client(t, testserver.ZooKeeper(t))
	l := openAs(t, leafProps(t, name, 8080), 0, longGrace)
	mustKeys(t, l, 1)
	leafWrites(t, c, "/snowflake/"+name+"/forever/10.1.2.3:8080-0000000000", time.Now())
	store := must.Get(readLeafStore(props(t, leafProps(t, name, 8080)), longGrace))(t)
	defer store.Close()
	entries, err := store.List(t.Context())
	if err != nil || len(entries) != 1 || !isLeafs(entries[0].Record) {
		t.Fatalf("List\nhave: %v, %v\nwant: Leaf's report", entries, err)
	}
	must.Is(t, must.Err(l.shared.assigner.AcquireWorkerID(t.Context(), 1023)), spi.ErrNoWorkerID, "another lease")
}

func TestLeaf_restarts(t *testing.T) {
	name := unique(t)
	values := leafProps(t, name, 8080)
	first := openAs(t, values, 0, leafGrace)
	keys := mustKeys(t, first, 5000)
	must.Do(t, first.Close())
	second := openAs(t, values, 0, leafGrace)
	keys = append(keys, mustKeys(t, second, 5000)...) // no Close, as after a crash
	wantNoID(t, "right after a crash", openAs(t, values, 0, leafGrace), "pid")
	fourth := openAs(t, values, 11*time.Second, leafGrace)
	keys = append(keys, mustKeys(t, fourth, 5000)...)
	must.Equal(t, worker(t, fourth, keys[len(keys)-1]), 0, "worker ID after restarts")
	// The process that was considered dead continues in its own time or not at all.
	for range 3 {
		if more, err := makeKeys(t, second, 5000); err == nil {
			keys = append(keys, more...)
		}
	}
	must.Do(t, fourth.Close())
	fifth := openAs(t, values, -time.Hour, leafGrace)
	if more, err := makeKeys(t, fifth, 100); err == nil {
		keys = append(keys, more...)
	} else if !errors.Is(err, spi.ErrNoWorkerID) {
		t.Errorf("restarted with the clock an hour back\nhave: %v\nwant: later keys or a StartError", err)
	}
	wantApart(t, keys)
}

func TestLeaf_sharedInOneProcess(t *testing.T) {
	values := leafProps(t, unique(t), 9090)
	delete(values, "ip")
	p := props(t, values)
	var keys []int64
	var gens []*leaf
	for range 3 {
		g := must.Get(spi.NewKeyGenerator("leaf_snowflake", p))(t)
		gens = append(gens, g.(*leaf))
		keys = append(keys, mustKeys(t, g.(*leaf), 3000)...)
	}
	for i, g := range gens {
		for range 2 {
			must.Do(t, g.Close())
		}
		must.Is(t, must.Err(makeKeys(t, g, 1)), spi.ErrClosed, "after Close")
		if i < 2 {
			keys = append(keys, mustKeys(t, gens[2], 10)...)
		}
	}
	wantApart(t, keys)
	g := must.Get(spi.NewKeyGenerator("LEAF_SNOWFLAKE", p))(t)
	defer g.(*leaf).Close()
	text := g.(spi.Describer).Describe()
	if !strings.Contains(text, "LEAF_SNOWFLAKE") || !strings.Contains(text, ":9090") {
		t.Errorf("Describe\nhave: %s\nwant: type and address", text)
	}
	mustKeys(t, g.(*leaf), 1) // the worker ID was released, so it is free at once
}

// A node that yields no worker ID is not changed, and the error has the reason.
func TestLeaf_nodesThatGiveNone(t *testing.T) {
	c := client(t, testserver.ZooKeeper(t))
	for what, n := range map[string]struct{ number, data, reason string }{
		"numbers have run out": {"0000001024", `{"ip":"10.1.2.3","port":"8080","timestamp":1}`, "1024"},
		"foreign":              {"0000000005", "not Leaf's", "not Leaf's"},
	} {
		name := unique(t)
		path := "/snowflake/" + name + "/forever/10.1.2.3:8080-" + n.number
		mustCreate(t, c, path, n.data)
		wantNoID(t, what, openAs(t, leafProps(t, name, 8080), 0, leafGrace), n.reason)
		if data, _, _ := c.Get(path); string(data) != n.data {
			t.Errorf("%s: the node\nhave: %s\nwant: as it was", what, data)
		}
	}
}

func TestLeaf_data(t *testing.T) {
	l := leafLayout{leafReport{IP: "10.1.2.3", Port: "8080"}, leafGrace}
	parse := func(text string) (workerid.Record, error) {
		return l.parse(3, node{data: []byte(text), stat: &zk.Stat{Version: 7}})
	}
	held := workerid.Record{Owner: "x", ReservedUntil: 5000, Holder: "h", Since: 1}
	back := workerid.Record{Owner: "x", ReservedUntil: 5000, FreeFrom: 4000, Holder: "h", Since: 1}
	for _, r := range []workerid.Record{{}, held, back} {
		text := string(l.text(r))
		if have, err := parse(text); have != r || err != nil {
			t.Errorf("%s\nhave: %+v, %v\nwant: %+v", text, have, err, r)
		}
	}
	have, err := parse(`{"ip":"10.1.2.3","port":"8080","timestamp":1700000000000}`)
	want := workerid.Record{
		Owner: "leaf-7", ReservedUntil: 1700000005000, Holder: "a Leaf server at 10.1.2.3:8080", Since: 1700000000000,
	}
	if err != nil || have != want || !isLeafs(have) {
		t.Errorf("Leaf's report\nhave: %+v, %v\nwant: %+v, held until 5 s after it", have, err, want)
	}
	for _, text := range []string{
		"", "x", "[]", `{"ip":"a","port":"b","timestamp":-1}`, `{}`, `{"ip":"a","timestamp":"x"}`,
		`{"ip":"a","port":"b","timestamp":5} x`,
	} {
		if r, err := parse(text); !errors.As(err, new(*workerid.ForeignRecordError)) || !r.IsZero() {
			t.Errorf("%q\nhave: %+v, %v\nwant: a *ForeignRecordError", text, r, err)
		}
	}
}

func TestLeaf_propertiesRefused(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"leaf.key", "", "leaf.name"},
		{"leaf.key", "a/b", "leaf.name"},
		{"leaf.zk.list", "", "addresses"},
		{"leaf.zk.list", "u:12/password@a:1", "in the path"},
		{"port", "0", "1..65535"},
		{"port", "65536", "1..65535"},
		{"ip", "host", "IP address"},
		{"epoch", "2099-01-01", "before the current time"},
		{"namespace", "x", "leaf.key is the namespace"},
		{"lease", "10", "duration"},
		{"worker-id", "1", "unknown"},
	} {
		values := map[string]any{"leaf.key": "orders", "leaf.zk.list": "127.0.0.1:1", c.name: c.value}
		must.FailWith(t, must.Err(spi.NewKeyGenerator("LEAF_SNOWFLAKE", props(t, values))), c.want, c.name, c.value)
	}
	leafs.Lock()
	defer leafs.Unlock()
	must.Equal(t, len(leafs.byKey), 0, "generators left over")
}

// A generator lists the worker IDs of all machines without creating a node.
func TestLeaf_lists(t *testing.T) {
	name := unique(t)
	looker := openAs(t, leafProps(t, name, 8080), 0, leafGrace)
	list, err := looker.ListWorkerIDs(t.Context())
	if err != nil || len(list.List) > 0 || list.Max != leafMax {
		t.Fatalf("have: %+v, %v\nwant: none", list, err)
	}
	holder := openAs(t, leafProps(t, name, 8081), 0, leafGrace)
	id := worker(t, holder, mustKeys(t, holder, 1)[0])
	looker = openAs(t, leafProps(t, name, 8082), 0, leafGrace)
	list, err = looker.ListWorkerIDs(t.Context())
	if err != nil || len(list.List) != 1 || list.List[0].ID != id || list.List[0].State != "held" {
		t.Errorf("have: %+v, %v\nwant: worker ID %d of another address, held", list, err, id)
	}
}
