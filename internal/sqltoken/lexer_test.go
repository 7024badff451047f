package sqltoken

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/must"
)

// lexed shows the tokens of a string: w(ord), q(uoted), s(tring), n(umber), ?, punctuation
// unchanged, and BAD.
func lexed(text string, mode Mode) string {
	lx := Lexer{Text: text, Mode: mode}
	var out []string
	for {
		t := lx.Next()
		s := text[t.Start:t.End]
		switch t.Kind {
		case EOF:
			return strings.Join(out, " ")
		case Bad:
			return strings.Join(append(out, fmt.Sprintf("BAD@%d", t.Start)), " ")
		case Word:
			s = "w:" + s
		case Quoted:
			s = "q:" + s
		case String:
			s = "s:" + s
		case Number:
			s = "n:" + s
		}
		out = append(out, s)
	}
}

func TestLexer_tokens(t *testing.T) {
	for _, c := range cases.Read(t, "testdata/tokens.txt", 3) {
		must.Equal(t, lexed(c[1], ParseMode(c[0])), c[2], c[1])
	}
}

// TestLexer_peek: peeking changes only recorded doubts and modes.
func TestLexer_peek(t *testing.T) {
	lx := Lexer{Text: `a /*! "b\"" */ c`}
	lx.Next()
	saved := lx
	if peeked := lx.Peek(); lx.Text[peeked.Start:peeked.End] != `"b\""` {
		t.Errorf("have: %v\nwant: the string", peeked)
	}
	if lx.Pos != saved.Pos || lx.Prev != saved.Prev {
		t.Errorf("have: %+v\nwant: %+v", lx, saved)
	}
	if lx.Unsure == "" || lx.UnsureAt != 2 || !lx.executable || lx.Consulted != ANSIQuotes|NoBackslashEscapes {
		t.Errorf("have: %q at %d, consulted %b\nwant: what was learnt", lx.Unsure, lx.UnsureAt, lx.Consulted)
	}
}

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
		lx := NewLexer(text, 0, UTF8)
		for t := lx.Next(); t.Kind != EOF && t.Kind != Bad; t = lx.Next() {
		}
		if lx.Consulted != want {
			t.Errorf("%s\nhave: %b\nwant: %b", text, lx.Consulted, want)
		}
		ahead := NewLexer("[x] "+text, 0, UTF8)
		ahead.Next()
		if ahead.Peek(); ahead.Consulted&MSSQL == 0 {
			t.Errorf("%s, looked at ahead\nhave: %b\nwant: MSSQL as before", text, ahead.Consulted)
		}
	}
}

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

func TestParseInteger_takesIntegersOnly(t *testing.T) {
	for text, want := range map[string]any{
		"0": int64(0), "7": int64(7), "-7": int64(-7), "+7": int64(7), "007": int64(7),
		"9223372036854775807": int64(1<<63 - 1), "9223372036854775808": uint64(1 << 63), "18446744073709551615": uint64(1<<64 - 1),
		"-9223372036854775808": int64(-1 << 63), "18446744073709551616": nil,
		"": nil, "a": nil, "1.0": nil, "1e3": nil, "0x10": nil, "1_0": nil, " 1": nil, "--1": nil,
	} {
		must.Equal(t, ParseInteger(text, 10), want, text)
	}
}

func TestLeadingNumber_strings(t *testing.T) {
	for text, want := range map[string]float64{
		"": 0, "abc": 0, "-": 0, ".": 0, "+.e5": 0, "7": 7, " \t-3.5e2x": -350, "+.5": 0.5, "5.": 5, "5.e1": 50, "1e": 1, "1e+": 1, "1-1-1": 1, "1.5.5": 1.5,
		"1e400": math.Inf(1), "-1e400": math.Inf(-1), "1e-400": 0, "0x10": 0, "1_0": 1, "inf": 0,
	} {
		must.Equal(t, LeadingNumber(text), want, text)
	}
}

