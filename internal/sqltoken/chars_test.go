package sqltoken

import (
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

// Each byte has its classes, in UTF-8 and in the character sets where one above 0x7F may
// be a blank.
func TestClass_bytes(t *testing.T) {
	const words = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$"
	for c := range 256 {
		in := func(set string) bool { return c < 0x80 && strings.IndexByte(set, byte(c)) >= 0 }
		var want uint8
		for _, has := range []struct {
			class uint8
			in    bool
		}{
			{classWord, c >= 0x80 || in(words)}, {classBlank, in(" \t\n\v\f\r")}, {classComment, in("#-/*")}, {classVerb, in("iIrRlL")},
		} {
			if has.in {
				want |= has.class
			}
		}
		if class[c] != want {
			t.Errorf("%q\nhave: %b\nwant: %b", rune(c), class[c], want)
		}
		significant := in("#-/*'\"`[(),;?@")
		if have := UTF8.ValueBytes()[c]; have != significant {
			t.Errorf("%q in a row\nhave: %v\nwant: %v", rune(c), have, significant)
		}
		if have := latin1.ValueBytes()[c]; have != (significant || c >= 0x80) {
			t.Errorf("%q in a row of latin1\nhave: %v\nwant: %v", rune(c), have, significant || c >= 0x80)
		}
	}
}

// Words are compared ignoring the case of A to Z only.
func TestFold_letters(t *testing.T) {
	for c := range byte(0x80) {
		for upper := byte('A'); upper <= 'Z'; upper++ {
			want := c == upper || c == upper|0x20
			if have := Is(string(rune(c)), string(rune(upper))); have != want {
				t.Errorf("%q and %q\nhave: %v\nwant: %v", c, upper, have, want)
			}
			if have := Contains("x"+string(rune(c)), "X"+string(rune(upper))); have != want {
				t.Errorf("%q and %q as the end of a word\nhave: %v\nwant: %v", c, upper, have, want)
			}
		}
	}
}

func TestValidPrefix_cutsWhatIsNoUTF8(t *testing.T) {
	for name, want := range map[string]string{"": "", "t": "t", "tü表": "tü表", "t\xc3": "t", "tü\xf0\x9f": "tü", "\xa0t": "", "t\ufffd": "t\ufffd"} {
		if have := ValidPrefix(name); have != want {
			t.Errorf("%q\nhave: %q\nwant: %q", name, have, want)
		}
	}
}

func TestASCIIEnd_findsTheFirst(t *testing.T) {
	for _, n := range []int{0, 1, 7, 31, 32, 33, 64, 100} {
		ascii := strings.Repeat("a", n)
		must.Equal(t, asciiEnd(ascii), n)
		must.Equal(t, asciiEnd(ascii+"\x80"+strings.Repeat("é", 20)), n)
		for at := range n { // one alone, at each place
			must.Equal(t, asciiEnd(ascii[:at]+"\x80"+ascii[at:]), at)
		}
	}
}
