package session

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/shardkey/shardkey/driver/internal/base"
)

// failingOnce is a connection whose first query fails.
type failingOnce struct {
	driver.Conn
	asked []string
}

func (c *failingOnce) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	if c.asked = append(c.asked, query); len(c.asked) == 1 {
		return nil, errors.New("away")
	}
	return noRows{}, nil
}

type noRows struct{}

func (noRows) Columns() []string         { return nil }
func (noRows) Close() error              { return nil }
func (noRows) Next([]driver.Value) error { return io.EOF }

// If setting the server's value fails, the session sets it before the next statement that reads it.
func TestLastID_setAgainAfterAFailure(t *testing.T) {
	conn := &failingOnce{}
	under := base.New(conn, nil)
	s := New(&under, new(Cache))
	s.LastID.Set(5)
	if err := s.SyncLastID(t.Context()); err == nil {
		t.Error("have: no error\nwant: the server's")
	}
	for range 2 {
		if err := s.SyncLastID(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if len(conn.asked) != 2 || conn.asked[1] != "SELECT LAST_INSERT_ID(5)" {
		t.Errorf("have: %q\nwant: the same question twice", conn.asked)
	}
}

func TestGivenNumbers_mayBe(t *testing.T) {
	const id = 5000
	for _, c := range []struct {
		bound driver.Value
		want  bool
	}{
		{nil, false}, {int64(5000), true}, {int64(5001), false}, {uint64(5000), true},
		{5000.4, true}, {4.0, false}, {true, false},
		{"5000", true}, {" 5e3 ", true}, {"5000 apples", true}, {"apples", false}, {[]byte("5000"), true}, {"", false},
		{time.Time{}, false}, {struct{}{}, true},
	} {
		g := &Given{Plain: true}
		if have := g.mayBe(id, []driver.NamedValue{{Value: c.bound}}); have != c.want {
			t.Errorf("%#v\nhave: %v\nwant: %v", c.bound, have, c.want)
		}
	}
	if g := (&Given{Plain: true, Numbers: []float64{1, 5000}}); !g.mayBe(id, nil) || g.mayBe(7000, nil) {
		t.Error("the text's own numbers are not seen")
	}
}
