package testserver

import (
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

func TestNamed_servers(t *testing.T) {
	if EachAndOldest(t, TestNamed_servers) {
		return
	}
	dsn := Database(t)
	all, err := parseNamed(dsn + ", " + SQL(t))
	if err != nil || len(all) != 2 {
		t.Fatalf("have: %v, %v\nwant: two servers", all, err)
	}
	want := productOf(t)
	for _, p := range all {
		cfg, err := mysql.ParseDSN(p.dsn)
		if err != nil {
			t.Fatal(err)
		}
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
	old, mysql80, mariaDB := &product{kind: KindMySQL, series: "5.6"}, &product{kind: KindMySQL, series: "8.0"}, &product{kind: KindMariaDB, series: "10.11"}
	for servers, want := range map[Servers][3]bool{
		"MySQL": {true, true, false}, MariaDB: {false, false, true}, MySQL8: {false, true, false},
		Newer: {false, true, true}, "MySQL 8.4": {}, "MariaDB 10.9": {false, false, true}, "MariaDB 10.12": {},
	} {
		if have := [3]bool{servers.have(old), servers.have(mysql80), servers.have(mariaDB)}; have != want {
			t.Errorf("%s\nhave: %v\nwant: %v", servers, have, want)
		}
	}
}
