package mysqldb

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

func TestParseDSN_session(t *testing.T) {
	cfg := must.Get(ParseDSN("dsn", "u:p@tcp(db:3306)/app?AutoCommit=0&sql_mode=%27%27&time_zone=%27UTC%27&multiStatements=true", ""))(t)
	want := map[string]string{"autocommit": "1", "sql_mode": "'STRICT_ALL_TABLES'", "time_zone": "'UTC'"}
	if !maps.Equal(cfg.Params, want) || cfg.MultiStatements {
		t.Errorf("have: %v, several statements %v\nwant: %v, false", cfg.Params, cfg.MultiStatements, want)
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
