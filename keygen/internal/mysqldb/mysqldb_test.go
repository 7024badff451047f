package mysqldb

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/spi"
)

func TestParseDSN_session(t *testing.T) {
	want := must.Get(ParseDSN("dsn", "u:p@tcp(db:3306)/app?time_zone=%27UTC%27", ""))(t)
	for _, params := range []string{
		"AutoCommit=0&sql_mode=%27%27&multiStatements=true", "@@session.autocommit=0&@@sql_mode=%27%27",
		"charset=latin1", "charset=gbk,latin1&interpolateParams=false", "collation=latin1_bin", "columnsWithAlias=true", "maxAllowedPacket=100",
		"SQL_SELECT_LIMIT=1&character_set_results=utf16&LOCAL.timestamp=1",
	} {
		cfg := must.Get(ParseDSN("dsn", "u:p@tcp(db:3306)/app?time_zone=%27UTC%27&"+params, ""))(t, params)
		if cfg.FormatDSN() != want.FormatDSN() {
			t.Errorf("%s\nhave: %s\nwant: %s", params, cfg.FormatDSN(), want.FormatDSN())
		}
	}
	if p := want.Params; len(p) != 3 || p["autocommit"] != "1" || p["sql_mode"] != "'STRICT_ALL_TABLES'" || p["time_zone"] != "'UTC'" {
		t.Errorf("have: %v", p)
	}
}

// A damaged answer is waited for with a limit, which a context isn't.
func TestParseDSN_readTimeout(t *testing.T) {
	for params, want := range map[string]time.Duration{"": time.Minute, "?readTimeout=5s": 5 * time.Second} {
		must.Equal(t, must.Get(ParseDSN("dsn", "u:p@tcp(db:3306)/app"+params, ""))(t).ReadTimeout, want, params)
	}
}

// A field of mysql.Config that no parameter of the test's list sets may change our statements.
func TestOwnSession_parametersAreComplete(t *testing.T) {
	login := []string{"User", "Passwd", "Net", "Addr", "DBName", "ServerPubKey", "TLSConfig", "TLS", "DialFunc", "AllowNativePasswords", "Logger"}
	unset := map[string]bool{}
	plain := reflect.ValueOf(must.Get(mysql.ParseDSN("/"))(t)).Elem()
	for i := range plain.NumField() {
		unset[plain.Type().Field(i).Name] = plain.Type().Field(i).IsExported()
	}
	for _, name := range login {
		delete(unset, name)
	}
	for _, param := range testserver.Params {
		set := reflect.ValueOf(must.Get(mysql.ParseDSN("/?"+param))(t, param)).Elem()
		for i := range set.NumField() {
			if f := set.Type().Field(i); f.IsExported() && !reflect.DeepEqual(set.Field(i).Interface(), plain.Field(i).Interface()) {
				unset[f.Name] = false
			}
		}
	}
	for name, is := range unset {
		must.Equal(t, is, false, "no parameter of testserver.Params sets", name)
	}
}

func TestParseDSN_errorShowsNoSecret(t *testing.T) {
	for _, dsn := range []string{"u:geheim@tcp(db:3306", "u:geheim", "u:geheim@tcp(db:3306)/app?timeout=geheim", "u:a@/geheim@tcp(h)", "u:a/geheim@tcp(h:1)?timeout=1s"} {
		_, err := ParseDSN("dsn", dsn, "user@tcp(host)/app")
		if bad, ok := errors.AsType[*spi.PropError](err); !ok || bad.Name != "dsn" || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s\nhave: %v\nwant: a PropError of dsn without the DSN", dsn, err)
		}
	}
}

func TestQuoteTable_names(t *testing.T) {
	for text, want := range map[string]string{
		"t": "`t`", "s.t": "`s`.`t`", "a`b": "`a``b`", strings.Repeat("ü", 64): "`" + strings.Repeat("ü", 64) + "`",
		"": "", ".t": "", "a.b.c": "", "a\x00": "", strings.Repeat("x", 65): "",
	} {
		if have, ok := QuoteTable(text); have != want || ok != (want != "") {
			t.Errorf("%q\nhave: %q, %v\nwant: %q", text, have, ok, want)
		}
	}
}

func TestErrors_kinds(t *testing.T) {
	server := func(n uint16) error { return fmt.Errorf("x: %w", &mysql.MySQLError{Number: n}) }
	for _, test := range []struct {
		err              error
		deadlock, broken bool
	}{
		{server(1213), true, false}, {server(1205), true, false}, {server(1146), false, false},
		{fmt.Errorf("x: %w", driver.ErrBadConn), false, true}, {mysql.ErrInvalidConn, false, true}, {nil, false, false},
	} {
		if IsDeadlock(test.err) != test.deadlock || IsBroken(test.err) != test.broken {
			t.Errorf("%v\nhave: deadlock %v, broken %v", test.err, IsDeadlock(test.err), IsBroken(test.err))
		}
	}
}
