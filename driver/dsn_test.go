package driver

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

func TestParseDSN_parts(t *testing.T) {
	tests := []struct {
		in         string
		base, rule string
	}{
		{"/?shardkeyRule=r", "/", "r"},
		{"u:p@tcp(127.0.0.1:3306)/app?shardkeyRule=rule.yaml", "u:p@tcp(127.0.0.1:3306)/app", "rule.yaml"},
		{"u:p@tcp(h:1)/app?shardkeyRule=conf/rule.yaml", "u:p@tcp(h:1)/app", "conf/rule.yaml"},
		{"u:p@tcp(h:1)/app?shardkeyRule=/etc/app/rule.yaml", "u:p@tcp(h:1)/app", "/etc/app/rule.yaml"},
		{"u:p@tcp(h:1)/app?shardkeyRule=%2Fetc%2Frule.yaml", "u:p@tcp(h:1)/app", "%2Fetc%2Frule.yaml"},
		{"u:p@tcp(h:1)/app?parseTime=true&shardkeyRule=a/b&loc=UTC", "u:p@tcp(h:1)/app?parseTime=true&loc=UTC", "a/b"},
		{"u:p@tcp(h:1)/app?shardkeyRule=a/b&loc=Asia%2FTokyo", "u:p@tcp(h:1)/app?loc=Asia%2FTokyo", "a/b"},
		{"u:p@tcp(h:1)/?shardkeyRule=r&&x=1&", "u:p@tcp(h:1)/?&x=1&", "r"},
		{"u@unix(/run/my/sql.sock)/app?shardkeyRule=./r.yaml", "u@unix(/run/my/sql.sock)/app", "./r.yaml"},
		{"u@/app?shardkeyRule=../r.yaml", "u@/app", "../r.yaml"},
		{"u@tcp/app?shardkeyRule=r", "u@tcp/app", "r"},
		{"u:p@tcp([::1]:3306)/app?shardkeyRule=r", "u:p@tcp([::1]:3306)/app", "r"},
		{"u:p@cloud(proj:zone)/app?shardkeyRule=r", "u:p@cloud(proj:zone)/app", "r"},
		// passwords
		{"u:a?b@tcp(h:1)/app?shardkeyRule=x/y", "u:a?b@tcp(h:1)/app", "x/y"},
		{"u:a/b?c@tcp(h:1)/app?shardkeyRule=x/y", "u:a/b?c@tcp(h:1)/app", "x/y"},
		{"u:a/b?c=d&e=f@tcp(h:1)/app?shardkeyRule=x/y", "u:a/b?c=d&e=f@tcp(h:1)/app", "x/y"},
		{"u:p@ss/w?rd@tcp(h:1)/app?shardkeyRule=x/y", "u:p@ss/w?rd@tcp(h:1)/app", "x/y"},
		{"u:x@tcp(g)/y?z@tcp(h:1)/app?shardkeyRule=x/y", "u:x@tcp(g)/y?z@tcp(h:1)/app", "x/y"},
		{"u:?shardkeyRule=no/&@tcp(h:1)/app?shardkeyRule=yes", "u:?shardkeyRule=no/&@tcp(h:1)/app", "yes"},
		// values
		{"u:p@tcp(h:1)/app?shardkeyRule=a?b", "u:p@tcp(h:1)/app", "a?b"},
		{"u:p@tcp(h:1)/app?shardkeyRule=a/b?c/d", "u:p@tcp(h:1)/app", "a/b?c/d"},
		{"u:p@tcp(h:1)/app?shardkeyRule=a@b/c?d", "u:p@tcp(h:1)/app", "a@b/c?d"},
		{"u:p@tcp(h:1)/app?shardkeyRule=a=b/c", "u:p@tcp(h:1)/app", "a=b/c"},
	}
	for _, tt := range tests {
		have, err := parseDSN(tt.in, &Config{})
		if want := (dsn{base: tt.base, rule: tt.rule}); err != nil || have != want {
			t.Errorf("%s\nhave: %+v, %v\nwant: %+v", tt.in, have, err, want)
			continue
		}
		if _, err := mysql.ParseDSN(have.base); err != nil {
			t.Errorf("%s: the base refuses %s: %v", tt.in, have.base, err)
		}
	}
}

