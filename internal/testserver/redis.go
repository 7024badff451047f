package testserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// StartRedis starts a Redis server for one test. The arguments are added to
// redis-server's, with {port} in them replaced by the server's port: so
//
//	StartRedis(t, "--port", "0", "--tls-port", "{port}", "--tls-cert-file", …)
//
// serves TLS alone. It writes each command to its append-only file before it
// answers, unless an argument says otherwise.
func StartRedis(t testing.TB, args ...string) *Server {
	t.Helper()
	return forTest(t, redis, args)
}

var redis = Recipe{Name: "redis", Prepare: makeData, Command: redisCommand, Answers: redisAnswers}

func redisCommand(s *Server) (*exec.Cmd, error) {
	server, err := Program("redis-server", "redis-server", envRedis)
	if err != nil {
		return nil, err
	}
	args := []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(s.port), "--dir", s.Data(),
		"--daemonize", "no", "--save", ""}
	if !s.fast {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	for _, arg := range s.args {
		args = append(args, strings.ReplaceAll(arg, "{port}", strconv.Itoa(s.port)))
	}
	return exec.Command(server, args...), nil
}

// redisAnswers is nil once the server answers PING, be it with a demand for a
// password. While it loads its data it answers -LOADING.
func redisAnswers(ctx context.Context, s *Server) error {
	conn, err := dial(ctx, s.Addr())
	if err != nil {
		return err
	}
	defer conn.Close()
	if slices.Contains(s.args, "--tls-port") {
		return tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx)
	}
	answer, err := ask(conn, "PING\r\n")
	if err == nil && !strings.HasPrefix(answer, "+PONG") && !strings.HasPrefix(answer, "-NOAUTH") {
		err = fmt.Errorf("answered %q", answer)
	}
	return err
}

func dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(5 * time.Second))
	}
	return conn, err
}

// ask sends a question and returns the beginning of the answer.
func ask(conn net.Conn, question string) (string, error) {
	if _, err := io.WriteString(conn, question); err != nil {
		return "", err
	}
	buf := make([]byte, 256)
	n, err := conn.Read(buf)
	if n > 0 {
		err = nil
	}
	return string(buf[:n]), err
}
