package segment

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

// A wrong property is an error with its name and without secrets.
func TestProperties(t *testing.T) {
	const tickets = "u:geheim@tcp(a:3306)/tickets"
	type propertyCase struct {
		typ, name string
		want      string // property in the error, or "" for no error
		props     map[string]any
	}
	all := []propertyCase{
		{"LEAF_SEGMENT", "longest key", "", map[string]any{"leaf.key": strings.Repeat("ö", 128), "dsn": "u:p@tcp(db:3306)/leaf"}},
		{"LEAF_SEGMENT", "long key", "leaf.key", map[string]any{"leaf.key": strings.Repeat("k", 129)}},
		{"ticket", "a list", "", map[string]any{"dsns": []string{tickets, strings.Replace(tickets, "a:", "b:", 1)}, "table": "app.Tickets32",
			"increment": "2", "offsets": "2,1", "batch": "100", "timeout": "1s"}},
	}
	for _, c := range cases.Read(t, "testdata/properties.txt", 4) {
		props := map[string]any{}
		for prop := range strings.FieldsSeq(c[3]) {
			name, value, _ := strings.Cut(prop, "=")
			props[name] = value
		}
		all = append(all, propertyCase{c[0], c[1], c[2], props})
	}
	for _, tt := range all {
		t.Run(tt.typ+"/"+tt.name, func(t *testing.T) {
			_, err := construct(t, tt.typ, tt.props, spi.Host{})
			var bad *spi.PropError
			errors.As(err, &bad)
			if tt.want == "" && err != nil || tt.want != "" && (bad == nil || bad.Name != tt.want) {
				t.Errorf("\nhave: %v\nwant: an error of property %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "geheim") {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}

// With any address, each statement is committed, and values are not truncated silently.
// Statements of TICKET wait for locks only as long as their callers.
func TestProperties_session(t *testing.T) {
	strict := map[string]string{"autocommit": "1", "sql_mode": "'STRICT_ALL_TABLES'", "time_zone": "'UTC'"}
	const options = "?AutoCommit=0&sql_mode=%27%27&time_zone=%27UTC%27&multiStatements=true"
	p := must.Get(spi.NewProps(nil, spi.Host{DSN: spi.NewSecret("app:pw@tcp(db:3306)/app" + options)}))(t)
	_, cfg, err := leafAddress(p)
	if err != nil || !maps.Equal(cfg.Params, strict) || cfg.MultiStatements || cfg.User != "app" || cfg.DBName != "app" {
		t.Errorf("connector's database\nhave: %+v, %v\nwant: %v", cfg, err, strict)
	}
	delete(strict, "time_zone")
	cfg, err = parseJDBC("jdbc:mysql://127.0.0.1:1/leaf?autocommit=0&sql_mode=ANSI")
	if err != nil || !maps.Equal(cfg.Params, strict) || cfg.MultiStatements {
		t.Errorf("JDBC\nhave: %+v, %v\nwant: %v", cfg, err, strict)
	}
	strict["lock_wait_timeout"], strict["innodb_lock_wait_timeout"] = "3", "3"
	cfg, err = parseTicketDSN("u@tcp(h:1)/d?LOCK_WAIT_TIMEOUT=9&innodb_lock_wait_timeout=8&sql_mode=''", 3*time.Second)
	if err != nil || !maps.Equal(cfg.Params, strict) || !cfg.MultiStatements {
		t.Errorf("TICKET\nhave: %+v, %v\nwant: %v", cfg, err, strict)
	}
	for timeout, want := range map[time.Duration]int64{
		time.Millisecond: 1, time.Second: 1, time.Second + 1: 2, 2 * time.Second: 2, 1<<63 - 1: 31536000,
	} {
		must.Equal(t, lockWait(timeout), want, "lock wait for a timeout of", timeout)
	}
}

// The user and the password of their own properties take precedence over the URL's.
func TestProperties_user(t *testing.T) {
	for i := range 4 {
		props, user, pass := map[string]any{"leaf.jdbc.url": "jdbc:mysql://u:p@db/leaf"}, "u", "p"
		if i&1 != 0 {
			props["leaf.jdbc.username"], user = "v", "v"
		}
		if i&2 != 0 {
			props["leaf.jdbc.password"], pass = "q", "q"
		}
		p := must.Get(spi.NewProps(props, spi.Host{}))(t)
		if _, cfg, err := leafAddress(p); err != nil || cfg.User != user || cfg.Passwd != pass {
			t.Errorf("%v\nhave: %+v, %v\nwant: %s, %s", props, cfg, err, user, pass)
		}
	}
}

// Without failover-gap the gap is ten times the largest step, and no less than ten of Leaf's.
func TestProperties_failoverGap(t *testing.T) {
	for _, tt := range []struct {
		props map[string]any
		want  int64
	}{
		{nil, 10_000_000},
		{map[string]any{"max-step": "5"}, 10_000_000},
		{map[string]any{"max-step": "3000000"}, 30_000_000},
		{map[string]any{"failover-gap": "7"}, 7},
		{map[string]any{"failover-gap": "0"}, 0},
	} {
		g := newGen(t, "LEAF_SEGMENT", with(types[0].props, tt.props))
		must.Equal(t, g.servers[0].claim.(*leafRow).gap, tt.want, tt.props)
	}
}

func TestParseJDBC_addresses(t *testing.T) {
	for _, c := range cases.Read(t, "testdata/jdbc.txt", 5) {
		cfg := must.Get(parseJDBC(c[4]))(t, c[4])
		must.EqualSlices(t, []string{cfg.Addr, cfg.DBName, cfg.User, cfg.TLSConfig}, c[:4], c[4])
		if cfg.User != "" {
			must.Equal(t, cfg.Passwd, "p@ss", c[4])
		}
	}
}

// refusedJDBC are addresses that are refused, with a secret that no error may contain.
var refusedJDBC = []string{
	"", "jdbc:mysql://", "jdbc:mysql:///leaf", "jdbc:postgresql://db/geheim", "jdbc:mysql:loadbalance://a,b/geheim",
	"jdbc:mysql://a:3306,b:3306/leaf?password=geheim", "jdbc:mysql://a,b/geheim", "jdbc:mysql://address=(host=a)/geheim",
	"jdbc:mysql://u:geheim@db:port/leaf",
	"jdbc:mysql://db/leaf?sslMode=geheim",
	"jdbc:mysql://db/leaf?password=%zzgeheim",
	// Passwords with delimiters of addresses.
	"jdbc:mysql://root:12/geheim@h/leaf", "jdbc:mysql://root:12?geheim@h/leaf",
	"jdbc:mysql://root:12#geheim@h/leaf", "jdbc:mysql://root:12?a=geheim@h/leaf?useSSL=true",
	// Addresses that Connector/J and others may interpret differently.
	"jdbc:mysql://db/leaf?sslMode=VERIFY_CA&sslmode=DISABLED", "jdbc:mysql://db/leaf?useSSL=true&useSSL=false",
	"jdbc:mysql://db/leaf?USESSL=true&useSSL=true",
	"jdbc:mysql://db/leaf?useSSL=geheim", "jdbc:mysql://db/leaf?useSSL=1",
	"jdbc:mysql://db/leaf?verifyServerCertificate=on", "jdbc:mysql://db/leaf?requireSSL=ja",
}

func TestParseJDBC_refuses(t *testing.T) {
	for _, url := range refusedJDBC {
		_, err := parseJDBC(url)
		if !errors.As(err, new(*spi.PropError)) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s\nhave: %v\nwant: a *spi.PropError without the address", url, err)
		}
	}
}

// An accepted URL has one address, and errors contain no part of the URL.
func FuzzParseJDBC(f *testing.F) {
	for _, url := range append(refusedJDBC, "jdbc:mysql://db:3307/leaf",
		"jdbc:mariadb://[::1]/l?sslMode=verify-full&user=u&password=p%40") {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		cfg, err := parseJDBC(url)
		if err == nil && (cfg.Addr == "" || strings.Contains(cfg.Addr, ",") || cfg.Params["autocommit"] != "1") {
			t.Errorf("%q\nhave: %+v\nwant: one address, and our session", url, cfg)
		}
		if _, again := parseJDBC(url + "\x00geheim"); again != nil && strings.Contains(again.Error(), "geheim") {
			t.Errorf("%q\nhave: %v\nwant: an error without the address", url, again)
		}
	})
}