func TestParseDSN_refuses(t *testing.T) {
	const secret = "s3cr3t"
	tests := []struct{ in, want string }{
		{"u:p@tcp(h:1)/app", "shardkey: DSN: no sharding rule: add ?shardkeyRule= with the path"},
		{"u:p@tcp(h:1)/app?parseTime=true", "add ?shardkeyRule="},
		{"u:p@tcp(h:1)/app?shardkeyRule=", "parameter shardkeyRule: it has no value"},
		{"u:p@tcp(h:1)/app?shardkeyRule", "parameter shardkeyRule: it has no value"},
		{"u:p@tcp(h:1)/app?shardkeyRule=a&shardkeyRule=b", "parameter shardkeyRule: it is given twice"},
		{"u:p@tcp(h:1)/app?shardkeyRules=a", "parameter shardkeyRules: no such parameter; known: shardkeyRule, shardkeyServer, shardkeyUnlisted, shardkeyRuleWarnings, shardkeyVerify, shardkeyStatements, shardkeyReload; did you mean shardkeyRule?"},
		{"u:p@tcp(h:1)/app?ShardKeyRule=a", "did you mean shardkeyRule?"},
		{"u:p@tcp(h:1)/app?shardkeyRule=a&shardkeyXyzzyAndMuchMore=1", "parameter shardkeyXyzzyAndMuchMore: no such parameter"},
		{"u:s3cr3t@tcp(h:1)?shardkeyRule=conf/r.yaml", "missing the slash separating the database name"},
		{"?shardkeyRule=conf/r.yaml", "want [user[:password]@][net[(addr)]]/dbname"},
		{"u:s3cr3t@tcp(h:1/app?shardkeyRule=r", "network address not terminated"},
		{"u:s3cr3t/app?shardkeyRule=r", "want [user[:password]@][net[(addr)]]/dbname"},
		{"u:s3cr3t/se%zzcret@tcp(h)?shardkeyRule=r", "want [user[:password]@][net[(addr)]]/dbname"},
		{"u:s3cr3t@udp/app?shardkeyRule=r", "want [user[:password]@][net[(addr)]]/dbname"},
		{"u:s3cr3t@tcp(h:1)/app?parseTime=maybe&shardkeyRule=r", "parameter parseTime: invalid bool value: maybe"},
		{"u:s3cr3t@tcp(h:1)/app?loc=Asia/Tokyo&shardkeyRule=r", "parameter loc: write / in its value as %2F"},
		{"u:x@/?s3cr3t=1@tcp(h:1)/app", "there is an @ in them"},
		{"u:x@/?shardkeys3cr3t@tcp(h:1)/app?shardkeyRule=r&parseTime=s3cr3t@", "there is an @ in them"},
		{"u:x@/?shardkeys3cr3t@tcp(h:1", "there is an @ in them"},
		{"u:s3cr3t@tcp(h:1)/app?tls=nobody&shardkeyRule=r", "parameter tls: "},
		{"u:s3cr3t@tcp(h:1)/app?strict=true&shardkeyRule=r", "parameter strict: strict mode has been removed"},
	}
	for _, tt := range tests {
		_, err := parseDSN(tt.in, &Config{})
		var dsnErr *DSNError
		switch {
		case err == nil:
			t.Errorf("%s: no error", tt.in)
		case !errors.As(err, &dsnErr):
			t.Errorf("%s: %T is not a *DSNError", tt.in, err)
		case !strings.Contains(err.Error(), tt.want), !strings.HasPrefix(err.Error(), "shardkey: "):
			t.Errorf("%s\nhave: %v\nwant: %s", tt.in, err, tt.want)
		case strings.Contains(err.Error(), secret):
			t.Errorf("%s: the error shows the password: %v", tt.in, err)
		}
	}
}

func TestUnescape_texts(t *testing.T) {
	tests := []struct{ in, want string }{
		{"conf/rule.yaml", "conf/rule.yaml"},
		{"conf%2Frule.yaml", "conf/rule.yaml"},
		{"c++/rule.yaml", "c++/rule.yaml"},
		{"a%20b%26c", "a b&c"},
		{"100%/rule.yaml", "100%/rule.yaml"},
	}
	for _, tt := range tests {
		equal(t, unescape(tt.in), tt.want, tt.in)
	}
}

// FuzzParseDSN: whatever is accepted keeps go-sql-driver's reading of the rest,
// and no text makes a panic.
func FuzzParseDSN(f *testing.F) {
	f.Add("u", "p", "h:1", "app", "conf/rule.yaml")
	f.Add("u", "a/b?c=d&e@(f", "h", "", "/a?b")
	f.Fuzz(func(t *testing.T, user, password, addr, name, rule string) {
		_, _ = parseDSN(user+password+addr+name+rule, &Config{})
		cfg := mysql.NewConfig()
		cfg.User, cfg.Passwd, cfg.Net, cfg.Addr, cfg.DBName = user, password, "tcp", addr, name
		text := cfg.FormatDSN()
		back, err := mysql.ParseDSN(text)
		if err != nil || rule == "" || strings.ContainsAny(rule, "&?@") || strings.ContainsAny(addr, "()?@/") {
			return
		}
		have, err := parseDSN(text+"?shardkeyRule="+rule, &Config{})
		if err != nil || have.rule != rule {
			t.Fatalf("%s with %s\nhave: %+v, %v", text, rule, have, err)
		}
		again, err := mysql.ParseDSN(have.base)
		if err != nil || again.FormatDSN() != back.FormatDSN() {
			t.Fatalf("%s\nhave: %s, %v", text, have.base, err)
		}
	})
}
