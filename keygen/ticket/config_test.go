package ticket

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
	return spi.NewKeyGenerator("ticket", p)
}

func TestProperties_checked(t *testing.T) {
	one := "u:geheim@tcp(a:3306)/tickets"
	two := []string{one, "u:geheim@tcp(b:3306)/tickets"}
	tests := []struct {
		name   string
		values map[string]any
		want   string // the property that the error names; empty for none
	}{
		{"one server", map[string]any{"dsns": one}, ""},
		{"a list", map[string]any{"dsns": two, "table": "app.Tickets32", "increment": "2", "offsets": "2,1", "batch": "100", "timeout": "1s"}, ""},
		{"commas", map[string]any{"dsns": strings.Join(two, ", ")}, ""},
		{"connector's database", map[string]any{}, ""},
		{"bad DSN", map[string]any{"dsns": "geheim"}, "dsns"},
		{"password without user's end", map[string]any{"dsns": "u:geheim/tickets"}, "dsns"},
		{"unknown TLS config", map[string]any{"dsns": one + "?tls=geheim"}, "dsns"},
		{"an empty item", map[string]any{"dsns": one + ","}, "dsns"},
		{"increment below the servers", map[string]any{"dsns": two, "increment": "1"}, "increment"},
		{"increment 0", map[string]any{"dsns": one, "increment": "0"}, "increment"},
		{"increment beyond MySQL's", map[string]any{"dsns": one, "increment": "65536"}, "increment"},
		{"batch 0", map[string]any{"dsns": one, "batch": "0"}, "batch"},
		{"offsets too few", map[string]any{"dsns": two, "offsets": "1"}, "offsets"},
		{"offsets twice", map[string]any{"dsns": two, "offsets": "1,1"}, "offsets"},
		{"offset 0", map[string]any{"dsns": two, "offsets": "0,1"}, "offsets"},
		{"offset beyond the increment", map[string]any{"dsns": two, "offsets": "1,3"}, "offsets"},
		{"offsets not numbers", map[string]any{"dsns": two, "offsets": "1,b"}, "offsets"},
		{"table with a backquote", map[string]any{"dsns": one, "table": "a`b"}, ""},
		{"table without name", map[string]any{"dsns": one, "table": "app."}, "table"},
		{"table of three parts", map[string]any{"dsns": one, "table": "a.b.c"}, "table"},
		{"timeout without unit", map[string]any{"dsns": one, "timeout": "2"}, "timeout"},
		{"another type's", map[string]any{"dsns": one, "leaf.key": "a"}, "leaf.key"},
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

func TestProperties_noServer(t *testing.T) {
	g, err := construct(t, nil, spi.Host{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.(*generator).Close()
	if _, err := g.GenerateKeys(t.Context(), column, 1); !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), "dsns") {
		t.Errorf("\nhave: %v\nwant: spi.ErrStore that names dsns", err)
	}
}

func TestGenerator_describe(t *testing.T) {
	g, err := construct(t, map[string]any{"batch": "5"}, spi.Host{DSN: spi.NewSecret("app:geheim@tcp(db:3306)/app")})
	if err != nil {
		t.Fatal(err)
	}
	defer g.(*generator).Close()
	want := "TICKET Tickets64 at tcp(db:3306)/app, increment 1, batch 5"
	if have := g.(spi.Describer).Describe(); have != want {
		t.Errorf("\nhave: %s\nwant: %s", have, want)
	}
}

func TestColumnEnd_types(t *testing.T) {
	for typ, want := range map[string]int64{
		"tinyint(4)": 127, "tinyint(3) unsigned": 255, "smallint": 32767, "mediumint(8) unsigned": 16777215,
		"int(11)": 2147483647, "INT UNSIGNED": 4294967295, "bigint(20) unsigned": noEnd, "bigint": noEnd,
	} {
		if have := columnEnd(typ); have != want {
			t.Errorf("%s\nhave: %d\nwant: %d", typ, have, want)
		}
	}
}
