package rewrite

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// The modes that a reading depends on add up, in whatever order they come.
func TestLexer_consulted(t *testing.T) {
	for text, want := range map[string]Mode{
		"a 1 ? (`b\\`)":         0,
		"[x]":                   MSSQL,
		`"y"`:                   ANSIQuotes,
		`'a\b'`:                 NoBackslashEscapes,
		`[x] "y" 'a\b'`:         MSSQL | ANSIQuotes | NoBackslashEscapes,
		`'a\b' [x] "y"`:         MSSQL | ANSIQuotes | NoBackslashEscapes,
		`"y" 'a\b' [x]`:         MSSQL | ANSIQuotes | NoBackslashEscapes,
		`"a\b"`:                 ANSIQuotes | NoBackslashEscapes,
		"[x] 'no end":           MSSQL,
		`[x] 'no end \ `:        MSSQL | NoBackslashEscapes,
		`'\`:                    NoBackslashEscapes,
		"[x] `no end \\ ":       MSSQL,
		`'a' 'it''s' '\\' "\""`: ANSIQuotes | NoBackslashEscapes,
	} {
		lx := newLexer(text, 0, CharsetUTF8)
		for t := lx.next(); t.kind != tokenEOF && t.kind != tokenBad; t = lx.next() {
		}
		if lx.consulted != want {
			t.Errorf("%s\nhave: %b\nwant: %b", text, lx.consulted, want)
		}
		ahead := newLexer("[x] "+text, 0, CharsetUTF8)
		ahead.next()
		if ahead.peek(); ahead.consulted&MSSQL == 0 {
			t.Errorf("%s, looked at ahead\nhave: %b\nwant: MSSQL as before", text, ahead.consulted)
		}
	}
}

// TestPlan_consultedCharset: a plan depends on the character set only if the part of the statement
// that was read has bytes above 0x7F.
func TestPlan_consultedCharset(t *testing.T) {
	for text, want := range map[string]bool{
		"INSERT INTO t (a) VALUES (1)":                   false,
		"INSERT INTO t (s) VALUES ('é')":                 true,
		"INSERT INTO free (s) VALUES ('é')":              false,
		"INSERT INTO free (s) VALUES ('é');":             false,
		"INSERT INTO free (s) VALUES ('a'); SELECT 'é'":  false,
		"INSERT INTO é (s) VALUES ('a')":                 true,
		"INSERT INTO free (s) VALUES ('é'); SELECT 1":    false,
		"INSERT INTO free (s) VALUES ('é'); REPLACE x":   true,
		"/* é */ INSERT INTO free (s) VALUES ('é')":      true,
		"INSERT INTO t (a) VALUES (1234567, 'abcdefg')é": true,
		"ANALYZE SELECT 'é'":                             true,
		"ANALYZE SELECT 'e'":                             false,
	} {
		p, err := Parse(text, goldenOptions(0))
		if err == nil && p.ConsultedCharset != want {
			t.Errorf("%s\nhave: %v\nwant: %v", text, p.ConsultedCharset, want)
		}
	}
}

// Placeholders are counted as far as the text is read.
func TestParse_params(t *testing.T) {
	for text, want := range map[string]int{
		"?": 1, "CREATE PROCEDURE p() SELECT ?; ANALYZE SELECT ?": 2, "INSERT INTO t (a) VALUES (?), (?)": 2,
		"INSERT INTO t (a) SELECT ? FROM x WHERE b = ? ON DUPLICATE KEY UPDATE a = ?": 3,
	} {
		if have := mustParse(t, text, Options{}).Params(); have != want {
			t.Errorf("%s\nhave: %d\nwant: %d", text, have, want)
		}
	}
}

// A query that gives the key itself is left alone where explicit keys are kept.
func TestInsert_keepsSource(t *testing.T) {
	for text, want := range map[string]bool{
		"INSERT INTO k (id, a) SELECT 1, 2": true, "INSERT INTO k (a, id) SELECT 1, 2": true, "INSERT INTO k (a) SELECT 2": false,
		"INSERT INTO t (id, a) SELECT 1, 2": false, "INSERT INTO k (id, a) VALUES (1, 2)": false,
	} {
		if have := mustParse(t, text, Options{}).Inserts[0].KeepsSource(); have != want {
			t.Errorf("%s\nhave: %v\nwant: %v", text, have, want)
		}
	}
}

