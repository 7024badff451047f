package testserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/test/must"
)

func TestSQLServer_keepsDataOverKillAndStop(t *testing.T) {
	if EachAndOldest(t, TestSQLServer_keepsDataOverKillAndStop) {
		return
	}
	s := StartSQL(t)
	db := open(t, s.DSN())
	mustExec(t, db, "CREATE DATABASE app")
	mustExec(t, db, "CREATE TABLE app.t (id BIGINT PRIMARY KEY)")
	mustExec(t, db, "INSERT INTO app.t VALUES (7)")
	addr := s.Addr()
	for name, end := range map[string]func(){"Kill": s.Kill, "Stop": s.Stop} {
		end()
		if err := db.Ping(); err == nil {
			t.Errorf("after %s: Ping gave no error", name)
		}
		s.Start()
		var id int
		if err := db.QueryRow("SELECT id FROM app.t").Scan(&id); err != nil || id != 7 {
			t.Errorf("after %s and Start\nhave: %d, %v\nwant: 7", name, id, err)
		}
	}
	must.Equal(t, s.Addr(), addr, "address moved")
}

func TestSQLServer_speaksTLS(t *testing.T) {
	if Each(t, TestSQLServer_speaksTLS) {
		return
	}
	s := StartSQL(t)
	db := open(t, s.DSN()+"?tls=skip-verify")
	var name, cipher string
	if err := db.QueryRow("SHOW STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher); err != nil || cipher == "" {
		t.Errorf("have: cipher %q, %v\nwant: one", cipher, err)
	}
}

func TestPausedServerAnswersAfterResume(t *testing.T) {
	s := StartRedis(t)
	s.Pause()
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() { answered <- redisAnswers(ctx, s) }()
	s.Resume()
	if err := <-answered; err != nil {
		t.Errorf("after Resume: %v", err)
	}
	cancel()
	s.Pause()
	s.Kill() // ends a paused server as well
	if err := redisAnswers(t.Context(), s); err == nil {
		t.Error("after Kill: no error")
	}
}

func TestPausedServerIsSilent(t *testing.T) {
	s := StartEtcd(t) // many threads
	for range 20 {
		s.Pause()
		if !stopped(s.proc.cmd.Process.Pid) {
			t.Fatal("a thread runs")
		}
		s.Resume()
		must.Do(t, etcdAnswers(t.Context(), s))
	}
	s.Pause() // and is ended anyway
}

func TestRedisKeepsDataOverKill(t *testing.T) {
	s := StartRedis(t)
	if got := redisSay(t, s, "SET k 7\r\n"); got != "+OK\r\n" {
		t.Fatalf("SET: %q", got)
	}
	s.Kill()
	s.Start()
	must.Equal(t, redisSay(t, s, "GET k\r\n"), "$1\r\n7\r\n", "after Kill and Start")
}

func TestRedisSpeaksTLS(t *testing.T) {
	c := must.Get(Certify(t.TempDir()))(t)
	s := StartRedis(t, "--port", "0", "--tls-port", "{port}", "--tls-auth-clients", "no",
		"--tls-cert-file", c.CertFile, "--tls-key-file", c.KeyFile, "--tls-ca-cert-file", c.CertFile)
	must.Do(t, redisAnswers(t.Context(), s))
}

func TestZooKeeperComesBack(t *testing.T) {
	s := StartZooKeeper(t, "maxSessionTimeout=61000")
	s.Kill()
	s.Start()
	conn := must.Get(dial(t.Context(), s.Addr()))(t)
	defer conn.Close()
	if got, err := ask(conn, "conf"); err != nil || !strings.Contains(got, s.Data()) {
		t.Errorf("have: %q, %v\nwant: it with %q", got, err, s.Data())
	}
}

func TestEtcdComesBack(t *testing.T) {
	s := StartEtcd(t)
	s.Stop()
	if err := etcdAnswers(t.Context(), s); err == nil {
		t.Error("after Stop: no error")
	}
	s.Start()
	resp := must.Get(http.Get("http://" + s.Addr() + "/version"))(t)
	resp.Body.Close()
}

func TestNothingIsLeft(t *testing.T) {
	var s *Server
	t.Run("user", func(t *testing.T) { s = StartRedis(t) })
	if s == nil {
		t.SkipNow() // as the user was
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", s.dir, err)
	}
	if err := redisAnswers(t.Context(), s); err == nil {
		t.Error("the server still answers")
	}
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db := must.Get(sql.Open("mysql", dsn))(t)
	t.Cleanup(func() { db.Close() })
	return db
}

func mustExec(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.Exec(query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func redisSay(t *testing.T, s *Server, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn := must.Get(dial(ctx, s.Addr()))(t)
	defer conn.Close()
	answer, err := ask(conn, command)
	if err != nil {
		t.Fatal(fmt.Errorf("%q: %w", command, err))
	}
	return answer
}

// supervise starts a supervisor that this test's requests go to.
func supervise(t *testing.T, replaced ...*service) *Supervisor {
	t.Helper()
	s, err := Supervise("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if replaced != nil {
		s.services = replaced
	}
	t.Setenv(envSupervisor, s.listener.Addr().String())
	return s
}

func TestSupervisor_startsAServerOnce(t *testing.T) {
	StartRedis(t) // skips if there is none
	s := supervise(t)
	var addrs [8]string
	var all sync.WaitGroup
	for i := range addrs {
		all.Go(func() {
			var err error
			if addrs[i], err = request("redis"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if other := slices.Compact(addrs[:]); len(other) != 1 {
		t.Errorf("have: %q\nwant: one address", other)
	}
	for _, service := range s.services {
		if name := service.recipe.Name; (service.server != nil) != (name == "redis") {
			t.Errorf("%s is started: %v", name, service.server != nil)
		}
	}
	s.Close()
	awaitSilence(t, addrs[0])
	if _, err := request("redis"); !errors.Is(err, errNoSupervisor) {
		t.Errorf("after Close\nhave: %v\nwant: %v", err, errNoSupervisor)
	}
}

func TestSupervisor_namesServers(t *testing.T) {
	StartRedis(t) // skips if there is none
	s := supervise(t)
	env, err := s.Env("redis")
	if i := slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, envRedis+"=127.0.0.1:") }); err != nil || i < 0 {
		t.Errorf("have: %q, %v\nwant: %s", env, err, envRedis)
	}
	if env, err := s.Env("oracle"); err == nil {
		t.Errorf("unknown server\nhave: %q\nwant: an error", env)
	}
}

func TestSupervisor_reportsErrors(t *testing.T) {
	failing := Recipe{Name: "redis", Prepare: makeData, Command: func(s *Server) (*exec.Cmd, error) {
		return exec.Command("sh", "-c", "echo bad option; exit 3"), nil
	}, Answers: func(context.Context, *Server) error { return errors.New("silent") }}
	missing := Recipe{Name: "etcd", Prepare: func(*Server) error {
		_, err := Program("no-such-server", "some-package", envEtcd)
		return err
	}}
	supervise(t, &service{recipe: failing}, &service{recipe: missing})
	for _, test := range []struct {
		server, want string
		missing      bool
	}{
		{"redis", "bad option", false},
		{"etcd", "apt-get install some-package", true},
		{"oracle", "oracle", false},
	} {
		_, err := request(test.server)
		if err == nil || !strings.Contains(err.Error(), test.want) || NotInstalled(err) != test.missing {
			t.Errorf("%s\nhave: %v\nwant: %q, not installed: %v", test.server, err, test.want, test.missing)
		}
	}
}