func TestParseMode_names(t *testing.T) {
	for text, want := range map[string]Mode{
		"":                      0,
		"STRICT_TRANS_TABLES":   Strict,
		"STRICT_ALL_TABLES":     Strict,
		"ANSI_QUOTES":           ANSIQuotes,
		"ansi_quotes, strict":   ANSIQuotes,
		"ANSI":                  ANSIQuotes,
		"NO_BACKSLASH_ESCAPES":  NoBackslashEscapes,
		"NO_AUTO_VALUE_ON_ZERO": NoAutoValueOnZero,
		"REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ANSI,NO_BACKSLASH_ESCAPES,NO_AUTO_VALUE_ON_ZERO": 7,
		"XANSI_QUOTES": 0,
		"EMPTY_STRING_IS_NULL,MSSQL,NO_AUTO_VALUE_ON_ZERO,NO_BACKSLASH_ESCAPES,ANSI_QUOTES,TRADITIONAL": 63,
		"STRICT_ALL_TABLES,ANSI,NO_BACKSLASH_ESCAPES,NO_AUTO_VALUE_ON_ZERO,MSSQL,EMPTY_STRING_IS_NULL":  63,
	} {
		if have := ParseMode(text); have != want {
			t.Errorf("%s\nhave: %b\nwant: %b", text, have, want)
		}
	}
}

func TestParseCharset_names(t *testing.T) {
	for name, want := range map[string]Charset{
		"utf8mb4": UTF8, "UTF8MB3": UTF8, "utf8": UTF8, "latin1": latin1, "ascii": latin1,
		"binary": other, "gb18030": other, "cp932": other, "big5": other, "cp866": other,
		"": UTF8, "made_up": other,
	} {
		must.Equal(t, ParseCharset(name), want, name)
	}
}

func TestNear_cuts(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "the end of the statement",
		" /* c */ ":              "the end of the statement",
		"a, 'x', 1.5":            `"a, ?, ?"`,
		"x 'never ended":         `"x …"`,
		strings.Repeat("a ", 40): `"` + strings.Repeat("a ", 30) + `…"`,
	} {
		must.Equal(t, Near(text, 0, UTF8), want, text)
	}
}

func TestWithoutLiterals_forms(t *testing.T) {
	for _, c := range []struct {
		text, want string
		mode       Mode
	}{
		{text: "INSERT INTO t (a) VALUES (?, 5)", want: "INSERT INTO t (a) VALUES (?, ?)"},
		{text: "INSERT  INTO\n\tt\nVALUES ('it''s', \"x\", -1.5e3, 0xFF, x'ab', b'01', NULL)", want: "INSERT INTO t VALUES (?, ?, -?, ?, x?, b?, NULL)"},
		{text: `INSERT INTO t VALUES ('a\'secret')`, want: "INSERT INTO t VALUES (?)"},
		{text: `INSERT INTO t VALUES ("secret")`, want: `INSERT INTO t VALUES ("secret")`, mode: ParseMode("ANSI_QUOTES")},
		{text: "INSERT /* user=secret */ INTO `t 1` VALUES (_utf8mb4'x', DATE '2026-01-01') -- secret", want: "INSERT INTO `t 1` VALUES (_utf8mb4?, DATE ?)"},
		{text: "INSERT INTO t VALUES ('secret", want: "INSERT INTO t VALUES (…"},
		{text: "/* secret */", want: ""},
		{text: " \n SELECT 1", want: "SELECT ?"},
		{text: "/* c */ SELECT(1)", want: "SELECT(?)"},
		{text: "INSERT INTO t2 (a1) VALUES (1),(2)", want: "INSERT INTO t2 (a1) VALUES (?),(?)"},
	} {
		must.Equal(t, WithoutLiterals(c.text, c.mode, UTF8, 1000), c.want, c.text)
	}
	for most, want := range map[int]string{7: "abc def", 6: "abc …", 3: "abc …", 2: "…"} {
		must.Equal(t, WithoutLiterals("abc def", 0, UTF8, most), want, "at most", most, "bytes")
	}
	long := "INSERT INTO t (a) VALUES " + strings.Repeat("(1),", 1000)
	if have := WithoutLiterals(long, 0, UTF8, 50); len(have) > 60 || !strings.HasSuffix(have, "…") {
		t.Errorf("have: %s\nwant: at most 50 bytes and …", have)
	}
}