// INSERTs into other tables are those between two statements.
func TestPlan_insertsElsewhere(t *testing.T) {
	p := mustParse(t, "INSERT INTO t (a) VALUES (1); INSERT INTO x (a) VALUES (1); COMMIT; INSERT INTO t (a) VALUES (1)", Options{})
	for _, tt := range []struct {
		from, to int
		want     bool
	}{{0, 3, true}, {0, 2, true}, {0, 1, false}, {1, 3, false}, {-1, 1, false}, {-1, 9, true}} {
		if have := p.InsertsElsewhere(tt.from, tt.to); have != tt.want {
			t.Errorf("after %d and before %d\nhave: %v\nwant: %v", tt.from, tt.to, have, tt.want)
		}
	}
}

// A server that reports the key of an upsert of one row alone is told no other.
func TestPlan_reportUpserts(t *testing.T) {
	const update = " ON DUPLICATE KEY UPDATE a = 2"
	for text, want := range map[string]bool{
		"INSERT INTO t (a) VALUES (1)" + update: true, "INSERT INTO t (a) VALUES (1), (2)" + update: false,
		"INSERT INTO t (a) VALUES (1)": false, "COMMIT; INSERT INTO t (a) VALUES (1)" + update: false,
	} {
		p := mustParse(t, text, Options{})
		if p.ReportUpserts(); p.Inserts[0].Guarded != want || p.Inserts[0].InText {
			t.Errorf("%s\nhave: guarded %v, in the text %v\nwant: %v, not", text, p.Inserts[0].Guarded, p.Inserts[0].InText, want)
		}
	}
}

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
			{classWord, c >= 0x80 || in(words)}, {classBlank, in(" \t\n\v\f\r")}, {classComment, in("#-/*")},
			{classValue, in("#-/*'\"`[(),;?@")}, {classVerb, in("iIrRlL")},
		} {
			if has.in {
				want |= has.class
			}
		}
		if class[c] != want {
			t.Errorf("%q\nhave: %b\nwant: %b", rune(c), class[c], want)
		}
		if c >= 0x80 {
			want |= classValue
		}
		if latin1Class[c] != want {
			t.Errorf("%q in latin1\nhave: %b\nwant: %b", rune(c), latin1Class[c], want)
		}
	}
}

// Words are compared ignoring the case of A to Z only.
func TestFold_letters(t *testing.T) {
	for c := range byte(0x80) {
		for upper := byte('A'); upper <= 'Z'; upper++ {
			want := c == upper || c == upper|0x20
			if have := fold(string(rune(c)), string(rune(upper))); have != want {
				t.Errorf("%q and %q\nhave: %v\nwant: %v", c, upper, have, want)
			}
			if have := containsFold("x"+string(rune(c)), "X"+string(rune(upper))); have != want {
				t.Errorf("%q and %q as the end of a word\nhave: %v\nwant: %v", c, upper, have, want)
			}
		}
	}
}

// Methods return the zero value for rows beyond the plan's.
func TestPlan_beyondItsRows(t *testing.T) {
	p := mustParse(t, "INSERT INTO t (id, a) VALUES (?, 1), (?, 2)", Options{Tables: shardedByA})
	in := &p.Inserts[0]
	for _, i := range []int{-1, 2, math.MaxInt} {
		if kind, param := in.Slot(i); kind != SlotFill || param != 0 {
			t.Errorf("row %d\nhave: %d, %d\nwant: the zero value", i, kind, param)
		}
	}
	if kind, param := in.Slot(1); kind != SlotParam || param != 1 {
		t.Errorf("have: %d, %d\nwant: the second argument", kind, param)
	}
	for _, at := range [][2]int{{0, 2}, {1, 0}} {
		if kind, _, _ := p.Given(in, at[0], at[1]); kind != GivenUnknown {
			t.Errorf("column %d of row %d\nhave: %d\nwant: unknown", at[0], at[1], kind)
		}
	}
}

func shardedByA(_, name string) *Table {
	if name != "t" {
		return nil
	}
	return &Table{KeyColumn: "id", Kind: KindInteger, Sharding: []string{"a"}, Fixed: []string{"a"}, Columns: []string{"id", "a"}}
}

// A string with letters beyond ASCII is known in UTF-8 only.
func TestGiven_charsets(t *testing.T) {
	for _, tt := range []struct {
		text    string
		charset Charset
		want    GivenKind
	}{
		{"'ä'", CharsetUTF8, GivenLiteral}, {"'ä'", charsetLatin1, GivenUnknown},
		{"'a'", CharsetUTF8, GivenLiteral}, {"'a'", charsetLatin1, GivenLiteral}, {"5", charsetLatin1, GivenLiteral},
		{"f(a)", CharsetUTF8, GivenUnknown},
	} {
		p := mustParse(t, "INSERT INTO t (id, a) VALUES (1, "+tt.text+")", Options{Tables: shardedByA, Charset: tt.charset})
		if kind, _, _ := p.Given(&p.Inserts[0], 0, 0); kind != tt.want {
			t.Errorf("%s in charset %d\nhave: %d\nwant: %d", tt.text, tt.charset, kind, tt.want)
		}
	}
}

