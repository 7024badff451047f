package sqltoken

import (
	"strings"
	"testing"
)

func TestSameName_letters(t *testing.T) {
	for _, c := range []struct {
		a, b          string
		same, certain bool
	}{
		{"id", "id", true, true}, {"id", "ID", true, true}, {"", "", true, true}, {"id", "i", false, false}, {"id", "ix", false, true},
		{"größe", "GRÖßE", true, true}, {"ключ", "КЛЮЧ", true, true}, {"κλειδί", "ΚΛΕΙΔΊ", true, true}, {"表", "表", true, true},
		{"größe", "grösse", false, true}, {"größe", "grosse", false, true}, {"é", "e", false, true},
		{"İd", "id", true, false}, {"ıd", "ID", true, false}, {"uſer", "user", true, false}, {"key", "\u212aey", true, false},
		{"İd", "İd", true, true}, {"İd", "İD", true, true}, {"\u212b", "å", true, false}, {"Ⴀ", "ⴀ", true, false}, {"ßa", "ẞa", true, false},
		{"id\xc3", "id", true, false}, {"id", "id\xff", true, false}, {"i\xffd", "id", true, false}, {"a\xff", "id", false, true},
	} {
		same, certain := SameName(c.a, c.b)
		if same != c.same || same && certain != c.certain {
			t.Errorf("%q and %q\nhave: %v, certain %v\nwant: %v, certain %v", c.a, c.b, same, certain, c.same, c.certain)
		}
		if back, sure := SameName(c.b, c.a); back != same || sure != certain {
			t.Errorf("%q and %q\nhave: %v, certain %v\nwant: as the other way round", c.b, c.a, back, sure)
		}
	}
}

// Names that are equal in Go's folding may be the same to a server, and have the same FoldName.
func TestSameName_eachLetter(t *testing.T) {
	for r := rune(1); r < 0x10000; r++ {
		name := string(r)
		for _, other := range []string{strings.ToLower(name), strings.ToUpper(name), strings.ToTitle(name)} {
			if same, _ := SameName(name, other); strings.EqualFold(name, other) && (!same || FoldName(name) != FoldName(other)) {
				t.Errorf("%q and %q\nhave: different\nwant: perhaps the same", name, other)
			}
		}
	}
}
