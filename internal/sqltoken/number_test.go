package sqltoken

import (
	"math"
	"testing"
)

func TestParseInteger_takesIntegersOnly(t *testing.T) {
	for text, want := range map[string]any{
		"0": int64(0), "7": int64(7), "-7": int64(-7), "+7": int64(7), "007": int64(7),
		"9223372036854775807": int64(1<<63 - 1), "9223372036854775808": uint64(1 << 63), "18446744073709551615": uint64(1<<64 - 1),
		"-9223372036854775808": int64(-1 << 63), "18446744073709551616": nil,
		"": nil, "a": nil, "1.0": nil, "1e3": nil, "0x10": nil, "1_0": nil, " 1": nil, "--1": nil,
	} {
		if have := ParseInteger(text, 10); have != want {
			t.Errorf("%q\nhave: %#v\nwant: %#v", text, have, want)
		}
	}
}

func TestLeadingNumber_strings(t *testing.T) {
	for text, want := range map[string]float64{
		"": 0, "abc": 0, "-": 0, ".": 0, "+.e5": 0, "7": 7, " \t-3.5e2x": -350, "+.5": 0.5, "5.": 5, "5.e1": 50, "1e": 1, "1e+": 1, "1-1-1": 1, "1.5.5": 1.5,
		"1e400": math.Inf(1), "-1e400": math.Inf(-1), "1e-400": 0, "0x10": 0, "1_0": 1, "inf": 0,
	} {
		if have := LeadingNumber(text); have != want {
			t.Errorf("%q\nhave: %v\nwant: %v", text, have, want)
		}
	}
}
