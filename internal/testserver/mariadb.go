package testserver

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// StartMariaDB starts a MariaDB server for one test. The arguments are added to
// mariadbd's. Its root has no password; TLS works, with a certificate that
// nobody knows.
func StartMariaDB(t testing.TB, args ...string) *Server {
	t.Helper()
	return forTest(t, mariaDB, args)
}

var mariaDB = recipe{name: "mariadb", prepare: prepareMariaDB, command: mariaDBCommand, answers: mariaDBAnswers}

const mariaDBPackage = "mariadb-server"

func prepareMariaDB(s *Server) error {
	if _, err := Certify(s.dir); err != nil {
		return err
	}
	if template := os.Getenv(envTemplate); template != "" {
		return os.CopyFS(s.data(), os.DirFS(template))
	}
	return installMariaDB(s.data())
}

// installMariaDB makes a data directory. It takes seconds.
func installMariaDB(dir string) error {
	install, err := program("mariadb-install-db", mariaDBPackage, envMariaDB)
	if err != nil {
		return err
	}
	args := []string{"--no-defaults", "--datadir=" + dir, "--auth-root-authentication-method=normal",
		"--skip-test-db", "--innodb-log-file-size=32M"}
	out, err := exec.Command(install, append(args, asRoot()...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mariadb-install-db: %w\n%s", err, out)
	}
	return nil
}

// asRoot is what mariadbd wants to hear from root before it runs as root.
func asRoot() []string {
	if os.Getuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}

func mariaDBCommand(s *Server) (*exec.Cmd, error) {
	server, err := program("mariadbd", mariaDBPackage, envMariaDB)
	if err != nil {
		return nil, err
	}
	in := func(name string) string { return filepath.Join(s.dir, name) }
	args := []string{"--no-defaults",
		"--datadir=" + s.data(), "--socket=" + in("sock"), "--pid-file=" + in("pid"), "--tmpdir=" + s.dir,
		"--bind-address=127.0.0.1", "--port=" + strconv.Itoa(s.port), "--skip-name-resolve",
		"--ssl-ca=" + in("ca.pem"), "--ssl-cert=" + in("cert.pem"), "--ssl-key=" + in("key.pem"),
		"--character-set-server=utf8mb4", "--max-connections=500", "--max-allowed-packet=64M",
		"--local-infile=1", "--performance-schema=0",
		"--innodb-log-file-size=32M", "--innodb-buffer-pool-size=128M",
	}
	if s.fast {
		args = append(args, "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0")
	}
	args = append(args, asRoot()...)
	return exec.Command(server, append(args, s.args...)...), nil
}

func mariaDBAnswers(ctx context.Context, s *Server) error {
	cfg, err := mysql.ParseDSN(s.DSN())
	if err != nil {
		return err
	}
	cfg.Logger = &mysql.NopLogger{} // refused connections are expected here
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	return db.PingContext(ctx)
}