// A statement of the maximum length is examined.
func TestGivenNumbers_longest(t *testing.T) {
	const text = "INSERT INTO free VALUES (7, '')"
	for _, more := range []int{0, 1} {
		long := strings.Replace(text, "''", "'"+strings.Repeat("x", maxGiven-len(text)+more)+"'", 1)
		numbers, plain := mustParse(t, long, Options{}).GivenNumbers()
		if want := more == 0; plain != want || (len(numbers) == 1) != want {
			t.Errorf("%d bytes\nhave: %v, plain: %v\nwant: %v", len(long), numbers, plain, want)
		}
	}
}

// A key column whose name has letters beyond ASCII is known in UTF-8 only.
func TestParse_keyColumnBeyondASCII(t *testing.T) {
	tables := func(string, string) *Table { return &Table{KeyColumn: "ключ", Kind: KindInteger} }
	for charset, refused := range map[Charset]bool{CharsetUTF8: false, charsetLatin1: true, charsetOther: true} {
		_, err := Parse("INSERT INTO t (a) VALUES (1)", Options{Tables: tables, Charset: charset})
		if errors.Is(err, ErrUnsupportedStatement) != refused || !refused && err != nil {
			t.Errorf("charset %d\nhave: %v\nwant: refused: %v", charset, err, refused)
		}
	}
}

// Parse returns the errors of the functions in Options.
func TestParse_answersThatAreErrors(t *testing.T) {
	away := errors.New("the server is gone")
	opts := Options{
		Tables:       func(string, string) *Table { return &Table{KeyColumn: "id"} },
		Kind:         func(*Table) (Kind, error) { return 0, away },
		Columns:      func(*Insert) ([]string, error) { return nil, away },
		Dialect:      func() (Dialect, error) { return 0, away },
		KeepsStrings: func(*Insert) (bool, error) { return false, away },
	}
	integer := opts
	integer.Kind = func(*Table) (Kind, error) { return KindInteger, nil }
	for text, o := range map[string]Options{
		"INSERT INTO t (id) VALUES (0)":                    opts,
		"INSERT INTO t VALUES (5)":                         opts,
		"INSERT INTO t SELECT 5":                           opts,
		"INSERT INTO t (id) VALUES (IGNORE)":               integer,
		"INSERT INTO t (id) VALUES ('x')":                  integer,
		"LOAD DATA INFILE 'x' INTO TABLE t":                opts,
		"INSERT INTO t (id, a) VALUES (1 + 1, 2)":          opts,
		"INSERT INTO t SET id = 0 ON DUPLICATE KEY UPDATE": opts,
	} {
		if p, err := Parse(text, o); !errors.Is(err, away) || p != nil {
			t.Errorf("%s\nhave: %v, %v\nwant: %v", text, p, err, away)
		}
	}
}

// Strings that request a key in an integer column, depending on the server's conversion.
func TestAsksForKey_strings(t *testing.T) {
	const uncertain = "uncertain"
	for _, tt := range []struct {
		s      string
		mode   Mode
		ignore bool
		row    int
		kept   bool // the column holds strings
		want   any
	}{
		{"0", Strict, false, 0, false, true},
		{" 0 ", Strict, false, 5, true, true},
		{"0.4", Strict, false, 0, true, true},
		{"0", NoAutoValueOnZero, false, 0, false, false},
		{"1", 0, false, 0, false, false},
		{"x", NoAutoValueOnZero, false, 0, false, false},
		// No number: converted to 0, or an error.
		{"x", 0, false, 0, false, true},
		{"x", 0, false, 5, false, true},
		{"x", Strict, true, 0, false, true},
		{"x", Strict, false, 0, false, false},
		{"x", Strict, false, 1, false, uncertain},
		{"x", 0, false, 0, true, false},
		{"x", Strict, true, 1, true, false},
		// Servers differ.
		{"é", 0, false, 0, false, uncertain},
		{"é", 0, false, 0, true, false},
		{"0\v", Strict, false, 0, false, uncertain},
		{"0\f", Strict, false, 0, true, true},
		{"0e", Strict, false, 0, false, uncertain},
		{"0e", 0, false, 0, false, true},
		{"0e5", Strict, false, 0, false, uncertain},
		{"0E5", Strict, false, 0, true, true},
		{"0x5", Strict, false, 0, false, false},
		{"e5", Strict, false, 0, false, false},
	} {
		asks, reason, err := AsksForKey(tt.s, tt.mode, tt.ignore, tt.row, func() (bool, error) { return tt.kept, nil })
		have := any(asks)
		if reason != "" {
			have = uncertain
		}
		if err != nil || have != tt.want || reason != "" && asks {
			t.Errorf("%q, mode %b, ignore %v, row %d, strings are kept: %v\nhave: %v, %q, %v\nwant: %v",
				tt.s, tt.mode, tt.ignore, tt.row, tt.kept, asks, reason, err, tt.want)
		}
	}
}

