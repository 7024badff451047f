package testserver

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// product is a SQL server that tests run on: a kind, and a series of versions. The tests start
// it, unless it has a DSN.
type product struct {
	name    string // in subtests
	kind    Kind
	series  string // what its version begins with
	dsn     string // if SHARDKEY_TEST_DSN names it
	program string
	options []string
	scripts []string // files with the statements that make a data directory, unless the program can do that
	before  string   // statements before them
}

// Kind is what SQL servers differ by: a syntax, functions, bugs.
type Kind string

// The kinds of SQL servers that tests run on.
const (
	KindMySQL   Kind = "MySQL"
	KindMariaDB Kind = "MariaDB"
)

// products are the SQL servers that shardkey's tests start, in Each's order.
var products = []*product{
	{name: "mysql", kind: KindMySQL, series: "9.7", program: "mysqld",
		options: []string{"--mysqlx=0", "--innodb-redo-log-capacity=64M"}},
	{name: "mariadb", kind: KindMariaDB, series: "10.11", program: "mariadbd", scripts: mariaDBScripts,
		before: "SET @auth_root_socket=NULL;\n", options: []string{"--innodb-log-file-size=32M"}},
	{name: "mariadb-11.8", kind: KindMariaDB, series: "11.8", program: "mariadbd", scripts: mariaDBScripts,
		before: "SET @auth_root_socket=NULL;\n", options: []string{"--innodb-log-file-size=32M"}},
}

// mariaDBScripts are those of MariaDB's own script, which knows only installed servers.
var mariaDBScripts = []string{"m*_system_tables.sql", "m*_performance_tables.sql", "m*_system_tables_data.sql",
	"maria_add_gis_sp_bootstrap.sql", "m*_sys_schema.sql"}

// Recipe is how a server of a kind is started, of the first series of [Each].
func (k Kind) Recipe() Recipe {
	i := slices.IndexFunc(products, func(p *product) bool { return p.kind == k })
	return products[i].recipe()
}

// StartMySQL starts a MySQL server for one test. The arguments are added to
// mysqld's. Its root has no password; TLS works, with a certificate that nobody
// knows.
func StartMySQL(t testing.TB, args ...string) *Server {
	t.Helper()
	return forTest(t, KindMySQL.Recipe(), args)
}

// StartMariaDB starts a MariaDB server for one test, as StartMySQL does.
func StartMariaDB(t testing.TB, args ...string) *Server {
	t.Helper()
	return forTest(t, KindMariaDB.Recipe(), args)
}

// StartSQL starts a server of the kind that [Each] runs the test on, as
// StartMySQL does.
func StartSQL(t testing.TB, args ...string) *Server {
	t.Helper()
	return forTest(t, productOf(t).recipe(), args)
}

func (p *product) recipe() Recipe {
	return Recipe{Name: p.name, Prepare: p.prepare, Command: p.command, env: envDSN,
		Answers: func(ctx context.Context, s *Server) error { return s.AnswersSQL(ctx, "") }}
}

func (p *product) prepare(s *Server) error {
	if _, err := Certify(s.dir); err != nil {
		return err
	}
	template, err := p.template()
	if err != nil {
		return err
	}
	if err := os.CopyFS(s.Data(), os.DirFS(template)); err != nil {
		return err
	}
	_ = os.Remove(filepath.Join(s.Data(), "auto.cnf")) // a server's own name
	return nil
}

// template returns a fresh data directory that every server of the product copies. It takes
// seconds to make and is kept in the cache, until the server's program changes.
func (p *product) template() (dir string, err error) {
	in, err := p.installed()
	if err != nil {
		return "", err
	}
	program, err := os.Stat(in.program())
	if err != nil {
		return "", err
	}
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	prefix := filepath.Join(cache, "data-"+p.name+"@")
	dir = prefix + strconv.FormatInt(program.ModTime().Unix(), 36)
	unlock, err := Lock(filepath.Join(cache, "data-"+p.name+".lock")) // one makes it
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	old, _ := filepath.Glob(prefix + "*")
	for _, name := range old {
		_ = os.RemoveAll(name)
	}
	initialize := p.initialize
	if p.scripts != nil {
		initialize = p.bootstrap
	}
	if err := initialize(in, dir+".new"); err != nil {
		return "", err
	}
	return dir, os.Rename(dir+".new", dir)
}

func (p *product) command(s *Server) (*exec.Cmd, error) {
	installed, err := p.installed()
	if err != nil {
		return nil, err
	}
	in := func(name string) string { return filepath.Join(s.dir, name) }
	args := append(installed.args(p),
		"--datadir="+s.Data(), "--socket="+in("sock"), "--pid-file="+in("pid"), "--tmpdir="+s.dir,
		"--bind-address=127.0.0.1", "--port="+strconv.Itoa(s.port), "--skip-name-resolve",
		"--ssl-cert="+in("cert.pem"), "--ssl-key="+in("key.pem"),
		"--character-set-server=utf8mb4", "--max-connections=500", "--max-allowed-packet=64M",
		"--local-infile=1", "--secure-file-priv=", "--performance-schema=0", "--innodb-buffer-pool-size=128M",
	)
	if s.fast {
		args = append(args, "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--skip-log-bin",
			"--innodb-flush-method=nosync")
	}
	return installed.cmd(append(args, s.args...)...), nil
}

