package base

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// damaged is a network connection that shortens the first row of an answer and then receives nothing
// more.
type damaged struct {
	net.Conn
	rest   []byte
	state  damage
	ended  func() // called when the client waits for the rest of the damaged answer
	closed chan struct{}
	once   sync.Once
}

type damage uint8

const (
	answers damage = iota
	damages
	ends
)

func (d *damaged) Write(packet []byte) (int, error) {
	if bytes.Contains(packet, []byte("damaged")) {
		d.state = damages
	}
	return d.Conn.Write(packet)
}

func (d *damaged) Read(p []byte) (int, error) {
	if d.state == damages {
		d.state = ends
		all := make([]byte, 64<<10)
		n, err := d.Conn.Read(all)
		if err != nil {
			return 0, err
		}
		d.rest = shortRow(all[:n])
	}
	switch {
	case len(d.rest) > 0:
		n := copy(p, d.rest)
		d.rest = d.rest[n:]
		return n, nil
	case d.state == ends:
		d.ended()
		<-d.closed
		return 0, net.ErrClosed
	}
	return d.Conn.Read(p)
}

func (d *damaged) Close() error {
	d.once.Do(func() { close(d.closed) })
	return d.Conn.Close()
}

// shortRow returns an answer up to its first row, whose first string is too short.
func shortRow(answer []byte) []byte {
	const header, tooLong = 4, 250
	columns := false
	for pos := 0; ; {
		size := int(answer[pos]) | int(answer[pos+1])<<8
		data := answer[pos+header : pos+header+size]
		switch isColumn := bytes.HasPrefix(data, []byte("\x03def")); {
		case columns && !isColumn && data[0] != 0xfe:
			data[0] = tooLong
			return answer[:pos+header+size]
		default:
			columns = columns || isColumn
		}
		pos += header + size
	}
}

// A row that is too short doesn't end an answer. The query's context ends the wait for its rest.
func TestReadRows_shortRow(t *testing.T) {
	testserver.Each(t, func(t *testing.T) {
		for _, query := range []string{"SELECT 'damaged' FROM (SELECT 1 UNION SELECT 2) AS q", "SHOW DATABASES WHERE 'damaged' <> ''"} {
			ctx, cancel := context.WithCancel(t.Context())
			cfg := must.Get(mysql.ParseDSN(testserver.Database(t)))(t)
			cfg.Net, cfg.Logger = t.Name()+query, &mysql.NopLogger{}
			mysql.RegisterDialContext(cfg.Net, func(ctx context.Context, addr string) (net.Conn, error) {
				network := "tcp"
				if strings.HasPrefix(addr, "/") {
					network = "unix"
				}
				under, err := new(net.Dialer).DialContext(ctx, network, addr)
				return &damaged{Conn: under, ended: cancel, closed: make(chan struct{})}, err
			})
			db := sql.OpenDB(must.Get(mysql.NewConnector(cfg))(t))
			conn := must.Get(db.Conn(t.Context()))(t)
			err := conn.Raw(func(raw any) error {
				c := must.Get(New(raw.(driver.Conn), nil))(t)
				r, err := c.Do(ctx, &Request{Text: query, Rows: true})
				must.Do(t, err)
				read := 0
				err = c.ReadRows(r.Rows, func([]driver.Value) { read++ })
				if err == nil || read > 0 || c.IsValid() {
					t.Errorf("%s\nhave: %v after %d rows, valid %v\nwant: an error, and the connection discarded", query, err, read, c.IsValid())
				}
				return driver.ErrBadConn
			})
			must.Is(t, err, driver.ErrBadConn)
			_ = conn.Close()
			must.Do(t, db.Close())
		}
	})
}