// A number is a key where a float holds it exactly.
func TestKept_numbers(t *testing.T) {
	for text, want := range map[string]any{
		"9007199254740992.0": int64(1) << 53, "-9007199254740992.0": int64(-1) << 53,
		"9007199254740994.0": nil, "-9007199254740994.0": nil, "9007199254740992e0": int64(1) << 53,
		"7.5": int64(8), "-7.5": int64(-8), "75e-1": int64(8), "65e-1": int64(6), "0x1F": int64(31), "-0x1F": nil,
		"18446744073709551615": uint64(math.MaxUint64), "18446744073709551616": nil, "'x5'": nil, "'5 '": int64(5),
	} {
		p := mustParse(t, "INSERT INTO t (id, a) VALUES ("+text+", 1)", Options{})
		if have := p.Kept(&p.Inserts[0], 0); have != want {
			t.Errorf("%s\nhave: %#v\nwant: %#v", text, have, want)
		}
	}
}

// The first row whose key is generated for certain, before an expression and without
// arguments.
func TestInsert_firstFill(t *testing.T) {
	for rows, want := range map[string]int{
		"(NULL), (5)": 0, "(5), (NULL), (NULL)": 1, "(5), (6)": -1, "(NULL), (1 + 1)": 0, "(1 + 1), (NULL)": -1,
		"(5), (NULL), (1 + 1)": 1, "(5), (1 + 1), (NULL)": -1, "(NULL), (?)": -1, "(?), (NULL)": -1, "(NULL), (1 + 1), (?)": -1,
	} {
		p := mustParse(t, "INSERT INTO t (id) VALUES "+rows, Options{})
		if have := p.Inserts[0].firstFill(); have != want {
			t.Errorf("%s\nhave: %d\nwant: %d", rows, have, want)
		}
	}
}

// Keys that are added, and the modes that decide about them, do not hide each other.
func TestParse_consulted(t *testing.T) {
	for text, want := range map[string]Mode{
		`INSERT INTO t (a) VALUES ("x"), ('a\b'), ([y])`:      ANSIQuotes | NoBackslashEscapes | MSSQL,
		`INSERT INTO t (id, s) VALUES ('', 'a\b')`:            EmptyStringIsNull | NoAutoValueOnZero | Strict | NoBackslashEscapes,
		`INSERT INTO t (s, id) VALUES ("a\b", '')`:            EmptyStringIsNull | NoAutoValueOnZero | Strict | NoBackslashEscapes | ANSIQuotes,
		`INSERT INTO t (id) VALUES (''), (0), (1 + 1)`:        EmptyStringIsNull | NoAutoValueOnZero | Strict,
		`INSERT INTO t (id) VALUES (1 + 1), ('')`:             EmptyStringIsNull | NoAutoValueOnZero | Strict,
		`INSERT INTO t (id) VALUES ('x'), (0)`:                NoAutoValueOnZero | Strict,
		`INSERT INTO t (id) VALUES ('0'), (0)`:                NoAutoValueOnZero,
		`INSERT INTO t (id, a) VALUES (NULL, 1), (DEFAULT,2)`: 0,
		"INSERT INTO t (`a\"`) VALUES (1) -- \" \\":           0,
		`INSERT INTO t (id) VALUES (5), ('7x')`:               0,
		`INSERT INTO t (id) VALUES (1 + 1)`:                   NoAutoValueOnZero,
	} {
		p := mustParse(t, text, Options{})
		if p.Consulted != want {
			t.Errorf("%s\nhave:%s\nwant:%s", text, p.Consulted.names(), want.names())
		}
	}
}

// An error has the line and the column of the problem.
func TestParse_errorsNameTheirPlace(t *testing.T) {
	for text, want := range map[string]string{
		"INSERT INTO t (a) VALUES (1) what":  "line 1, column 30",
		"INSERT INTO t\n(a)\nVALUES (1) wha": "line 3, column 12",
		"INSERT INTO t what":                 "line 1, column 15",
	} {
		if _, err := Parse(text, Options{Tables: goldenTables}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q\nhave: %v\nwant: %s", text, err, want)
		}
	}
}
