package segment

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
	"github.com/shardkey/shardkey/spi"
)

// tables are the tables of both types on a real server.
var tables = []table{leafAlloc, tickets64}

type table struct {
	typ     string
	name    string
	create  []string
	address string         // name of the property with the DSN
	props   map[string]any // the other properties
	// claim claims numbers as other programs do.
	claim func(db *sql.DB, i int) ([]int64, error)
	grant string
}

// leafAlloc has the columns of Leaf's own definition, and Leaf's fetch.
var leafAlloc = table{
	typ: "LEAF_SEGMENT", name: "leaf_alloc", address: "dsn",
	create: []string{"CREATE TABLE leaf_alloc (biz_tag varchar(128) NOT NULL DEFAULT '', " +
		"max_id bigint(20) NOT NULL DEFAULT '1', step int(11) NOT NULL, description varchar(256) DEFAULT NULL, " +
		"update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, " +
		"PRIMARY KEY (biz_tag)) ENGINE=InnoDB",
		"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)"},
	props: map[string]any{"leaf.key": "order", "failover-gap": "0"},
	claim: func(db *sql.DB, i int) ([]int64, error) {
		first, end, err := leafFetch(db, int64(i%3)*50)
		var keys []int64
		for k := first; k < end; k++ {
			keys = append(keys, k)
		}
		return keys, err
	},
	grant: "SELECT, UPDATE ON leaf_alloc",
}

