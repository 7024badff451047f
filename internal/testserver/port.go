package testserver

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// FreePort returns a free port on loopback. It is below the range out of which
// systems pick the ports of outgoing connections: a stopped server finds its
// port free when it is started again.
func FreePort() (int, error) {
	for range 100 {
		port := 10000 + rand.IntN(20000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("no free port on 127.0.0.1 in 10000..29999")
}
