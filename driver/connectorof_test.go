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
	dbConn := must(db.Conn(t.Context()))(t)
	defer dbConn.Close()
	for _, ours := range []any{c, db, dbConn, c.Driver(), struct{ *sql.DB }{db}} {
		equal(t, ConnectorOf(ours), c, ours)
	}
	st := must(db.Prepare("SELECT 1"))(t)
	defer st.Close()
	tx := must(db.Begin())(t)
	defer tx.Rollback()
	gone, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	noError(t, gone.Close())
	for _, not := range []any{st, tx, gone, &sql.Row{}, (*conn)(nil), (*wrapped)(nil), (driver.Conn)(nil), (*nilWrapper)(nil), nilWrapper{}, panicking{}} {
		equal(t, ConnectorOf(not), nil, not)
	}
	shut := mustConnector(t, &fakeBase{kind: "direct"}, testRule(t))
	closed := sql.OpenDB(shut)
	noError(t, closed.Close())
	equal(t, ConnectorOf(closed), shut, "a closed database")
	err = dbConn.Raw(func(raw any) error {
		equal(t, ConnectorOf(raw), c, raw)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	other := sql.OpenDB(&fakeBase{})
	defer other.Close()
	for _, not := range []any{nil, (*sql.DB)(nil), (*sql.Conn)(nil), (*Connector)(nil), new(sql.DB), new(sql.Conn), other, Driver{}, loop{}, "db", new(sql.Tx)} {
		equal(t, ConnectorOf(not), nil, not)
	}
}