// initialize makes a data directory by mysqld itself, whose root is one of localhost by name:
// names are not resolved.
func (p *product) initialize(in *installation, data string) error {
	init := data + "-init.sql"
	if err := os.WriteFile(init, []byte("RENAME USER root@localhost TO root@'%';\n"), 0o600); err != nil {
		return err
	}
	defer os.Remove(init)
	return in.run("", append(in.args(p), "--datadir="+data, "--initialize-insecure", "--init-file="+init)...)
}

// bootstrap makes a data directory out of the files with statements that come with a server, after
// the statements before them.
func (p *product) bootstrap(in *installation, data string) error {
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	var script strings.Builder
	script.WriteString("CREATE DATABASE mysql;\nUSE mysql;\n" + p.before)
	for _, pattern := range p.scripts {
		files, _ := filepath.Glob(filepath.Join(in.share(), pattern))
		if len(files) != 1 {
			return fmt.Errorf("%d files %s in %s", len(files), pattern, in.share())
		}
		text, err := os.ReadFile(files[0])
		if err != nil {
			return err
		}
		script.Write(text)
	}
	return in.run(script.String(), append(in.args(p), "--datadir="+data, "--tmpdir="+data, "--bootstrap")...)
}

// AnswersSQL is nil if a database of the server answers a query.
func (s *Server) AnswersSQL(ctx context.Context, database string) error {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.DBName = "root", "tcp", s.Addr(), database
	cfg.Logger = &mysql.NopLogger{} // refused connections are expected here
	return with(cfg, func(db *sql.DB) error { _, err := db.ExecContext(ctx, "SELECT 1"); return err })
}

func with(cfg *mysql.Config, use func(*sql.DB) error) error {
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	return use(db)
}

// MissingError reports that a server's program is not installed.
type MissingError struct {
	Program, Remedy string
	Env             string // names a server in its place; may be empty
}

func (e *MissingError) Error() string {
	text := e.Program + " is not there: " + e.Remedy
	if e.Env != "" {
		text += ", or set " + e.Env + " to one that tests may use"
	}
	return text
}

// Program finds a program on the PATH or where Debian keeps servers, which is
// not on every user's PATH.
func Program(name, debian, env string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin"} {
		if path := filepath.Join(dir, name); Executable(path) {
			return path, nil
		}
	}
	return "", &MissingError{Program: name, Remedy: "apt-get install " + debian, Env: env}
}

// Executable reports whether a file is a program.
func Executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&0o111 != 0
}

// installation is a SQL server's program and files: those that .ci/fetch-server
// has put into the cache, or the system's own.
type installation struct {
	root    string   // its directory in the cache, "" for the system's own
	command []string // what starts it
}

// CacheDir makes and returns the directory with what outlasts a run of tests.
func CacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "shardkey", "servers")
	return dir, os.MkdirAll(dir, 0o755)
}

// installed finds the product: in the cache first, then on the system where
// that has the same series.
func (p *product) installed() (*installation, error) {
	if in := cached(p); in != nil {
		return in, nil
	}
	path, err := Program(p.program, "", envDSN)
	if err == nil {
		version, err := exec.Command(path, "--no-defaults", "--version").Output()
		if err == nil && strings.Contains(string(version), "Ver "+p.series+".") {
			return &installation{command: []string{path}}, nil
		}
	}
	return nil, &MissingError{Program: string(p.kind) + " " + p.series, Remedy: "make servers fetches it (Debian)", Env: envDSN}
}

// cached returns the product out of the cache, or nil. Its libraries are not
// the system's, so that the loader among them starts it.
func cached(p *product) *installation {
	cache, err := CacheDir()
	if err != nil {
		return nil
	}
	root := filepath.Join(cache, strings.ToLower(string(p.kind))+"-"+p.series)
	path := filepath.Join(root, "usr/sbin", p.program)
	var loaders []string
	for _, dir := range []string{root + "/usr/lib/*-linux-gnu*", root + "/lib/*-linux-gnu*"} { // Debian 13, 12
		found, _ := filepath.Glob(dir + "/ld-linux*.so.*")
		loaders = append(loaders, found...)
	}
	if len(loaders) == 0 || !Executable(path) {
		return nil
	}
	triplet := filepath.Base(filepath.Dir(loaders[0]))
	var dirs []string
	for _, dir := range []string{"lib", "usr/lib"} {
		dirs = append(dirs, filepath.Join(root, dir, triplet), filepath.Join(root, dir, triplet, "mysql"))
	}
	return &installation{root: root, command: []string{loaders[0], "--library-path", strings.Join(dirs, ":"), path}}
}

func (in *installation) program() string { return in.command[len(in.command)-1] }

// share is where the server's messages and system tables are.
func (in *installation) share() string {
	if dir := filepath.Join(in.root, "/usr/share/mariadb"); Executable(dir) {
		return dir
	}
	return filepath.Join(in.root, "/usr/share/mysql")
}

// args are the options of a product, after those that say where the installation is.
func (in *installation) args(p *product) []string {
	args := []string{"--no-defaults"}
	if os.Getuid() == 0 {
		args = append(args, "--user=root") // which it wants to hear before it runs as root
	}
	if in.root != "" {
		args = append(args, "--basedir="+filepath.Join(in.root, "usr"), "--lc-messages-dir="+in.share(),
			"--plugin-dir="+filepath.Join(in.root, "usr/lib/mysql/plugin"))
	}
	return append(args, p.options...)
}

func (in *installation) cmd(args ...string) *exec.Cmd {
	return exec.Command(in.command[0], append(in.command[1:len(in.command):len(in.command)], args...)...)
}

// run runs the server until it ends, with what it reads.
func (in *installation) run(input string, args ...string) error {
	cmd := in.cmd(args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(in.program()), err, out)
	}
	return nil
}
