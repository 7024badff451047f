package testserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
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

var redis = Recipe{Name: "redis", Prepare: makeData, Command: redisCommand, Answers: redisAnswers, env: envRedis}

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
	if !slices.Contains(s.args, "--tls-port") {
		return s.replies(ctx, "PING\r\n", "+PONG", "-NOAUTH")
	}
	conn, err := dial(ctx, s.Addr())
	if err != nil {
		return err
	}
	defer conn.Close()
	return tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx)
}

// replies is nil if the answer to a question has one of these beginnings.
func (s *Server) replies(ctx context.Context, question string, answers ...string) error {
	conn, err := dial(ctx, s.Addr())
	if err != nil {
		return err
	}
	defer conn.Close()
	answer, err := say(conn, question)
	if err == nil && !slices.ContainsFunc(answers, func(want string) bool { return strings.HasPrefix(answer, want) }) {
		err = fmt.Errorf("answered %q", answer)
	}
	return err
}

func dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(time.Minute))
	}
	return conn, err
}

// say sends a question and returns the beginning of the answer.
func say(conn net.Conn, question string) (string, error) {
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

// StartZooKeeper starts a ZooKeeper server for one test. The arguments are lines
// of zoo.cfg, as "maxClientCnxns=1". A tick has 500 ms: sessions may be as short as
// a second, and as long as an hour.
func StartZooKeeper(t testing.TB, args ...string) *Server {
	t.Helper()
	return forTest(t, zooKeeper, args)
}

var zooKeeper = Recipe{Name: "zookeeper", Prepare: makeData, Command: zooKeeperCommand, Answers: zooKeeperAnswers,
	env: envZooKeeper}

// zooKeeperJar names the jars that it depends on in its manifest.
const zooKeeperJar = "/usr/share/java/zookeeper.jar"

func zooKeeperCommand(s *Server) (*exec.Cmd, error) {
	java, err := Program("java", "zookeeper", envZooKeeper)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(zooKeeperJar); err != nil {
		return nil, &MissingError{Program: zooKeeperJar, Remedy: "apt-get install zookeeper", Env: envZooKeeper}
	}
	config := filepath.Join(s.dir, "zoo.cfg")
	if err := os.WriteFile(config, []byte(s.zooConfig()), 0o600); err != nil {
		return nil, err
	}
	// A small machine that starts fast.
	args := []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"}
	if s.fast {
		args = append(args, "-Dzookeeper.forceSync=no")
	}
	args = append(args, "-cp", zooKeeperJar, "org.apache.zookeeper.server.ZooKeeperServerMain", config)
	return exec.Command(java, args...), nil
}

func (s *Server) zooConfig() string {
	lines := []string{
		"dataDir=" + s.Data(),
		"clientPortAddress=127.0.0.1",
		fmt.Sprintf("clientPort=%d", s.port),
		"tickTime=500",
		"maxSessionTimeout=3600000",
		"maxClientCnxns=0",
		"admin.enableServer=false",
		"4lw.commands.whitelist=*",
	}
	return strings.Join(append(lines, s.args...), "\n") + "\n"
}

// zooKeeperAnswers is nil once the server serves; until then it answers that it isn't serving yet.
func zooKeeperAnswers(ctx context.Context, s *Server) error {
	return s.replies(ctx, "srvr", "Zookeeper version")
}

// StartEtcd starts an etcd server for one test. The arguments are added to
// etcd's.
func StartEtcd(t testing.TB, args ...string) *Server {
	t.Helper()
	return forTest(t, etcd, args)
}

var etcd = Recipe{Name: "etcd", Prepare: makeData, Command: etcdCommand, Answers: etcdAnswers, env: envEtcd}

func etcdCommand(s *Server) (*exec.Cmd, error) {
	server, err := Program("etcd", "etcd-server", envEtcd)
	if err != nil {
		return nil, err
	}
	// A cluster of one has nobody to talk to; port 0 is any port.
	client, peer := "http://"+s.Addr(), "http://127.0.0.1:0"
	args := []string{"--data-dir", s.Data(),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer,
		"--logger", "zap", "--log-level", "warn"}
	if s.fast {
		args = append(args, "--unsafe-no-fsync")
	}
	return exec.Command(server, append(args, s.args...)...), nil
}

func etcdAnswers(ctx context.Context, s *Server) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr()+"/health", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("health: %s", resp.Status)
	}
	return nil
}

func makeData(s *Server) error { return os.Mkdir(s.Data(), 0o700) }

// First returns open with a record of the first store that it opens.
func First[S, I any](open func(namespace string) (S, I, error), first *S) func(namespace string) (S, I, error) {
	var once sync.Once
	return func(namespace string) (S, I, error) {
		s, info, err := open(namespace)
		once.Do(func() { *first = s })
		return s, info, err
	}
}

// ListsAlone checks that an assigner lists its worker IDs without the store of its leases, which it
// closes.
func ListsAlone(t testing.TB, a spi.WorkerIDAssigner, leases io.Closer) {
	t.Helper()
	lease, err := a.AcquireWorkerID(t.Context(), 1023)
	if err != nil {
		t.Fatal(err)
	}
	_ = leases.Close()
	list, err := a.(spi.WorkerIDLister).ListWorkerIDs(t.Context())
	if err != nil || len(list.List) != 1 || list.List[0].ID != lease.WorkerID() || list.List[0].State != "held" {
		t.Errorf("have: %+v, %v\nwant: worker ID %d, held", list, err, lease.WorkerID())
	}
	_ = a.(io.Closer).Close()
}

// Outages tests how a client bears it that its server is paused, killed and started
// again. The function makes a client that gives up a call after a timeout, with
// [spi.ErrStore], and returns one call of the server.
func Outages(t testing.TB, s *Server, client func(timeout string) (call func(context.Context) error)) {
	t.Helper()
	quick, patient := client("1s"), client("1h")
	want := func(when string, err, is error) {
		t.Helper()
		if !errors.Is(err, is) || is == spi.ErrStore && errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s\nhave: %v\nwant: %v", when, err, is)
		}
	}
	want("running", patient(t.Context()), nil)

	s.Pause()
	const while = 50 * time.Millisecond // so that the call waits for the server by then
	canceled, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(while, cancel).Stop()
	want("paused, and the caller gives up", patient(canceled), context.Canceled)
	short, cancel := context.WithTimeout(t.Context(), while)
	defer cancel()
	want("paused, and the caller's time is up", patient(short), context.DeadlineExceeded)
	want("paused", quick(t.Context()), spi.ErrStore)
	s.Resume()

	s.Kill()
	err := quick(t.Context())
	if want("killed", err, spi.ErrStore); err != nil && !strings.Contains(err.Error(), s.Addr()) {
		t.Errorf("killed\nhave: %v\nwant: the server's address", err)
	}
	s.Start()
	for err = quick(t.Context()); errors.Is(err, spi.ErrStore); { // until the client has found it
		err = quick(t.Context())
	}
	want("back", err, nil)
}
