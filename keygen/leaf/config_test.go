package leaf

import (
	"errors"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/spi"
)

func construct(t *testing.T, values map[string]any, host spi.Host) (spi.KeyGenerator, error) {
	t.Helper()
	p, err := spi.NewProps(values, host)
	if err != nil {
		t.Fatal(err)
	}
	return spi.NewKeyGenerator("leaf_segment", p)
}

func TestProperties_checked(t *testing.T) {
	const dsn, url = "u:p@tcp(db:3306)/leaf", "jdbc:mysql://db:3306/leaf"
	tests := []struct {
		name   string
		values map[string]any
		want   string // the property that the error names; empty for none
	}{
		{"DSN", map[string]any{"leaf.key": "order", "dsn": dsn}, ""},
		{"JDBC", map[string]any{"leaf-key": "order", "leaf.jdbc.url": url, "leaf.jdbc.username": "u", "leaf.jdbc.password": "p"}, ""},
		{"bounds", map[string]any{"leaf.key": "order", "dsn": dsn, "min-step": "10", "max-step": "10", "reserve": "0s", "timeout": "1s"}, ""},
		{"connector's database", map[string]any{"leaf.key": "order"}, ""},
		{"no key", map[string]any{"dsn": dsn}, "leaf.key"},
		{"slash", map[string]any{"leaf.key": "a/b", "dsn": dsn}, "leaf.key"},
		{"long key", map[string]any{"leaf.key": strings.Repeat("k", 129), "dsn": dsn}, "leaf.key"},
		{"both addresses", map[string]any{"leaf.key": "a", "dsn": dsn, "leaf.jdbc.url": url}, "dsn"},
		{"bad DSN", map[string]any{"leaf.key": "a", "dsn": "geheim"}, "dsn"},
		{"DSN of an unknown TLS config", map[string]any{"leaf.key": "a", "dsn": "u:geheim@tcp(h)/d?tls=geheim"}, "dsn"},
		{"password without user's end", map[string]any{"leaf.key": "a", "dsn": "u:geheim/leaf"}, "dsn"},
		{"bad URL", map[string]any{"leaf.key": "a", "leaf.jdbc.url": "mysql://u:geheim@db/leaf"}, "leaf.jdbc.url"},
		{"step 0", map[string]any{"leaf.key": "a", "dsn": dsn, "min-step": "0"}, "min-step"},
		{"step too large", map[string]any{"leaf.key": "a", "dsn": dsn, "max-step": "9999999999"}, "max-step"},
		{"bounds crossed", map[string]any{"leaf.key": "a", "dsn": dsn, "min-step": "10", "max-step": "9"}, "max-step"},
		{"reserve without unit", map[string]any{"leaf.key": "a", "dsn": dsn, "reserve": "60"}, "reserve"},
		{"timeout 0", map[string]any{"leaf.key": "a", "dsn": dsn, "timeout": "0s"}, "timeout"},
		{"another type's", map[string]any{"leaf.key": "a", "dsn": dsn, "worker-id": "1"}, "worker-id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, err := construct(t, tt.values, spi.Host{})
			if g != nil {
				defer g.(*generator).Close()
			}
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

// Without an address of its own the generator asks the connector's database,
// with the connector's rights, but always with autocommit and a strict mode.
func TestProperties_connectorsDatabase(t *testing.T) {
	p, err := spi.NewProps(map[string]any{"leaf.key": "order"}, spi.Host{DSN: spi.NewSecret("app:pw@tcp(db:3306)/app?autocommit=0&AUTOCOMMIT=0&sql_mode=%27%27&time_zone=%27UTC%27")})
	if err != nil {
		t.Fatal(err)
	}
	c, err := configFromProps(p)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := c.mysqlConfig()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.User != "app" || cfg.Addr != "db:3306" || cfg.DBName != "app" || cfg.Params["time_zone"] != "'UTC'" {
		t.Errorf("have: %+v\nwant: the connector's settings", cfg)
	}
	if len(cfg.Params) != 3 || cfg.Params["autocommit"] != "1" || cfg.Params["sql_mode"] != "'STRICT_ALL_TABLES'" {
		t.Errorf("\nhave: %v\nwant: autocommit=1, a strict sql_mode", cfg.Params)
	}
}

// A rule is checked before there is a connector, so that only the first key
// can tell that no database is known.
func TestProperties_noDatabase(t *testing.T) {
	g, err := construct(t, map[string]any{"leaf.key": "order"}, spi.Host{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.(*generator).Close()
	_, err = g.GenerateKeys(t.Context(), column, 1)
	if !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), "leaf.jdbc.url") {
		t.Errorf("\nhave: %v\nwant: spi.ErrStore that names leaf.jdbc.url", err)
	}
}

func TestParseJDBC_addresses(t *testing.T) {
	tests := []struct{ url, addr, db, user, tls string }{
		{"jdbc:mysql://db:3307/leaf", "db:3307", "leaf", "", "preferred"},
		{"jdbc:mysql://127.0.0.1:3306/leaf?serverTimezone=UTC&useSSL=false&characterEncoding=utf8", "127.0.0.1:3306", "leaf", "", "false"},
		{"jdbc:mysql://db/leaf?autoReconnect=true&useUnicode=true&characterEncoding=utf-8&useSSL=true", "db:3306", "leaf", "", "skip-verify"},
		{"JDBC:MySQL://[::1]:3306/leaf", "[::1]:3306", "leaf", "", "preferred"},
		{"jdbc:mariadb://db:3306/leaf?sslMode=verify-full", "db:3306", "leaf", "", "true"},
		{"jdbc:mysql://db/leaf?sslMode=VERIFY_CA&useSSL=false", "db:3306", "leaf", "", "true"},
		{"jdbc:mysql://db/leaf?useSSL=true&verifyServerCertificate=true", "db:3306", "leaf", "", "true"},
		{"jdbc:mysql://db/leaf?useSSL=yes&verifyServerCertificate=YES", "db:3306", "leaf", "", "true"},
		{"jdbc:mysql://db/leaf?useSSL=Yes&verifyServerCertificate=no", "db:3306", "leaf", "", "skip-verify"},
		{"jdbc:mysql://db/leaf?useSSL=no", "db:3306", "leaf", "", "false"},
		{"jdbc:mysql://db/leaf?requireSSL=yes", "db:3306", "leaf", "", "skip-verify"},
		{"jdbc:mysql://db/leaf?user=u&password=p@ss", "db:3306", "leaf", "u", "preferred"},
		{"jdbc:mysql://u:p%40ss@db/leaf", "db:3306", "leaf", "u", "preferred"},
		{"jdbc:mysql://db/leaf?user=u&password=p%40ss", "db:3306", "leaf", "u", "preferred"},
		{"jdbc:mysql://db/l%C3%A9af", "db:3306", "léaf", "", "preferred"},
		{"jdbc:mysql://db", "db:3306", "", "", "preferred"},
	}
	for _, tt := range tests {
		cfg, err := parseJDBC(tt.url)
		if err != nil {
			t.Errorf("%s: %v", tt.url, err)
			continue
		}
		if cfg.Addr != tt.addr || cfg.DBName != tt.db || cfg.User != tt.user || cfg.TLSConfig != tt.tls || tt.user != "" && cfg.Passwd != "p@ss" {
			t.Errorf("%s\nhave: %s %s %s %s %s\nwant: %+v", tt.url, cfg.Addr, cfg.DBName, cfg.User, cfg.Passwd, cfg.TLSConfig, tt)
		}
	}
}

func TestParseJDBC_timeouts(t *testing.T) {
	cfg, err := parseJDBC("jdbc:mysql://db/leaf?connectTimeout=1500&sockettimeout=30000")
	if err != nil || cfg.Timeout.Milliseconds() != 1500 || cfg.ReadTimeout.Seconds() != 30 || cfg.WriteTimeout.Seconds() != 30 {
		t.Errorf("\nhave: %v %+v\nwant: 1.5s and 30s", err, cfg)
	}
}

func TestParseJDBC_refuses(t *testing.T) {
	for _, url := range []string{
		"", "jdbc:mysql://", "jdbc:mysql:///leaf", "jdbc:postgresql://db/geheim", "jdbc:mysql:loadbalance://a,b/geheim",
		"jdbc:mysql://a:3306,b:3306/leaf?password=geheim", "jdbc:mysql://a,b/geheim", "jdbc:mysql://address=(host=a)/geheim",
		"jdbc:mysql://u:geheim@db:port/leaf", "jdbc:mysql://db/leaf?connectTimeout=geheim", "jdbc:mysql://db/leaf?sslMode=geheim",
		"jdbc:mysql://db/leaf?password=%zzgeheim",
		// Passwords with what ends an address.
		"jdbc:mysql://root:12/geheim@h/leaf", "jdbc:mysql://root:12?geheim@h/leaf", "jdbc:mysql://root:12#geheim@h/leaf", "jdbc:mysql://root:12?a=geheim@h/leaf?useSSL=true",
		// What Connector/J and others could take for two things.
		"jdbc:mysql://db/leaf?sslMode=VERIFY_CA&sslmode=DISABLED", "jdbc:mysql://db/leaf?useSSL=true&useSSL=false", "jdbc:mysql://db/leaf?USESSL=true&useSSL=true",
		"jdbc:mysql://db/leaf?useSSL=geheim", "jdbc:mysql://db/leaf?useSSL=1", "jdbc:mysql://db/leaf?verifyServerCertificate=on", "jdbc:mysql://db/leaf?requireSSL=ja",
	} {
		_, err := parseJDBC(url)
		var bad *spi.PropError
		if !errors.As(err, &bad) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s\nhave: %v\nwant: a *spi.PropError without the text", url, err)
		}
	}
}
