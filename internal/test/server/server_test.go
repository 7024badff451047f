package testserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/test/must"
)

func TestSQLServer_keepsDataOverKillAndStop(t *testing.T) {
	if Each(t, TestSQLServer_keepsDataOverKillAndStop) {
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
		must.Fail(t, db.Ping(), "after", name, "Ping gave")
		s.Start()
		var id int
		if err := db.QueryRow("SELECT id FROM app.t").Scan(&id); err != nil || id != 7 {
			t.Errorf("after %s and Start\nhave: %d, %v\nwant: 7", name, id, err)
		}
	}
	must.Equal(t, s.Addr(), addr, "address moved")
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
	must.Fail(t, redisAnswers(t.Context(), s), "after Kill")
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

func TestNothingIsLeft(t *testing.T) {
	var s *Server
	t.Run("user", func(t *testing.T) { s = StartRedis(t) })
	if s == nil {
		t.SkipNow() // as the user was
	}
	must.Is(t, must.Err(os.Stat(s.dir)), os.ErrNotExist, s.dir)
	must.Fail(t, redisAnswers(t.Context(), s), "the server still answers")
}

// A server's port stays its own while it is stopped, whatever other tests start.
func TestFreePort_isReserved(t *testing.T) {
	port := must.Get(FreePort())(t)
	_, err := net.ListenPacket("udp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	must.Fail(t, err, "a second reservation of the port")
	l := must.Get(net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))))(t)
	must.Do(t, l.Close())
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db := must.Get(sql.Open("mysql", dsn))(t)
	t.Cleanup(func() { db.Close() })
	return db
}

func mustExec(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	must.Get(db.Exec(query))(t, query)
}

func redisSay(t *testing.T, s *Server, command string) string {
	t.Helper()
	conn := must.Get(dial(t.Context(), s.Addr()))(t)
	defer conn.Close()
	answer, err := say(conn, command)
	if err != nil {
		t.Fatal(fmt.Errorf("%q: %w", command, err))
	}
	return answer
}

// supervise starts a supervisor that this test's requests go to.
func supervise(t *testing.T, replaced ...*service) *Supervisor {
	t.Helper()
	s := must.Get(Supervise(""))(t)
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
		if name := service.Name; (service.server != nil) != (name == "redis") {
			t.Errorf("%s is started: %v", name, service.server != nil)
		}
	}
	s.Close()
	awaitSilence(t, addrs[0])
	must.Is(t, must.Err(request("redis")), errNoSupervisor, "after Close")
}

func TestSupervisor_reportsErrors(t *testing.T) {
	failing := Recipe{Name: "redis", Prepare: makeData, Command: func(s *Server) (*exec.Cmd, error) {
		return exec.Command("sh", "-c", "echo bad option; exit 3"), nil
	}, Answers: func(context.Context, *Server) error { return errors.New("silent") }}
	missing := Recipe{Name: "etcd", Prepare: func(*Server) error {
		_, err := Program("no-such-server", "some-package", envEtcd)
		return err
	}}
	supervise(t, &service{Recipe: failing}, &service{Recipe: missing})
	for _, test := range []struct {
		server, want string
		missing      bool
	}{
		{"redis", "bad option", false},
		{"etcd", "apt-get install some-package", true},
		{"oracle", "oracle", false},
	} {
		_, err := request(test.server)
		if _, missing := errors.AsType[*MissingError](err); err == nil || !strings.Contains(err.Error(), test.want) || missing != test.missing {
			t.Errorf("%s\nhave: %v\nwant: %q, not installed: %v", test.server, err, test.want, test.missing)
		}
	}
}

func TestDatabase_isFreshAndDropped(t *testing.T) {
	if Each(t, TestDatabase_isFreshAndDropped) {
		return
	}
	var dsn string
	t.Run("user", func(t *testing.T) {
		dsn = Database(t)
		if other := Database(t); other == dsn {
			t.Errorf("two databases have one name: %s", dsn)
		}
		mustExec(t, open(t, dsn), "CREATE TABLE t (id INT)")
	})
	must.FailWith(t, open(t, dsn).Ping(), "1049", "after the test")
}

// recorder notes how a test would have ended.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Skip(args ...any) {
	r.skipped = fmt.Sprint(args...)
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) {
	r.failed = fmt.Sprint(args...)
	runtime.Goexit()
}

// record runs f as a test of its own.
func record(f func(testing.TB)) *recorder {
	r := &recorder{}
	var wg sync.WaitGroup
	wg.Go(func() { f(r) })
	wg.Wait()
	return r
}

func TestMissingServerSkipsOrFails(t *testing.T) {
	MayStart(t)
	t.Setenv(envRedis, "")
	t.Setenv(envSupervisor, filepath.Join(t.TempDir(), "none"))
	t.Setenv(envRequire, "")
	r := record(func(t testing.TB) { Redis(t) })
	if !strings.Contains(r.skipped, envRedis) || !strings.Contains(r.skipped, "make servers-up") || r.failed != "" {
		t.Errorf("have: skipped %q, failed %q\nwant: skipped with the variable and the command", r.skipped, r.failed)
	}
	for _, require := range []string{"1", "mysql,redis"} {
		t.Setenv(envRequire, require)
		r = record(func(t testing.TB) { Redis(t) })
		if r.skipped != "" || !strings.Contains(r.failed, envRedis) {
			t.Errorf("%s=%s\nhave: skipped %q, failed %q\nwant: failed", envRequire, require, r.skipped, r.failed)
		}
	}
	t.Setenv(envRequire, "mysql,mariadb")
	for name, use := range map[string]func(testing.TB){
		"shared": func(t testing.TB) { Redis(t) }, "private": func(t testing.TB) { StartRedis(t) },
		"program": func(t testing.TB) { Missing(t, "promtool", errors.New("make ci")) },
	} {
		if r = record(use); !strings.Contains(r.skipped, "make ci") || r.failed != "" {
			t.Errorf("%s\nhave: skipped %q, failed %q\nwant: skipped, with make ci", name, r.skipped, r.failed)
		}
	}
}