// tickets64 is Flickr's table with InnoDB, and Flickr's statement.
var tickets64 = table{
	typ: "TICKET", name: "Tickets64", address: "dsns",
	create: []string{"CREATE TABLE Tickets64 (id bigint(20) unsigned NOT NULL auto_increment, " +
		"stub char(1) NOT NULL default '', PRIMARY KEY (id), UNIQUE KEY stub (stub)) ENGINE=InnoDB"},
	claim: func(db *sql.DB, _ int) ([]int64, error) {
		for {
			res, err := db.Exec("REPLACE INTO Tickets64 (stub) VALUES ('a')")
			if mysqldb.IsDeadlock(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			id, err := res.LastInsertId()
			return []int64{id}, err
		}
	},
	grant: "SELECT, INSERT, DELETE ON Tickets64",
}

// leafFetch claims a segment as Leaf's server does. Step 0 means the row's step.
func leafFetch(db *sql.DB, step int64) (first, end int64, err error) {
	tx, err := db.Begin()
	if err != nil {
		return 0, 0, err
	}
	defer tx.Rollback()
	if step > 0 {
		_, err = tx.Exec("UPDATE leaf_alloc SET max_id = max_id + ? WHERE biz_tag = 'order'", step)
	} else {
		_, err = tx.Exec("UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'order'")
	}
	if err != nil {
		return 0, 0, err
	}
	var rowStep int64
	if err := tx.QueryRow("SELECT max_id, step FROM leaf_alloc WHERE biz_tag = 'order'").Scan(&end, &rowStep); err != nil {
		return 0, 0, err
	}
	if step == 0 {
		step = rowStep
	}
	return end - step, end, tx.Commit()
}

func mustExec(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	must.Get(db.Exec(query, args...))(t, query)
}

func scan[V any](t testing.TB, db *sql.DB, query string) (v V) {
	t.Helper()
	must.Do(t, db.QueryRow(query).Scan(&v), query)
	return v
}

// make makes the table in a database.
func (tab table) make(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db := must.Open(t, "mysql", dsn)
	for _, query := range tab.create {
		mustExec(t, db, query)
	}
	return db
}

// database creates a database with the table on the shared server.
func (tab table) database(t testing.TB) (dsn string, db *sql.DB) {
	t.Helper()
	dsn = testserver.Database(t)
	return dsn, tab.make(t, dsn)
}

// server starts a server with a database with the table.
func (tab table) server(t testing.TB, args ...string) (*testserver.Server, string) {
	t.Helper()
	s := testserver.StartSQL(t, args...)
	mustExec(t, must.Open(t, "mysql", s.DSN()), "CREATE DATABASE numbers")
	tab.make(t, s.DSN()+"numbers")
	return s, s.DSN() + "numbers"
}

func (tab table) generator(t testing.TB, dsn string, more map[string]any) *generator {
	t.Helper()
	props := with(map[string]any{tab.address: dsn}, tab.props)
	return newGen(t, tab.typ, with(props, more))
}

// eachTable runs a test with both tables on each kind of server.
func eachTable(t *testing.T, all func(*testing.T), test func(*testing.T, table)) {
	if testserver.Each(t, all) {
		return
	}
	t.Parallel()
	for _, tab := range tables {
		t.Run(tab.typ, func(t *testing.T) { test(t, tab) })
	}
}

// Several generators, and programs that use the tables as Leaf and Flickr do, get unique numbers.
// Callers don't see InnoDB's deadlocks.
func TestTable_sharedWithOtherPrograms(t *testing.T) {
	eachTable(t, TestTable_sharedWithOtherPrograms, func(t *testing.T, tab table) {
		dsn, db := tab.database(t)
		var keys ledger
		var gens []*generator
		for i := range 4 {
			more := map[string]any{"max-step": "400"}
			if tab.typ == "TICKET" {
				more = map[string]any{"batch": fmt.Sprint(1 + i%2*10)}
			}
			gens = append(gens, tab.generator(t, dsn, more))
		}
		inParallel(20, func(i int) {
			for j := range 50 {
				own, err := tab.claim(db, j)
				if i < 16 {
					own, err = generate(t.Context(), gens[i%4], 1+j%4)
				}
				if err != nil {
					t.Error(err)
					return
				}
				keys.add(t, who(i), own...)
			}
		})
	})
}

// The first key of a new table is 1. The keys of a call are consecutive, and are committed before
// the caller gets them. Other programs can continue to use the table.
func TestTable_keysAreCommitted(t *testing.T) {
	eachTable(t, TestTable_keysAreCommitted, func(t *testing.T, tab table) {
		dsn, db := tab.database(t)
		g := tab.generator(t, dsn+"?autocommit=0&sql_mode=''", nil)
		var keys ledger
		for i, n := range []int{1, 1, 3, 100, 1, 2, 5000} {
			own := mustKeys(t, g, n)
			keys.add(t, "the generator", own...)
			others := must.Get(tab.claim(db, 0))(t)
			keys.add(t, "another program", others...)
			if i == 0 && own[0] != 1 || own[n-1] != own[0]+int64(n-1) || others[0] <= own[n-1] {
				t.Errorf("\nhave: %d … %d of %d, then %d of another program\nwant: from 1, without gaps, and above",
					own[0], own[n-1], n, others[0])
			}
		}
	})
}

// Parameters that a DSN sets for its application don't change the numbers.
func TestTable_parameters(t *testing.T) {
	eachTable(t, TestTable_parameters, func(t *testing.T, tab table) {
		dsn, db := tab.database(t)
		more := map[string]any{"failover-gap": "100", "leaf.key": "订单"}
		if tab.typ == "TICKET" {
			more = map[string]any{"batch": "5"}
		} else {
			mustExec(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('订单', 1, 5)")
		}
		next := int64(1)
		for _, param := range testserver.Params {
			g := tab.generator(t, dsn+"?"+param, more)
			for _, n := range []int{5, 15, 1, 1500} {
				keys, err := generate(t.Context(), g, n)
				if err != nil || keys[0] < next || keys[n-1] != keys[0]+int64(n)-1 {
					t.Errorf("%s\nhave: %v of %d keys\nwant: above %d, without gaps", param, err, n, next)
					break
				}
				next = keys[n-1] + 1
			}
		}
	})
}

// A server that may lose acknowledged claims is in Health's warnings, and in the log once.
func TestTable_durability(t *testing.T) {
	if testserver.Each(t, TestTable_durability) {
		return
	}
	t.Parallel()
	_, dsn := leafAlloc.server(t)
	db := tickets64.make(t, dsn)
	for _, tt := range []struct {
		flush, engine string
		want          []string
	}{
		{"1", "InnoDB", nil},
		{"0", "InnoDB", []string{"innodb_flush_log_at_trx_commit 0"}},
		{"2", "MyISAM", []string{"innodb_flush_log_at_trx_commit 2", "engine MyISAM"}},
		{"1", "MyISAM", []string{"engine MyISAM"}},
	} {
		mustExec(t, db, "SET GLOBAL innodb_flush_log_at_trx_commit = "+tt.flush)
		for _, tab := range tables {
			mustExec(t, db, "ALTER TABLE "+tab.name+" ENGINE="+tt.engine)
			var log must.Log
			props := with(map[string]any{tab.address: dsn, "timeout": "1m"}, tab.props)
			host := spi.Host{Logger: log.Logger()}
			g := must.Get(construct(t, tab.typ, props, host))(t).(*generator)
			for range 3 {
				mustKey(t, g)
				idleServer(g).disconnect()
			}
			mustKeys(t, g, 1000)
			have := g.Health().Warnings
			must.Equal(t, len(have), len(tt.want), tab.typ, tt.flush, tt.engine, have)
			must.Equal(t, strings.Count(log.String(), "numbers may not be unique"), len(tt.want), tab.typ, tt.flush, tt.engine, &log)
			for i, want := range tt.want {
				must.Contain(t, have[i], want)
				must.Contain(t, log.String(), want)
			}
		}
	}
}

// MyISAM, the engine of Flickr's table, has no transactions and locks no rows.
func TestTable_myISAM(t *testing.T) {
	eachTable(t, TestTable_myISAM, func(t *testing.T, tab table) {
		dsn, db := tab.database(t)
		mustExec(t, db, "ALTER TABLE "+tab.name+" ENGINE=MyISAM")
		var keys ledger
		inParallel(2, func(i int) {
			g := tab.generator(t, dsn, nil)
			for range 50 {
				own := mustKeys(t, g, 3)
				keys.add(t, who(i), own...)
				must.Equal(t, own[2], own[0]+2, "numbers that follow each other", own)
			}
		})
	})
}

func TestTable_cancelWhileTheRowIsLocked(t *testing.T) {
	eachTable(t, TestTable_cancelWhileTheRowIsLocked, func(t *testing.T, tab table) {
		dsn, db := tab.database(t)
		g := tab.generator(t, dsn, nil)
		mustKeys(t, g, 100)
		tx := must.Get(db.Begin())(t)
		defer tx.Rollback()
		must.Get(tx.Exec("SELECT * FROM " + tab.name + " FOR UPDATE"))(t)
		for _, n := range []int{100, 5000} {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(20*time.Millisecond, cancel)
			must.Is(t, must.Err(generate(ctx, g, n)), context.Canceled, n, "keys")
		}
		tx.Rollback()
		mustKey(t, g)
	})
}

// When the server stops, buffered keys continue, then there is an error. When it returns, keys
// continue above the old ones.
func TestTable_serverAwayAndBack(t *testing.T) {
	if testserver.Each(t, TestTable_serverAwayAndBack) {
		return
	}
	t.Parallel()
	server, dsn := leafAlloc.server(t)
	tickets64.make(t, dsn)
	gens := []*generator{
		leafAlloc.generator(t, "", map[string]any{
			"leaf.jdbc.url":      "jdbc:mysql://" + server.Addr() + "/numbers?useSSL=false&serverTimezone=UTC",
			"leaf.jdbc.username": "root", "min-step": "1000",
		}),
		tickets64.generator(t, dsn, map[string]any{"batch": "1000"}),
	}
	keys := make([]ledger, len(gens))
	for i, g := range gens {
		keys[i].add(t, "before", mustKeys(t, g, 200)...)
	}
	for _, stop := range []func(){server.Stop, server.Kill} {
		stop()
		for i, g := range gens {
			var own []int64
			var err error
			served := 0
			for ; err == nil; served++ {
				if own, err = generate(t.Context(), g, 1); err == nil {
					keys[i].add(t, "from memory", own...)
				}
			}
			wantError(t, err, spi.ErrStore)
			if served < 500 || g.Health().Err == nil {
				t.Errorf("%s\nhave: %d keys, health %v\nwant: 500 or more, and an error", g.title, served, g.Health().Err)
			}
		}
		server.Start()
		for i, g := range gens {
			for range 1500 {
				keys[i].add(t, "after", mustKey(t, g))
			}
			must.Do(t, g.Health().Err, g.title)
		}
	}
}

// A killed idle connection causes no error.
func TestTable_idleConnectionKilled(t *testing.T) {
	eachTable(t, TestTable_idleConnectionKilled, func(t *testing.T, tab table) {
		dsn, db := tab.database(t)
		g := tab.generator(t, dsn, nil)
		for _, n := range []int{1000, 1, 2000} {
			mustKeys(t, g, n)
			mustExec(t, db, fmt.Sprint("KILL ", connectionValue(t, g, "SELECT CONNECTION_ID()")))
		}
		mustKeys(t, g, 5000)
		must.Equal(t, len(g.Health().Errors), 0, "errors", g.Health().Errors)
	})
}

// connectionValue runs a query on the generator's connection.
func connectionValue(t *testing.T, g *generator, query string) (v int64) {
	t.Helper()
	must.Do(t, idleServer(g).conn.QueryRowContext(t.Context(), query).Scan(&v))
	return v
}

// user creates a user without privileges, and returns its DSN. The user is dropped with its
// database.
func user(t *testing.T, db *sql.DB, dsn string) (account, userDSN string) {
	t.Helper()
	cfg := must.Get(mysql.ParseDSN(dsn))(t)
	cfg.User, cfg.Passwd = "u"+cfg.DBName[len(cfg.DBName)-12:], "geheim" // 5e2… would be a number
	account = cfg.User + "@'%'"
	mustExec(t, db, "CREATE USER "+account+" IDENTIFIED BY 'geheim'")
	t.Cleanup(func() { mustExec(t, db, "DROP USER "+account) })
	return account, cfg.FormatDSN()
}

func TestTable_privileges(t *testing.T) {
	eachTable(t, TestTable_privileges, func(t *testing.T, tab table) {
		dsn, db := tab.database(t)
		account, userDSN := user(t, db, dsn)
		for dsn, says := range map[string]string{
			userDSN: "GRANT SELECT", strings.Replace(userDSN, ":geheim@", ":falsch-geheim@", 1): "password",
		} {
			_, err := generate(t.Context(), tab.generator(t, dsn, nil), 1)
			wantError(t, err, spi.ErrStore)
			if !errors.As(err, new(*mysql.MySQLError)) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "geheim") {
				t.Errorf("\nhave: %v\nwant: the server's error, with %q", err, says)
			}
		}
		mustExec(t, db, "GRANT "+tab.grant+" TO "+account)
		mustKeys(t, tab.generator(t, userDSN, nil), 3)
	})
}

// Each of these tables causes an error of its kind, with a fix, or keys.
func TestTable_contents(t *testing.T) {
	maxID := func(v int64) string { return fmt.Sprint("UPDATE leaf_alloc SET max_id = ", v) }
	eachTable(t, TestTable_contents, func(t *testing.T, tab table) {
		for _, tt := range []struct {
			typ, name string
			setup     []string
			want      error
			says      string
			first     int64
		}{
			{"LEAF_SEGMENT", "unknown", []string{"DELETE FROM leaf_alloc"}, errUnknownKey, "INSERT INTO leaf_alloc", 0},
			{"LEAF_SEGMENT", "step 0", []string{"UPDATE leaf_alloc SET step = 0"}, errBadRow, "step", 0},
			{"LEAF_SEGMENT", "two rows", []string{"ALTER TABLE leaf_alloc DROP PRIMARY KEY",
				"INSERT INTO leaf_alloc (biz_tag, step) VALUES ('order', 10)"}, errBadRow, "primary key", 0},
			{"LEAF_SEGMENT", "no table", []string{"DROP TABLE leaf_alloc"}, spi.ErrStore, "CREATE TABLE leaf_alloc", 0},
			{"LEAF_SEGMENT", "max_id 0: no key 0", []string{maxID(0)}, nil, "", 1},
			{"LEAF_SEGMENT", "end of int64", []string{maxID(math.MaxInt64 - 4)}, errExhausted, "max_id cannot be raised", 0},
			{"LEAF_SEGMENT", "past int64", []string{"ALTER TABLE leaf_alloc MODIFY max_id bigint unsigned NOT NULL",
				"UPDATE leaf_alloc SET max_id = 18446744073709551000"}, errExhausted, "max_id cannot be raised", 0},
			{"LEAF_SEGMENT", "a narrow column", []string{"ALTER TABLE leaf_alloc MODIFY max_id int NOT NULL",
				maxID(math.MaxInt32)}, errExhausted, "max_id cannot be raised", 0},
			{"TICKET", "no table", []string{"DROP TABLE Tickets64"}, spi.ErrStore, "CREATE TABLE `Tickets64`", 0},
			{"TICKET", "no AUTO_INCREMENT", []string{"ALTER TABLE Tickets64 MODIFY id bigint NOT NULL"},
				spi.ErrStore, "no AUTO_INCREMENT", 0},
			{"TICKET", "past int64", []string{"ALTER TABLE Tickets64 AUTO_INCREMENT = 9223372036854775900"},
				errExhausted, "no numbers left", 0},
			{"TICKET", "end of a tinyint", []string{"ALTER TABLE Tickets64 MODIFY id tinyint NOT NULL AUTO_INCREMENT, " +
				"AUTO_INCREMENT = 127"}, errExhausted, "no numbers left", 0},
			{"TICKET", "end of an unsigned smallint", []string{"ALTER TABLE Tickets64 " +
				"MODIFY id smallint unsigned NOT NULL AUTO_INCREMENT, AUTO_INCREMENT = 65535"}, errExhausted, "no numbers left", 0},
		} {
			if tt.typ != tab.typ {
				continue
			}
			t.Run(tt.name, func(t *testing.T) {
				dsn, db := tab.database(t)
				for _, query := range tt.setup {
					mustExec(t, db, query)
				}
				for _, n := range []int{1, 5} {
					keys, err := generate(t.Context(), tab.generator(t, dsn+"?sql_mode=''", nil), n)
					if tt.want == nil {
						if err != nil || keys[0] != tt.first {
							t.Errorf("\nhave: %v %v\nwant: from %d", keys, err, tt.first)
						}
						return
					}
					wantError(t, err, tt.want)
					must.Contain(t, err.Error(), tt.says, err)
				}
			})
		}
	})
}

// If a table changes while the generator is open, the generator returns no number that was claimed
// before. It returns none above the column's range, and none if the row is gone.
func TestTable_changesWhileLive(t *testing.T) {
	eachTable(t, TestTable_changesWhileLive, func(t *testing.T, tab table) {
		for _, tt := range []struct {
			typ, name string
			change    []string
			want      error
		}{
			{"LEAF_SEGMENT", "moved back", []string{"UPDATE leaf_alloc SET max_id = 1"}, errMovedBack},
			{"LEAF_SEGMENT", "deleted", []string{"DELETE FROM leaf_alloc"}, errUnknownKey},
			{"LEAF_SEGMENT", "at the end", []string{"UPDATE leaf_alloc SET max_id = 9223372036854775802"}, errExhausted},
			{"LEAF_SEGMENT", "table dropped", []string{"DROP TABLE leaf_alloc"}, spi.ErrStore},
			{"LEAF_SEGMENT", "narrowed", []string{"ALTER TABLE leaf_alloc MODIFY max_id smallint NOT NULL"}, errExhausted},
			{"TICKET", "restored backup", append([]string{"DROP TABLE Tickets64"}, tab.create...), errRepeated},
			{"TICKET", "table dropped", []string{"DROP TABLE Tickets64"}, spi.ErrStore},
			{"TICKET", "at the end", []string{"ALTER TABLE Tickets64 AUTO_INCREMENT = 9223372036854775806"}, errExhausted},
		} {
			if tt.typ != tab.typ {
				continue
			}
			t.Run(tt.name, func(t *testing.T) {
				dsn, db := tab.database(t)
				g := tab.generator(t, dsn, nil)
				mustKeys(t, g, 20_000)
				mustKeys(t, g, 9000) // claimed by the single statement of LEAF_SEGMENT
				for _, query := range tt.change {
					mustExec(t, db, query)
				}
				for range 3 {
					wantError(t, must.Err(generate(t.Context(), g, 5000)), tt.want)
				}
				if tt.want != errMovedBack {
					return
				}
				// A refused claim doesn't change the row. After an operator has fixed the row,
				// claims succeed again.
				must.Equal(t, scan[int64](t, db, "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'order'"), 1, "max_id is untouched")
				mustExec(t, db, "UPDATE leaf_alloc SET max_id = 100000")
				if keys := mustKeys(t, g, 5000); slices.Min(keys) < 100_000 {
					t.Errorf("after the repair\nhave: %d\nwant: from 100000", keys[0])
				}
			})
		}
	})
}

// ticketBubble runs a test with fake ticket servers.
func ticketBubble(t *testing.T, dsns string, props map[string]any, test func(*testing.T, *generator, []*fake)) {
	t.Helper()
	inBubble(t, "TICKET", with(map[string]any{"dsns": dsns}, props), test)
}

const (
	two   = "u@tcp(a:1)/d,u@tcp(b:1)/d"
	three = "u@tcp(a:1)/d,u@tcp(b:1)/d,u@tcp(c:1)/d"
)

// The servers are used in turn. The rest of a batch serves calls for which it suffices, on its
// server's grid. Otherwise the rest is dropped, unless the call needs more than a batch.
func TestServers_inTurn(t *testing.T) {
	for _, tt := range []struct {
		name, dsns string
		batch      string
		want       [][]int64
	}{
		{"three servers", three, "1", [][]int64{{1}, {2}, {3}, {4}, {5}, {6}, {7, 10, 13}, {8, 11}}},
		{"batches of 4", two, "4", [][]int64{{1}, {3, 5}, {2, 4}, {6, 8}, {9, 11, 13}, {10, 12},
			{17, 19, 21, 23, 25}, {14, 16}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ticketBubble(t, tt.dsns, map[string]any{"batch": tt.batch}, func(t *testing.T, g *generator, _ []*fake) {
				for _, want := range tt.want {
					must.EqualSlices(t, mustKeys(t, g, len(want)), want)
				}
			})
		})
	}
}

// A batch is one fetch. Later calls use its rest from the buffer.
func TestServers_batch(t *testing.T) {
	ticketBubble(t, "u@tcp(a:1)/d", map[string]any{"batch": "10"}, func(t *testing.T, g *generator, _ []*fake) {
		for range 30 {
			mustKey(t, g)
		}
		if h := g.Health(); h.Segment.Fetches != 3 || *h.Segment.Left != 0 || h.Segment.Size != 10 || h.Issued != 30 {
			t.Errorf("\nhave: %d fetches, %d left of %d, %d issued\nwant: 3, 0 of 10, 30",
				h.Segment.Fetches, *h.Segment.Left, h.Segment.Size, h.Issued)
		}
		for _, n := range []int{4, 25, 6} {
			mustKeys(t, g, n)
		}
		must.Equal(t, g.Health().Segment.Fetches, 5, "fetches")
	})
}

// A server that is down is retried after 1, 2, 4, … 30 seconds, and costs nothing in between.
func TestServers_pausesGrow(t *testing.T) {
	ticketBubble(t, two, nil, func(t *testing.T, g *generator, fakes []*fake) {
		fakes[0].fail = []error{errors.New("down")}
		begin := time.Now()
		var tried []time.Duration
		for time.Since(begin) < 100*time.Second {
			before := fakes[0].tries
			mustKey(t, g)
			if fakes[0].tries > before {
				tried = append(tried, time.Since(begin))
			}
			time.Sleep(100 * time.Millisecond)
		}
		last := time.Duration(0)
		for i, want := range []time.Duration{0, 1, 2, 4, 8, 16, 30, 30} {
			if i >= len(tried) {
				t.Fatalf("\nhave: tries at %v\nwant: 8", tried)
			}
			must.Equal(t, (tried[i] - last).Round(time.Second), want*time.Second, "try", i)
			last = tried[i]
		}
	})
}

func TestServers_slowOneIsSkipped(t *testing.T) {
	ticketBubble(t, two, map[string]any{"timeout": "1s"}, func(t *testing.T, g *generator, fakes []*fake) {
		fakes[0].delay = time.Hour
		begin := time.Now()
		for range 10 {
			mustKey(t, g)
		}
		must.Equal(t, time.Since(begin), time.Second, "the timeout once for 10 keys")
		must.Fail(t, g.Health().Err, "health while a server is skipped")
	})
}

func TestServers_allFail(t *testing.T) {
	ticketBubble(t, two, nil, func(t *testing.T, g *generator, fakes []*fake) {
		a, b := errors.New("down"), errors.New("on fire")
		fakes[0].fail, fakes[1].fail = []error{a}, []error{b}
		for range 3 {
			if _, err := generate(t.Context(), g, 1); !errors.Is(err, a) || !errors.Is(err, b) {
				t.Errorf("\nhave: %v\nwant: both servers' errors", err)
			}
		}
		if h := g.Health(); h.Err == nil || h.Errors["store"] != 6 || h.Issued != 0 {
			t.Errorf("\nhave: %v, errors %v, %d issued\nwant: an error, 6, 0", h.Err, h.Errors, h.Issued)
		}
	})
}

// A server that has repeated numbers is not used again.
func TestServers_refused(t *testing.T) {
	ticketBubble(t, two, nil, func(t *testing.T, g *generator, fakes []*fake) {
		fakes[0].refused = fakes[0].storeError(errRepeated, "fake")
		for range 5 {
			must.Equal(t, mustKey(t, g)%2, 0, "of the second server")
			time.Sleep(maxPause)
		}
		if h := g.Health(); !errors.Is(h.Err, errRepeated) || h.Errors["repeated"] == 0 {
			t.Errorf("have: %v, %v\nwant: errRepeated", h.Err, h.Errors)
		}
	})
}

// All servers are connected before the first number. Wrong settings of a server that returns stop
// all numbers until they are fixed.
func TestServers_settingsOfAllCount(t *testing.T) {
	ticketBubble(t, two, nil, func(t *testing.T, g *generator, fakes []*fake) {
		wrong := fakes[1].storeError(errSettings, "fake")
		fakes[1].refuse = wrong
		for range 4 {
			wantError(t, must.Err(generate(t.Context(), g, 1)), errSettings)
		}
		must.Equal(t, fakes[0].tries, 0, "claims")
		fakes[1].set(func(f *fake) { f.refuse = nil })
		must.EqualSlices(t, []int64{mustKey(t, g), mustKey(t, g)}, []int64{1, 2}, "after the repair")
		fakes[0].set(func(f *fake) { f.fail = []error{wrong, nil} }) // error for a number that is off its grid
		must.Is(t, must.Err(generate(t.Context(), g, 1)), errSettings, "wrong settings at a claim")
		fakes[1].set(func(f *fake) { f.refuse = wrong })
		time.Sleep(lifetime)
		failed := 0
		for range 6 {
			if _, err := generate(t.Context(), g, 1); errors.Is(err, errSettings) {
				failed++
			}
		}
		if failed < 5 {
			t.Errorf("\nhave: %d of 6 calls refused\nwant: all from when it is seen", failed)
		}
	})
}
