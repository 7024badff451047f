package driver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/testserver"
)

// doubledTables shards orders by their key, and users by their own number, into n
// tables each.
func doubledTables(n int) string {
	return fmt.Sprintf(`
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds.t_order_${0..%[1]d}
      tableStrategy: {standard: {shardingColumn: order_id, shardingAlgorithmName: o}}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}
    t_user:
      actualDataNodes: ds.t_user_${0..%[1]d}
      tableStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: u}}
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 99, max-vibration-offset: 7}}
  shardingAlgorithms:
    o: {type: MOD, props: {sharding-count: %[2]d}}
    u: {type: MOD, props: {sharding-count: %[2]d}}
`, n-1, n)
}

// writtenRow is a row, and how many tables the program thought there were before and
// after it was inserted.
type writtenRow struct {
	table         int
	number        int64 // the key of an order, the number of a user
	before, after int
}

// TestShards_doubledUnderLoad makes eight tables of four while rows are inserted, by
// a new file of the rule: each row is where the rule with which it began has it, and
// a program that has not heard of it yet is told by a typed error.
func TestShards_doubledUnderLoad(t *testing.T) {
	if testserver.Each(t, TestShards_doubledUnderLoad) {
		return
	}
	file := filepath.Join(t.TempDir(), "rule.yaml")
	write := func(n int) {
		t.Helper()
		next := file + ".new"
		noError(t, errors.Join(os.WriteFile(next, []byte(doubledTables(n)), 0o600), os.Rename(next, file)))
	}
	write(4)
	db := openFor(t, "shardkey", testserver.Database(t)+"?shardkeyReload=20ms&shardkeyRule="+file)
	for i := range 8 {
		mustRun(t, db, fmt.Sprintf("CREATE TABLE t_order_%d (order_id BIGINT PRIMARY KEY, user_id BIGINT)", i))
		mustRun(t, db, fmt.Sprintf("CREATE TABLE t_user_%d (id BIGINT PRIMARY KEY, user_id BIGINT)", i))
	}
	var count atomic.Int64 // of tables, as the program thinks
	count.Store(4)
	var told, users atomic.Int64
	var mu sync.Mutex
	var orders, userRows []writtenRow
	insert := func(g, i int) error {
		n := int(count.Load())
		table := (g + i) % n
		res, err := db.Exec(fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (?)", table), g)
		if err != nil {
			return err
		}
		key, _ := res.LastInsertId()
		order := writtenRow{table, key, n, int(count.Load())}
		user := users.Add(1)
		n = int(count.Load())
		_, err = db.Exec(fmt.Sprintf("INSERT INTO t_user_%d (user_id) VALUES (?)", user%int64(n)), user)
		for errors.Is(err, ErrWrongShard) {
			told.Add(1)
			n = 8 // the rule has doubled
			_, err = db.Exec(fmt.Sprintf("INSERT INTO t_user_%d (user_id) VALUES (?)", user%8), user)
		}
		mu.Lock()
		defer mu.Unlock()
		orders = append(orders, order)
		userRows = append(userRows, writtenRow{int(user % int64(n)), user, n, int(count.Load())})
		return err
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := insert(g, i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	until := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("%s: not within half a minute", what)
				return
			}
		}
	}
	written := func() int { mu.Lock(); defer mu.Unlock(); return len(orders) }
	until("rows in four tables", func() bool { return written() >= 100 })
	write(8)
	until("a program that is told", func() bool { return told.Load() > 0 })
	count.Store(8)
	from := written()
	until("rows in eight tables", func() bool { return written() >= from+100 })
	close(stop)
	wg.Wait()
	doubled := 0
	for what, rows := range map[string][]writtenRow{"order": orders, "user": userRows} {
		for _, r := range rows {
			of4, of8 := r.number%4 == int64(r.table), r.number%8 == int64(r.table)
			if !of8 && (!of4 || r.before == 8) {
				t.Errorf("%s %d of a program that knew %d tables, then %d\nhave: in table %d", what, r.number, r.before, r.after, r.table)
			}
			if r.before == 8 && r.table >= 4 {
				doubled++
			}
		}
	}
	if doubled == 0 {
		t.Error("have: no row in the new tables")
	}
	// The rows are really there, and nowhere else.
	var sum int
	for i := range 8 {
		var all, wrong int
		query := fmt.Sprintf("SELECT COUNT(*), COALESCE(SUM(user_id %% 4 <> %d), 0) FROM t_user_%d", i%4, i)
		if err := db.QueryRow(query).Scan(&all, &wrong); err != nil || wrong > 0 {
			t.Errorf("t_user_%d\nhave: %d of %d wrong, %v", i, wrong, all, err)
		}
		sum += all
	}
	if sum != len(userRows) {
		t.Errorf("have: %d rows\nwant: %d", sum, len(userRows))
	}
}