func FuzzWithoutLiterals(f *testing.F) {
	f.Add("INSERT INTO t VALUES ('secret', 5)")
	f.Add("/*! 'secret' */ -- '\nx")
	f.Fuzz(func(t *testing.T, text string) {
		if have := WithoutLiterals(text, 0, UTF8, 100); len(have) > 110 {
			t.Errorf("%q: %d bytes", text, len(have))
		}
	})
}

func TestUnquoteString_literals(t *testing.T) {
	for _, c := range []struct {
		text string
		mode Mode
		want string
	}{
		{`''`, 0, ``}, {`'a'`, 0, `a`}, {`'it''s'`, 0, `it's`}, {`"it''s"`, 0, `it''s`}, {`"a""b"`, 0, `a"b`},
		{`'\n\t\r\b\0\Z\'\"\\\q'`, 0, "\n\t\r\b\x00\x1a'\"\\q"},
		{`'\%\_'`, 0, `\%\_`}, {`'''x'`, 0, `'x`}, {`'x\'`, 0, `x\`}, {`'\x'`, 0, `x`},
		{`'\n\\'`, NoBackslashEscapes, `\n\\`},
		{`'日''本'`, 0, `日'本`},
		{"'\xff\x00'", 0, "\xff\x00"},
	} {
		must.Equal(t, UnquoteString(c.text, c.mode), c.want, c.text, "mode", c.mode)
	}
}

func TestUnquoteIdentifier_undoesQuotes(t *testing.T) {
	for text, want := range map[string]string{
		"`id`": "id", "``": "", "`we``ird`": "we`ird", `"a""b"`: `a"b`,
	} {
		must.Equal(t, UnquoteIdentifier(text), want, text)
	}
}

func TestQuoteIdentifier_doublesBackquotes(t *testing.T) {
	for name, want := range map[string]string{
		"id": "`id`", "": "``", "we`ird": "`we``ird`", "``": "``````", `a"b\`: "`a\"b\\`", "表": "`表`",
	} {
		must.Equal(t, QuoteIdentifier(name), want, name)
	}
	must.Equal(t, QuoteTable("a.b", "c"), "`a.b`.`c`")
	must.Equal(t, QuoteTable("", "c"), "`c`")
}

func TestAppendLiteral_meansTheSameInEveryMode(t *testing.T) {
	for _, c := range []struct {
		key  any
		want string
		ok   bool
	}{
		{int64(-5), "-5", true},
		{uint64(1 << 63), "9223372036854775808", true},
		{"abc-DEF 1", "'abc-DEF 1'", true},
		{"", "''", true},
		{"it's", "_utf8mb4 X'69742773'", true},
		{`\`, "_utf8mb4 X'5c'", true},
		{"é", "_utf8mb4 X'c3a9'", true},
		{[]byte{0, 255}, "X'00ff'", true},
		{[]byte{}, "X''", true},
		{1.5, "", false},
		{nil, "", false},
	} {
		have, ok := AppendLiteral(nil, c.key)
		if string(have) != c.want || ok != c.ok {
			t.Errorf("%#v\nhave: %s %v\nwant: %s %v", c.key, have, ok, c.want, c.ok)
		}
	}
}

// Words are compared ignoring the case of A to Z only.
func TestFold_letters(t *testing.T) {
	for c := range byte(0x80) {
		for upper := byte('A'); upper <= 'Z'; upper++ {
			want := c == upper || c == upper|0x20
			must.Equal(t, Is(string(rune(c)), string(rune(upper))), want, c, "and", upper)
			must.Equal(t, Contains("x"+string(rune(c)), "X"+string(rune(upper))), want, c, "and", upper, "as the end of a word")
		}
	}
}

func TestValidPrefix_cutsWhatIsNoUTF8(t *testing.T) {
	for name, want := range map[string]string{"": "", "t": "t", "tü表": "tü表", "t\xc3": "t", "tü\xf0\x9f": "tü", "\xa0t": "", "t\ufffd": "t\ufffd"} {
		must.Equal(t, ValidPrefix(name), want, name)
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

func TestScan_classes(t *testing.T) {
	classes := map[Class]string{
		ClassPass: "pass", ClassMayInsert: "may insert", ClassSet: "SET", ClassUse: "USE", ClassCall: "CALL", ClassSeveral: "several",
		ClassDDL: "DDL",
	}
	for _, c := range cases.Read(t, "testdata/classes.txt", 2) {
		must.Equal(t, classes[Scan(c[1], true).Class], c[0], c[1])
	}
}

// Without multiStatements, only CREATE and ALTER are known to be one statement.
func TestScan_one(t *testing.T) {
	for text, want := range map[string]Class{
		"CREATE PROCEDURE p() BEGIN INSERT INTO t (a) VALUES (1); END":  ClassDDL,
		"/* c */ alter event e DO BEGIN DO 1; REPLACE t SET a = 1; END": ClassDDL,
		"/*!50003 CREATE FUNCTION f() BEGIN INSERT t SET a = 1; END */": ClassMayInsert,
		"SELECT 1; INSERT INTO t (a) VALUES (1)":                        ClassMayInsert,
		"INSERT INTO t (a) VALUES (1)":                                  ClassMayInsert,
		"CREATE TABLE t (a INT)":                                        ClassDDL,
	} {
		must.Equal(t, Scan(text, false).Class, want, text)
	}
}

// Words count behind any byte but a letter, also in strings and comments. Those of a statement that reads
// and changes no session, and of a single INSERT, don't count.
func TestScan_words(t *testing.T) {
	for _, c := range []struct {
		text string
		want Words
	}{
		{"SELECT 'ALTER', sql_mode, temporary FROM t", 0},
		{"INSERT INTO t (a) VALUES ('CALL')", 0},
		{"SELECT 1; alter", WordAlter},
		{"SET @a = 'x', @@session.sql_mode = '', names = 1", WordSQLMode | WordNames},
		{"SET @a = 'usernames', varchar = recall", 0},
		{"SET @@`tx_isolation` = 1", WordTransaction},
		{"SET character_set_client = 'x', @@collation_connection = 1", WordChar | WordCollation},
		{"CREATE TEMPORARY TABLE t (a INT)", WordCreate | WordTemporary},
		{"DROP SCHEMA a", WordDrop | WordDatabase},
		{"/*! call p() */", WordCall},
		{"/* alter */ EXECUTE p", WordExecute},
		{"SET @a = row_count(), @b = 1+FOUND_ROWS()", WordRowCounts},
		{"SET @a = 'é'", WordBeyondASCII},
		{"RENAME TABLE a TO b", WordRename},
	} {
		q := Scan(c.text, true)
		must.Equal(t, q.words&(WordBeyondASCII<<1-1), c.want, c.text)
	}
}

func TestScan_noAllocations(t *testing.T) {
	for _, text := range []string{"SELECT 1", "/* trace */ SELECT 1; SELECT 2", "SET @a = 'INSER'"} {
		must.Equal(t, testing.AllocsPerRun(100, func() { Scan(text, true) }), 0, text, "allocations")
	}
}

func TestMentions_functions(t *testing.T) {
	for text, want := range map[string][2]bool{
		"SELECT Last_Insert_Id()":         {true, false},
		"SELECT @@IDENTITY":               {true, false},
		"SELECT @@session.last_insert_id": {true, false},
		"SELECT @@session.identity":       {true, false},
		"SELECT @@ídentity":               {true, false},
		"SELECT laſt_ınsert_id()":         {true, false},
		"SELECT größe, ı, ſ":              {false, false},
		"SELECT identity FROM t":          {false, false},
		"SET SESSION Sql_Mode = ''":       {false, true},
		"":                                {false, false},
		"SELECT LAST_INSERT_I":            {false, false},
	} {
		must.Equal(t, [2]bool{MentionsLastInsertID(text), Contains(text, "SQL_MODE")}, want, text)
	}
}
