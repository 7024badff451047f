package engines

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// Vitess is vtgate with its shards, on one SQL server.
type Vitess struct {
	Cluster
	// SQL has a database for each shard. See [Vitess.ShardDSN].
	SQL *testserver.Server
	// Gate is vtcombo: vtgate and the vttablets of all shards in one process. Its topology is in
	// memory, and is created again after a restart.
	Gate      *testserver.Server
	keyspaces []Keyspace
	flags     []string // more flags of vtcombo
}

// Keyspace is a Vitess database.
type Keyspace struct {
	Name    string
	Shards  []string // ranges of the shards, such as "-80" and "80-", or "0" for a single one
	VSchema string   // as JSON
}

// StartVitess starts Vitess for one test, on a new server of a kind. It first builds vtcombo if
// that hasn't been done, which takes minutes.
func StartVitess(t testing.TB, over testserver.Kind, keyspaces ...Keyspace) *Vitess {
	t.Helper()
	v := &Vitess{keyspaces: keyspaces}
	v.openForTest(t, "vitess", func() error { return v.start(over) })
	return v
}

func (v *Vitess) start(over testserver.Kind) error {
	program, err := buildVTCombo()
	if err != nil {
		return err
	}
	args := []string{"--log-bin=binlog", "--server-id=1", "--max-connections=600"}
	if over == testserver.KindMySQL {
		args = append(args, "--gtid-mode=ON", "--enforce-gtid-consistency=ON")
	} else {
		// The server doesn't know the collation of Vitess' connections, and would use its
		// default.
		args = append(args, "--character-set-server=utf8mb4")
	}
	if v.SQL, err = v.startOne(over.Recipe(), args...); err != nil {
		return err
	}
	if err := os.Chmod(v.SQL.Dir(), 0o711); err != nil { // its socket is for another user
		return err
	}
	var create []string
	for _, k := range v.keyspaces {
		for _, shard := range k.Shards {
			create = append(create, fmt.Sprintf("CREATE DATABASE `%s`", k.database(shard)))
		}
	}
	if err := Run(v.SQL.DSN(), create...); err != nil {
		return err
	}
	v.Gate, err = v.startOne(testserver.Recipe{
		Name:    "vtcombo",
		Prepare: func(s *testserver.Server) error { return v.prepare(s, program) },
		Command: v.command,
		Answers: v.answers,
	})
	return err
}

// Restart restarts Vitess with more flags of vtcombo.
func (v *Vitess) Restart(flags ...string) {
	v.Gate.Stop()
	v.flags = flags
	v.Gate.Start()
}

// DSN returns the DSN of a keyspace through vtgate.
func (v *Vitess) DSN(keyspace string) string { return v.Gate.DSN() + keyspace }

// ShardDSN returns the DSN of a shard's database on the SQL server.
func (v *Vitess) ShardDSN(keyspace, shard string) string {
	return v.SQL.DSN() + Keyspace{Name: keyspace}.database(shard)
}

func (k Keyspace) database(shard string) string { return "vt_" + k.Name + "_" + shard }

// nobody is the user of vtcombo, which doesn't run as root.
const nobody = 65534

func (v *Vitess) prepare(s *testserver.Server, program string) error {
	if err := os.Mkdir(s.Data(), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(s.Data(), "tmp"), 0o777); err != nil {
		return err
	}
	for _, k := range v.keyspaces {
		dir := filepath.Join(s.Data(), "schema", k.Name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "vschema.json"), []byte(k.VSchema), 0o644); err != nil {
			return err
		}
	}
	// The cache is in a home directory that the user may not have access to.
	out, err := exec.Command("install", "-m", "755", program, filepath.Join(s.Dir(), "vtcombo")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("install vtcombo: %w\n%s", err, out)
	}
	if os.Getuid() != 0 {
		return nil
	}
	if err := os.Chmod(s.Dir(), 0o711); err != nil {
		return err
	}
	return filepath.WalkDir(s.Data(), func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			err = os.Chown(path, nobody, nobody)
		}
		return err
	})
}

