package rule

import (
	"strings"
	"testing"
)

func TestExpandEnv_replacesVariables(t *testing.T) {
	t.Setenv("SK_A", "alpha")
	t.Setenv("SK_EMPTY", "")
	t.Setenv("SK_NESTED", "${SK_A}")
	t.Setenv("db.password", "dotted")
	for _, c := range []struct {
		text, want, err string
		used            bool
	}{
		{text: "", want: ""},
		{text: "plain $ {x} $x", want: "plain $ {x} $x"},
		{text: "${SK_A}", want: "alpha", used: true},
		{text: "<${SK_A}-${SK_A}>", want: "<alpha-alpha>", used: true},
		{text: "${SK_EMPTY}", want: "", used: true},
		{text: "${SK_NESTED}", want: "${SK_A}", used: true},
		{text: "${db.password}", want: "dotted", used: true},
		{text: "${SK_NONE::some::thing}", want: "some::thing", used: true},
		{text: "${SK_NONE::}", want: "", used: true},
		{text: "${SK_A::other}", want: "alpha", used: true},
		{text: "$${SK_A::other}", want: "alpha", used: true},
		{text: "$${SK_NONE::x}y", want: "xy", used: true},
		{text: `\${SK_A}`, want: "${SK_A}"},
		{text: `a\${b ${SK_A}`, want: "a${b alpha", used: true},
		{text: "$->{0..1}", want: "$->{0..1}"},
		{text: "${SK_NONE}", err: "SK_NONE is not set"},
		{text: "$${SK_NONE}", err: "SK_NONE is not set"},
		{text: "${SK_A", err: "expected the name"},
		{text: "${}", err: "expected the name"},
		{text: "${1A}", err: "expected the name"},
		{text: "${SK A}", err: "expected the name"},
		{text: "${SK_A}${x % 2}", err: "expected the name"},
	} {
		have, used, err := expandEnv(c.text)
		if have != c.want || used != c.used || (err == nil) != (c.err == "") {
			t.Errorf("%s\nhave: %q, %v, %v\nwant: %q, %v, %s", c.text, have, used, err, c.want, c.used, c.err)
		}
		if err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s\nhave: %v\nwant: %s", c.text, err, c.err)
		}
	}
}
