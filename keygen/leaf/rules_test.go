package leaf

import (
	"errors"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/shardkey/shardkey/spi"
)

// Callers in a tight loop, one number or several at a time, get as many as there
// are: one that is given twice makes it more.
func TestSegment_givesEachNumberOnce(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	for _, most := range []int64{1, 3} {
		s := &segment{size: 1 << 24}
		var given atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				own := int64(0)
				for n := most; ; n = 1 + n%most {
					if _, ok := s.take(n); !ok {
						given.Add(own)
						return
					}
					own += n
				}
			})
		}
		wg.Wait()
		if have := given.Load(); have > s.size || have < s.size-8*most {
			t.Errorf("up to %d at a time\nhave: %d numbers given\nwant: the segment's %d, but for the last few", most, have, s.size)
		}
	}
}

// Whatever was claimed last, a segment or the numbers of one large call, counts
// when the row is moved back; both refuse to claim below it.
func TestGenerator_movedBackBelowAClaim(t *testing.T) {
	for name, large := range map[string]bool{"a segment": false, "a large call": true} {
		synctest.Test(t, func(t *testing.T) {
			g, s := newFake(t, 100, config{})
			mustReserve(t, g, 1)
			if large {
				mustReserve(t, g, 5000)
			}
			s.set(func(s *fakeStore) { s.maxID-- })
			if first, err := g.reserve(t.Context(), 5000); !errors.Is(err, errMovedBack) {
				t.Errorf("%s, then a large call\nhave: %d %v\nwant: errMovedBack", name, first, err)
			}
			var err error
			for range 200 { // past the segment's end
				if _, err = g.reserve(t.Context(), 1); err != nil {
					break
				}
			}
			if !errors.Is(err, errMovedBack) {
				t.Errorf("%s, then a segment\nhave: %v\nwant: errMovedBack", name, err)
			}
		})
	}
}

// Two claims at once may come back in the other order.
func TestGenerator_leastOnlyRises(t *testing.T) {
	g, _ := newFake(t, 100, config{})
	for _, end := range []int64{100, 5000, 200, -5} {
		g.claimed(end)
	}
	if g.least != 5000 {
		t.Errorf("\nhave: %d\nwant: 5000", g.least)
	}
}

// A call that no buffer can serve leaves them to the others.
func TestGenerator_callLargerThanTheNextSegment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newFake(t, 100, config{})
		mustReserve(t, g, 40)
		g.mu.Lock()
		g.next = &segment{first: 1000, size: 100}
		g.step = 1000 // it has grown since
		g.mu.Unlock()
		mustReserve(t, g, 500)
		if have := *g.Health().SegmentLeft; have != 160 {
			t.Errorf("\nhave: %d numbers left in the buffers\nwant: 160, as before", have)
		}
	})
}

// Keys one by one, by the door that a statement of one row uses, have the next
// segment fetched before they need it.
func TestGenerator_singleKeysDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newFake(t, 100, config{})
		s.set(func(s *fakeStore) { s.delay = 5 * time.Millisecond })
		var key [1]int64
		for range 2000 {
			if err := g.GenerateInt64Keys(t.Context(), spi.Column{}, key[:]); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		if have := *g.Health().Waits; have != 1 {
			t.Errorf("\nhave: %d waits\nwant: 1, for the first segment", have)
		}
	})
}

// What is left in the buffers is not handed out after Close.
func TestGenerator_noKeysAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newFake(t, 100, config{})
		mustReserve(t, g, 1)
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			if err := g.GenerateInt64Keys(t.Context(), spi.Column{}, make([]int64, n+1)); !errors.Is(err, spi.ErrClosed) {
				t.Errorf("%d keys\nhave: %v\nwant: %v", n+1, err, spi.ErrClosed)
			}
		}
	})
}

// One statement that has raised several rows' max_id gives no numbers.
func TestSQLStore_severalRows(t *testing.T) {
	s, mock := newMockedStore(t)
	mock.ExpectPrepare(claimOne).ExpectExec().WillReturnResult(sqlmock.NewResult(700, 2))
	if first, err := s.claim(t.Context(), 10, 500); !errors.Is(err, errBadRow) {
		t.Errorf("\nhave: %d %v\nwant: errBadRow", first, err)
	}
}

// A server behind the same address that does not echo, or echoes something else,
// is found out by the number: it is never handed out.
func TestSQLStore_echoIsChecked(t *testing.T) {
	const n, least, claimed = 10, 500, 700
	for name, echoed := range map[string]int64{
		"none":                   0,
		"no number above 0":      n,
		"below what was claimed": least + n - 1,
		"a key of another table": 7,
		"a number below 0":       -1,
	} {
		t.Run(name, func(t *testing.T) {
			s, mock := newMockedStore(t)
			mock.ExpectPrepare(claimOne).ExpectExec().WillReturnResult(sqlmock.NewResult(echoed, 1))
			mock.ExpectBegin()
			mock.ExpectQuery(selectRow).WillReturnRows(sqlmock.NewRows([]string{"max_id"}).AddRow(claimed))
			mock.ExpectExec(claimSwap).WithArgs(claimed+n, "order", claimed).WillReturnResult(sqlmock.NewResult(0, 1))
			mock.ExpectCommit()
			first, err := s.claim(t.Context(), n, least)
			if err != nil || first != claimed || s.echo.Load() != echoNo {
				t.Errorf("\nhave: %d %v, echo %d\nwant: %d of the transaction, echo %d", first, err, s.echo.Load(), claimed, echoNo)
			}
			if err := mock.ExpectationsWereMet(); err != nil {
				t.Error(err)
			}
		})
	}
}

// newMockedStore is a store that takes its server to echo.
func newMockedStore(t *testing.T) (*sqlStore, sqlmock.Sqlmock) {
	t.Helper()
	c, err := config{Key: "order", DSN: "root@tcp(127.0.0.1:1)/leaf"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSQLStore(c, poolSize)
	if err != nil {
		t.Fatal(err)
	}
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s.db = db
	s.echo.Store(echoYes)
	return s, mock
}

// The session of an address of JDBC's form commits each statement too, and cuts
// nothing off, whatever the server's defaults are.
func TestParseJDBC_session(t *testing.T) {
	c, err := config{Key: "order", JDBCURL: "jdbc:mysql://127.0.0.1:1/leaf?autocommit=0&sql_mode=ANSI"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := c.mysqlConfig()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"autocommit": "1", "sql_mode": "'STRICT_ALL_TABLES'"}
	if !maps.Equal(cfg.Params, want) || cfg.MultiStatements {
		t.Errorf("\nhave: %v, several statements %v\nwant: %v, false", cfg.Params, cfg.MultiStatements, want)
	}
}
