package leaf

import (
	"errors"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/DATA-DOG/go-sqlmock"
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

// Numbers that a call claimed for itself count when the row is moved back.
func TestGenerator_movedBackBelowALargeCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newFake(t, 100, config{})
		mustReserve(t, g, 1)
		end := mustReserve(t, g, 5000) + 5000
		for _, maxID := range []int64{end - 1, 200} { // above the segment, and below what was claimed
			s.set(func(s *fakeStore) { s.maxID = maxID })
			if first, err := g.reserve(t.Context(), 5000); !errors.Is(err, ErrMovedBack) {
				t.Errorf("max_id %d\nhave: %d %v\nwant: ErrMovedBack", maxID, first, err)
			}
		}
	})
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
			db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			mock.ExpectPrepare(claimOne).ExpectExec().WillReturnResult(sqlmock.NewResult(echoed, 1))
			mock.ExpectBegin()
			mock.ExpectQuery(selectRow).WillReturnRows(sqlmock.NewRows([]string{"max_id"}).AddRow(claimed))
			mock.ExpectExec(claimSwap).WithArgs(claimed+n, "order", claimed).WillReturnResult(sqlmock.NewResult(0, 1))
			mock.ExpectCommit()
			s := newMockedStore(t)
			s.db = db
			s.echo.Store(echoYes)
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

func newMockedStore(t *testing.T) *sqlStore {
	t.Helper()
	c, err := config{Key: "order", DSN: "root@tcp(127.0.0.1:1)/leaf"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSQLStore(c, poolSize)
	if err != nil {
		t.Fatal(err)
	}
	return s
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