func TestPrivateServerIsSkippedWithAServerElsewhere(t *testing.T) {
	MayStart(t)
	none := Recipe{Name: "none", Prepare: func(*Server) error {
		_, err := Program("no-such-server", "some-package", envRedis)
		return err
	}}
	for _, test := range []struct{ addr, require, skipped, failed string }{
		{"elsewhere:6379", "1", "not there", ""},
		{"", "1", "", "not there"},
		{"", "", "not there", ""},
	} {
		t.Setenv(envRedis, test.addr)
		t.Setenv(envRequire, test.require)
		r := record(func(t testing.TB) { forTest(t, none, nil) })
		if !strings.Contains(r.skipped, test.skipped) || !strings.Contains(r.failed, test.failed) ||
			(r.skipped == "") != (test.skipped == "") {
			t.Errorf("%+v\nhave: skipped %q, failed %q", test, r.skipped, r.failed)
		}
	}
}

// TestServerDiesWithItsOwner starts this test binary again, which starts a
// server and dies of SIGKILL.
func TestServerDiesWithItsOwner(t *testing.T) {
	if os.Getenv("TESTSERVER_OWNER") == "1" {
		s := StartRedis(t)
		fmt.Println("server", s.Addr(), s.dir)
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		select {}
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a process with its parent")
	}
	StartRedis(t) // skips when there is none
	owner := exec.Command(os.Args[0], "-test.run=^TestServerDiesWithItsOwner$", "-test.v")
	owner.Env = append(os.Environ(), "TESTSERVER_OWNER=1")
	out, _ := owner.CombinedOutput()
	_, line, found := strings.Cut(string(out), "server ")
	fields := strings.Fields(line)
	if !found || len(fields) < 2 {
		t.Fatalf("the owner said %q", out)
	}
	awaitSilence(t, fields[0])
	removeAbandoned()
	must.Is(t, must.Err(os.Stat(fields[1])), os.ErrNotExist, fields[1], "is left")
}

// awaitSilence polls until nobody listens: the kernel's signal comes at once,
// the end soon after.
func awaitSilence(t *testing.T, addr string) {
	t.Helper()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	deadline := time.After(stopTimeout)
	for {
		conn, err := dial(t.Context(), addr)
		if err != nil {
			return
		}
		conn.Close()
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s still answers", addr)
		}
	}
}

func TestNamed_servers(t *testing.T) {
	if Each(t, TestNamed_servers) {
		return
	}
	dsn := Database(t)
	all, err := parseNamed(dsn + ", " + SQL(t))
	if err != nil || len(all) != 2 {
		t.Fatalf("have: %v, %v\nwant: two servers", all, err)
	}
	want := productOf(t)
	for _, p := range all {
		cfg := must.Get(mysql.ParseDSN(p.dsn))(t)
		if p.kind != want.kind || p.series != want.series || p.name != want.name || cfg.DBName != "" {
			t.Errorf("have: %+v\nwant: %s %s, no database", p, want.kind, want.series)
		}
	}
}

func TestNamed_errors(t *testing.T) {
	for list, want := range map[string]string{
		"root:geheim@tcp(127.0.0.1:1)/": "SHARDKEY_TEST_DSN: DSN 1, 127.0.0.1:1: ",
		"root:geheim@tcp":               "SHARDKEY_TEST_DSN: DSN 1: ",
	} {
		if _, err := parseNamed(list); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("have: %v\nwant: %s…, without the password", err, want)
		}
	}
	if all, err := parseNamed(""); all != nil || err != nil {
		t.Errorf("have: %v, %v\nwant: none", all, err)
	}
}

func TestMayStart_skipsWithNamedServers(t *testing.T) {
	t.Setenv(envDSN, "root@tcp(127.0.0.1:1)/")
	if r := record(func(t testing.TB) { MayStart(t) }); !testing.Short() && !strings.Contains(r.skipped, envDSN) {
		t.Errorf("have: skipped %q\nwant: skipped because of %s", r.skipped, envDSN)
	}
}

func TestServers_have(t *testing.T) {
	mysql80, mysql97, mariaDB := &product{kind: KindMySQL, series: "8.0"}, &product{kind: KindMySQL, series: "9.7"}, &product{kind: KindMariaDB, series: "10.11"}
	for servers, want := range map[Servers][3]bool{
		MySQL: {true, true, false}, MariaDB: {false, false, true}, "MySQL 8.4": {false, true, false},
		"MySQL 8.4, MariaDB": {false, true, true}, "MySQL 10.0": {}, "MariaDB 10.9": {false, false, true}, "MariaDB 10.12": {},
	} {
		must.Equal(t, [3]bool{servers.have(mysql80), servers.have(mysql97), servers.have(mariaDB)}, want, servers)
	}
}
