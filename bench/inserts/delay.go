package main

import (
	"io"
	"net"
	"time"
)

// delay is a line to a server on which everything takes longer, each way.
type delay struct {
	net.Listener
	to  string
	way time.Duration
}

func newDelay(to string, way time.Duration) (*delay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &delay{l, to, way}
	go d.serve()
	return d, nil
}

func (d *delay) Addr() string { return d.Listener.Addr().String() }

func (d *delay) serve() {
	for {
		client, err := d.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", d.to)
		if err != nil {
			client.Close()
			continue
		}
		go d.pass(client, server)
		go d.pass(server, client)
	}
}

// pass hands on what was read, each piece when it has been under way for long
// enough.
func (d *delay) pass(from, to net.Conn) {
	type piece struct {
		at   time.Time
		data []byte
	}
	pieces := make(chan piece, 1024)
	go func() {
		defer to.Close()
		for p := range pieces {
			time.Sleep(time.Until(p.at))
			if _, err := to.Write(p.data); err != nil && err != io.EOF {
				break
			}
		}
		for range pieces {
		}
	}()
	defer close(pieces)
	for {
		data := make([]byte, 16<<10)
		n, err := from.Read(data)
		if n > 0 {
			pieces <- piece{time.Now().Add(d.way), data[:n]}
		}
		if err != nil {
			return
		}
	}
}
