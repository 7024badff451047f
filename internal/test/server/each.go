package testserver

import (
	"cmp"
	"flag"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Main runs a package's tests, more of them in parallel than there are processors, because tests
// with servers mostly wait. It's for TestMain.
func Main(m *testing.M) {
	flag.Parse()
	parallel := "8"
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "test.parallel" {
			parallel = f.Value.String()
		}
	})
	_ = flag.Set("test.parallel", parallel)
	os.Exit(m.Run())
}

// productsOf says by a subtest's name which product Each runs it on.
var productsOf sync.Map

// Each runs a test once for each SQL server, as subtests "mysql", "mariadb"
// and "mariadb-11.8", and reports whether it did: the test, called again by its
// subtests, continues where it did not. In a subtest [Database] and [StartSQL] are
// that server's.
//
//	func TestInsert(t *testing.T) {
//		if testserver.Each(t, TestInsert) {
//			return
//		}
//		dsn := testserver.Database(t)
//
// Where SHARDKEY_TEST_DSN names servers, the test runs on each of those instead.
func Each(t *testing.T, test func(*testing.T)) bool {
	t.Helper()
	if productByName(t.Name()) != nil {
		return false
	}
	all, err := named()
	if err != nil {
		t.Fatal(err)
	}
	if all == nil {
		all = products
	}
	for _, p := range all {
		if !wanted(p.name) && p.dsn == "" {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			_ = p.shared(t) // skips the test if there is none
			productsOf.Store(t.Name(), p)
			t.Cleanup(func() { productsOf.Delete(t.Name()) })
			test(t)
		})
	}
	return true
}

// productOf is what a test runs on. Outside of Each that is MariaDB, or the first server
// that SHARDKEY_TEST_DSN names.
func productOf(t testing.TB) *product {
	t.Helper()
	if p := productByName(t.Name()); p != nil {
		return p
	}
	all, err := named()
	if err != nil {
		t.Fatal(err)
	}
	if all != nil {
		return all[0]
	}
	return products[1]
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

// Name is that of [Each]'s subtest, which names the server that a test runs on.
func Name(t testing.TB) string { t.Helper(); return productOf(t).name }

// KindOf returns the kind of the server that a test runs on.
func KindOf(t testing.TB) Kind { t.Helper(); return productOf(t).kind }

// Servers are the SQL servers of a kind, from a version on if it has one, or of several such
// kinds: "MySQL 8.4, MariaDB".
type Servers string

// What servers differ by, for [Has] and [Needs].
const (
	MariaDB Servers = "MariaDB"
	MySQL   Servers = "MySQL"
)

func (ss Servers) have(p *product) bool {
	for one := range strings.SplitSeq(string(ss), ", ") {
		kind, from, _ := strings.Cut(one, " ")
		if Kind(kind) == p.kind && compareVersions(p.series, from) >= 0 {
			return true
		}
	}
	return false
}

// compareVersions compares two series such as "10.11". An empty one is the oldest.
func compareVersions(a, b string) int {
	number := func(text string) int { n, _ := strconv.Atoi(text); return n }
	majorA, minorA, _ := strings.Cut(a, ".")
	majorB, minorB, _ := strings.Cut(b, ".")
	return cmp.Or(cmp.Compare(number(majorA), number(majorB)), cmp.Compare(number(minorA), number(minorB)))
}

// Needs skips a test on servers that don't have what it needs: "RETURNING".
func Needs(t testing.TB, servers Servers, what string) {
	t.Helper()
	if !Has(t, servers, what) {
		t.Skipf("it needs %s, which only %s has", what, servers)
	}
}

// Has reports whether the server that a test runs on has what a case of it needs.
func Has(t testing.TB, servers Servers, what string) bool {
	t.Helper()
	return servers.have(productOf(t))
}
