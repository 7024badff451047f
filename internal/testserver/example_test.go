package testserver_test

import (
	"crypto/tls"
	"fmt"
	"os"

	"github.com/shardkey/shardkey/internal/testserver"
)

// A server takes the files, its clients the pool.
func ExampleCertify() {
	dir, err := os.MkdirTemp("", "certify")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	files, err := testserver.Certify(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	certificate, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	go func() {
		if conn, err := server.Accept(); err == nil {
			fmt.Fprintln(conn, "hello")
			conn.Close()
		}
	}()
	conn, err := tls.Dial("tcp", server.Addr().String(), &tls.Config{RootCAs: files.Pool})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	var said string
	_, err = fmt.Fscanln(conn, &said)
	fmt.Println(said, err)
	// Output: hello <nil>
}
