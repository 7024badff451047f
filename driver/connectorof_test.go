package driver

import (
	"database/sql"
	"database/sql/driver"
	"testing"
)

// loop is a wrapper that has no end.
type loop struct{ driver.Conn }

func (l loop) Unwrap() driver.Conn { return l }

// nilWrapper wraps nothing.
type nilWrapper struct{ driver.Conn }

func (w nilWrapper) Unwrap() driver.Conn { return w.Conn }

type panicking struct{}

func (panicking) Unwrap() driver.Conn { panic("boom") }

func TestConnectorOf_whatItIsGiven(t *testing.T) {
	c := mustConnector(t, &fakeBase{kind: "direct"}, testRule(t))
	db := sql.OpenDB(c)
	defer db.Close()
	dbConn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer dbConn.Close()
	for _, ours := range []any{c, db, dbConn, c.Driver(), struct{ *sql.DB }{db}} {
		if have := ConnectorOf(ours); have != c {
			t.Errorf("%T\nhave: %v\nwant: the connector", ours, have)
		}
	}
	st, err := db.Prepare("SELECT 1")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	gone, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	for _, not := range []any{st, tx, gone, &sql.Row{}, (*conn)(nil), (*wrapped)(nil), (driver.Conn)(nil), (*nilWrapper)(nil), nilWrapper{}, panicking{}} {
		if have := ConnectorOf(not); have != nil {
			t.Errorf("%T\nhave: %v\nwant: nil", not, have)
		}
	}
	shut := mustConnector(t, &fakeBase{kind: "direct"}, testRule(t))
	closed := sql.OpenDB(shut)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if have := ConnectorOf(closed); have != shut {
		t.Errorf("a closed database\nhave: %v\nwant: its connector", have)
	}
	err = dbConn.Raw(func(raw any) error {
		if have := ConnectorOf(raw); have != c {
			t.Errorf("%T\nhave: %v\nwant: the connector", raw, have)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	other := sql.OpenDB(&fakeBase{})
	defer other.Close()
	for _, not := range []any{nil, (*sql.DB)(nil), (*sql.Conn)(nil), (*Connector)(nil), new(sql.DB), new(sql.Conn), other, Driver{}, loop{}, "db", new(sql.Tx)} {
		if have := ConnectorOf(not); have != nil {
			t.Errorf("%T\nhave: %v\nwant: nil", not, have)
		}
	}
}