func (v *Vitess) command(s *testserver.Server) (*exec.Cmd, error) {
	socket := filepath.Join(v.SQL.Dir(), "sock")
	args := []string{
		"--port=0", "--bind-address=127.0.0.1", "--grpc-port=0",
		"--mysql-server-port=" + strconv.Itoa(s.Port()), "--mysql-server-bind-address=127.0.0.1", "--mysql-auth-server-impl=none",
		"--db-socket=" + socket, "--db-charset=utf8mb4", "--mycnf-server-id=1", "--mycnf-socket-file=" + socket,
		"--schema-dir=" + filepath.Join(s.Data(), "schema"), "--proto-topo=" + v.topology(), "--dbddl-plugin=vttest",
		"--enable-system-settings=true", "--tablet-refresh-interval=10s", "--transaction-mode=MULTI",
		"--queryserver-config-pool-size=16", "--queryserver-config-transaction-cap=64", "--queryserver-config-stream-pool-size=8",
		"--log_dir=" + filepath.Join(s.Data(), "tmp"),
	}
	for _, user := range []string{"app", "dba", "appdebug", "allprivs", "repl", "filtered"} {
		args = append(args, "--db-"+user+"-user=root")
	}
	cmd := exec.Command(filepath.Join(s.Dir(), "vtcombo"), append(args, v.flags...)...)
	cmd.Env = append(os.Environ(), "VTDATAROOT="+s.Data(), "TMPDIR="+filepath.Join(s.Data(), "tmp"))
	if os.Getuid() == 0 {
		cmd.SysProcAttr = asUser(nobody)
	}
	return cmd, nil
}

// topology returns the topology in the text format of protocol buffers.
func (v *Vitess) topology() string {
	var b strings.Builder
	for _, k := range v.keyspaces {
		fmt.Fprintf(&b, "keyspaces:{name:%q", k.Name)
		for _, shard := range k.Shards {
			fmt.Fprintf(&b, " shards:{name:%q}", shard)
		}
		b.WriteString("} ")
	}
	return b.String() + `cells:"test"`
}

func (v *Vitess) answers(ctx context.Context, s *testserver.Server) error {
	for _, k := range v.keyspaces {
		for _, shard := range k.Shards {
			if err := s.AnswersSQL(ctx, k.Name+":"+shard); err != nil {
				return err
			}
		}
	}
	return nil
}

// vitessVersion is the version of Vitess' Go module, required by the go.mod in the directory
// vtcombo. v0.23.2 is release 23.0.2.
const vitessVersion = "v0.23.2"

// envVTCombo is the environment variable with the path of another vtcombo.
const envVTCombo = "SHARDKEY_TEST_VTCOMBO"

// buildVTCombo returns the path of Vitess' vtcombo. If necessary it builds vtcombo from Vitess'
// Go module, which takes two to three minutes on two cores.
func buildVTCombo() (path string, err error) {
	if path := os.Getenv(envVTCombo); path != "" {
		return path, nil
	}
	cache, err := testserver.CacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "vitess-"+vitessVersion)
	path = filepath.Join(dir, "vtcombo")
	if testserver.Executable(path) {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	// Tests of several packages may run this in parallel. One of them builds.
	unlock, err := testserver.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if testserver.Executable(path) {
		return path, nil
	}
	if err := compileVTCombo(path + ".new"); err != nil {
		return "", &testserver.MissingError{Program: "vtcombo of Vitess " + vitessVersion, Env: envVTCombo,
			Remedy: fmt.Sprintf("it is built with Go out of its module, which failed (%v)", err)}
	}
	return path, os.Rename(path+".new", path)
}

// A file of Vitess requires a Go experiment that Go 1.26 no longer has, so a build tag replaces
// it. Dependencies of Vitess use internals of package runtime.
var vtcomboFlags = []string{"-tags=goexperiment.swissmap", "-ldflags=-s -w -checklinkname=0"}

func compileVTCombo(path string) error {
	source, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/shardkey/shardkey/internal/test/engines").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	args := append([]string{"build", "-o", path}, vtcomboFlags...)
	cmd := exec.Command("go", append(args, "vitess.io/vitess/go/cmd/vtcombo")...)
	cmd.Dir = filepath.Join(strings.TrimSpace(string(source)), "vtcombo")
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	fmt.Fprintf(os.Stderr, "building vtcombo of Vitess %s, which takes two to three minutes on two cores, once\n", vitessVersion)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, downloading.ReplaceAll(output, nil))
	}
	return nil
}

var downloading = regexp.MustCompile(`(?m)^go: downloading .*\n`)
