package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

const nextRule = `
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: t_order_${0..1}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: counter}
    t_item:
      keyGenerateStrategy: {column: item_id, keyGeneratorName: counter}
    t_user:
      actualDataNodes: ds.app.t_user
      keyGenerateStrategy: {column: id, keyGeneratorName: uuid}
    t_blob:
      keyGenerateStrategy: {column: id, keyGeneratorName: binary}
    t_broken:
      keyGenerateStrategy: {column: id, keyGeneratorName: broken}
  keyGenerators:
    counter: {type: COUNTER}
    uuid: {type: UUID}
    binary: {type: UUID, props: {format: binary}}
    broken: {type: NEVER}
`

type never struct{}

var errNever = errors.New("never")

func (never) GenerateKeys(context.Context, spi.Column, int) ([]any, error) { return nil, errNever }

func init() {
	spi.RegisterKeyGenerator("NEVER", func(spi.Props) (spi.KeyGenerator, error) { return never{}, nil })
}

// openNext opens a database at an address where nothing listens.
func openNext(t *testing.T) *sql.DB {
	t.Helper()
	r, err := rule.Parse(t.Name(), []byte(nextRule))
	if err == nil {
		err = RegisterRule(t.Name(), r)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { DeregisterRule(t.Name()) })
	db := must(sql.Open("shardkey", "u:p@tcp(127.0.0.1:1)/app?shardkeyRule="+t.Name()))(t)
	t.Cleanup(func() { db.Close() })
	return db
}

func TestNextKeys_withoutAServer(t *testing.T) {
	db := openNext(t)
	for _, c := range []struct {
		table string
		want  []any
	}{
		{"t_order", []any{int64(1001), int64(1002)}},
		{"T_ORDER_1", []any{int64(1003), int64(1004)}}, // an actual table
		{"t_item", []any{int64(1005), int64(1006)}},    // the same generator
		{"anywhere.t_order_0", []any{int64(1007), int64(1008)}},
	} {
		have, err := NextKeys(t.Context(), db, c.table, 2)
		if err != nil || !reflect.DeepEqual(have, c.want) {
			t.Errorf("%s\nhave: %v, %v\nwant: %v", c.table, have, err, c.want)
		}
	}
	keys, err := NextKeys(t.Context(), db, "app.t_user", 2)
	if err != nil || len(keys) != 2 || len(keys[0].(string)) != 32 || keys[0] == keys[1] {
		t.Errorf("texts\nhave: %q, %v", keys, err)
	}
	if keys, err = NextKeys(t.Context(), db, "t_blob", 1); err != nil || len(keys[0].([]byte)) != 16 {
		t.Errorf("bytes\nhave: %q, %v", keys, err)
	}
	if keys, err = ConnectorOf(db).NextKeys(t.Context(), "t_order", 1); err != nil || keys[0] != int64(1009) {
		t.Errorf("of a connector\nhave: %v, %v", keys, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NextKeys(ctx, db, "t_order", 1); err != context.Canceled {
		t.Errorf("have: %v\nwant: the context's error", err)
	}
	noError(t, db.Close())
	isError(t, errOf(NextKeys(t.Context(), db, "t_order", 1)), spi.ErrClosed, "closed")
}

func TestNextKeys_refuses(t *testing.T) {
	db := openNext(t)
	plain := must(sql.Open("mysql", "u:p@tcp(127.0.0.1:1)/app"))(t)
	defer plain.Close()
	foreign := sql.OpenDB(&fakedb.Server{})
	defer foreign.Close()
	for _, c := range []struct {
		name  string
		db    *sql.DB
		table string
		n     int
		want  string
	}{
		{"misspelt", db, "t_oder", 1, `table t_oder: the rule does not list the table; did you mean "t_order"?`},
		{"unknown", db, "elsewhere", 1, `table elsewhere: the rule does not list the table`},
		{"empty", db, "", 1, "no key"},
		{"another schema", db, "other.t_user", 1, `table other.t_user: the rule does not list the table`},
		{"forgotten", db, "t_order_7", 1, `similar to the actual tables of "t_order"`},
		{"none", db, "t_order", 0, "expected 1 to 1000000 keys, found 0"},
		{"fewer", db, "t_order", -1, "found -1"},
		{"very many", db, "t_order", math.MaxInt, "expected 1 to"},
		{"nil", nil, "t_order", 1, "the *sql.DB does not use this driver"},
		{"another driver", foreign, "t_order", 1, "the *sql.DB does not use this driver"},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys, err := NextKeys(t.Context(), c.db, c.table, c.n)
			typed := (*StatementError)(nil)
			if keys != nil || !errors.As(err, &typed) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("have: %v, %v\nwant: %s", keys, err, c.want)
			}
		})
	}
	if like := (*rule.UnlistedTableError)(nil); true {
		if _, err := NextKeys(t.Context(), db, "t_order_7", 1); !errors.As(err, &like) {
			t.Errorf("have: %v\nwant: an UnlistedTableError", err)
		}
	}
	generator := (*GeneratorError)(nil)
	if _, err := NextKeys(t.Context(), db, "t_broken", 1); !errors.Is(err, errNever) || !errors.As(err, &generator) {
		t.Errorf("have: %v\nwant: a GeneratorError", err)
	}
	if _, err := NextKeys(t.Context(), plain, "t_order", 1); err == nil { // it would have to connect to find out
		t.Error("another driver without its server\nhave: no error")
	}
}

// NextKeys finds this driver below a wrapper that exposes it on a connection.
func TestNextKeys_belowAWrapper(t *testing.T) {
	connector := mustConnector(t, &fakedb.Server{}, mustParseRule(t, nextRule))
	defer connector.Close()
	below := sql.OpenDB(veil{connector})
	defer below.Close()
	if ConnectorOf(below) != nil {
		t.Fatal("have: the connector without a connection")
	}
	keys, err := NextKeys(t.Context(), below, "t_order", 1)
	if err != nil || keys[0] != int64(1001) {
		t.Errorf("have: %v, %v\nwant: 1001", keys, err)
	}
}

// veil wraps a connector, like otelsql.
type veil struct{ of driver.Connector }

type veiledConn struct{ driver.Conn }

func (c veiledConn) Unwrap() driver.Conn { return c.Conn }

func (v veil) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := v.of.Connect(ctx)
	return veiledConn{conn}, err
}

func (v veil) Driver() driver.Driver { return mysql.MySQLDriver{} }
