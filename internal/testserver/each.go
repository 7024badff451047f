package testserver

import (
	"database/sql"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// productsOf says by a subtest's name which product Each runs it on.
var productsOf sync.Map

// Each runs a test once for each SQL server, as subtests "mysql", "mariadb" and
// "mariadb-11.8", and reports whether it did: the test, called again by its
// subtests, continues where it did not. In a subtest [Database] and [StartSQL] are
// that server's.
//
//	func TestInsert(t *testing.T) {
//		if testserver.Each(t, TestInsert) {
//			return
//		}
//		dsn := testserver.Database(t)
func Each(t *testing.T, test func(*testing.T)) bool {
	t.Helper()
	if productByName(t.Name()) != nil {
		return false
	}
	for _, p := range products {
		t.Run(p.name, func(t *testing.T) {
			dsn := shared(t, p.name)
			productsOf.Store(t.Name(), p)
			t.Cleanup(func() { productsOf.Delete(t.Name()) })
			recordServer(t, p, dsn)
			Ran(t, "tests of "+packageOf(test), "all")
			test(t)
		})
	}
	return true
}

// productOf is what a test runs on: MariaDB outside of Each.
func productOf(t testing.TB) *product {
	if p := productByName(t.Name()); p != nil {
		return p
	}
	return mariaDB
}

func productByName(test string) *product {
	for test != "" {
		if p, ok := productsOf.Load(test); ok {
			return p.(*product)
		}
		test = test[:max(0, strings.LastIndexByte(test, '/'))]
	}
	return nil
}

// Name is that of [Each]'s subtest, which says the server that a test runs on.
func Name(t testing.TB) string { return productOf(t).name }

// Needs skips a test on servers of another kind than the one that has what it
// needs: "RETURNING". The compatibility matrix lists it.
func Needs(t testing.TB, kind Kind, what string) {
	t.Helper()
	if !Has(t, kind, what) {
		t.Skipf("it needs %s, which only %s has", what, kind)
	}
}

// Has is Needs for one case of a test, which says by it whether the case runs.
func Has(t testing.TB, kind Kind, what string) bool {
	note("needs", what, string(kind), firstOf(t.Name()))
	return productOf(t).kind == kind
}

// Ran notes for the compatibility matrix that something ran on the server that
// [Each] runs a test on, or outside of Each without a server, and how much of it.
func Ran(t testing.TB, what, howMuch string) {
	on := ""
	if p := productByName(t.Name()); p != nil {
		on = p.name
	}
	note("ran", what, on, howMuch)
}

// firstOf is a test's name without its subtests'.
func firstOf(name string) string {
	first, _, _ := strings.Cut(name, "/")
	return first
}

var series = regexp.MustCompile(`^\d+\.\d+`)

var recorded sync.Map // products whose server has been noted

// recordServer notes which series a server is of.
func recordServer(t testing.TB, p *product, dsn string) {
	if _, done := recorded.LoadOrStore(p, true); done || os.Getenv(envRecord) == "" {
		return
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatalf("%s: %v", p.env, err)
	}
	var version string
	err = with(cfg, func(db *sql.DB) error { return db.QueryRow("SELECT VERSION()").Scan(&version) })
	if err != nil {
		t.Fatalf("%s: %v", p.env, err)
	}
	note("server", p.name, string(p.kind)+" "+series.FindString(version))
}

// note adds a line to what the run notes down, where it does. Test binaries
// of several packages write to one file; a short line is written as one.
func note(fields ...string) {
	name := os.Getenv(envRecord)
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err) // a run that is to be recorded is not
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Join(fields, "\t") + "\n"); err != nil {
		panic(err)
	}
}

// packageOf is the directory of the package that a test is of.
func packageOf(test func(*testing.T)) string {
	name := runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name() // path/of/package_test.TestName
	dir, base := filepath.Split(name)
	base, _, _ = strings.Cut(base, ".")
	return strings.TrimPrefix(dir+strings.TrimSuffix(base, "_test"), "github.com/shardkey/shardkey/")
}

// Names are those of Each's subtests, in their order.
func Names() []string {
	var names []string
	for _, p := range products {
		names = append(names, p.name)
	}
	return names
}
