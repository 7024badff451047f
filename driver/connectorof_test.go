package driver

import (
	"database/sql"
	"database/sql/driver"
	"testing"
)

// loop is a wrapper that has no end.
type loop struct{ driver.Conn }

func (l loop) Unwrap() driver.Conn { return l }

func TestConnectorOf_whatItIsGiven(t *testing.T) {
	c := mustConnector(t, &fakeBase{kind: "direct"}, testRule(t))
	db := sql.OpenDB(c)
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, ours := range []any{c, db, conn, c.Driver(), struct{ *sql.DB }{db}} {
		if have := ConnectorOf(ours); have != c {
			t.Errorf("%T\nhave: %v\nwant: the connector", ours, have)
		}
	}
	err = conn.Raw(func(raw any) error {
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
