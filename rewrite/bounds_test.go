package rewrite

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/internal/test/must"
)

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
	} {
		p, err := Parse(text, goldenOptions())
		if err == nil && p.anyText != want {
			t.Errorf("%s\nhave: %v\nwant: %v", text, p.anyText, want)
		}
	}
}

// The keys of a query are its own where explicit keys are kept, and checked elsewhere.
func TestInsert_keysOfQueries(t *testing.T) {
	for text, want := range map[string]KeySource{
		"INSERT INTO k (id, a) SELECT 1, 2": Literal, "INSERT INTO k (a, id) SELECT 1, 2": Literal, "INSERT INTO k (a) SELECT 2": Generated,
		"INSERT INTO t (id, a) SELECT 1, 2": Literal, "INSERT INTO t (a) SELECT 2": Generated, "INSERT INTO t (id, a) SELECT 1 + 1, 2": Expression,
		"INSERT INTO t (id, a) SELECT b, 2 FROM s": Expression, "INSERT INTO t (id, a) SELECT NULL, 2 FROM s": Generated,
		"INSERT INTO t (id, a) SELECT 5, b FROM s": Unknown, "INSERT INTO t (a) SELECT b FROM s LIMIT 1": Generated,
	} {
		in := mustParse(t, text, Options{ReportKeys: true}).Insert
		have := in.SelectKey
		if len(in.Rows) == 1 {
			have = in.Rows[0].Key
		}
		if have != want || in.AllGenerated != (want == Generated) {
			t.Errorf("%s\nhave: %v\nwant: %v", text, have, want)
		}
	}
}

// A server that reports the key of an upsert of one row alone is told no other.
func TestPlan_reportUpserts(t *testing.T) {
	const update = " ON DUPLICATE KEY UPDATE a = 2"
	for text, want := range map[string]bool{
		"INSERT INTO t (a) VALUES (1)" + update: true, "INSERT INTO t (a) VALUES (1), (2)" + update: false,
		"INSERT INTO t (a) VALUES (1)": false,
	} {
		p := mustParse(t, text, Options{Server: serverVitess, ReportKeys: true})
		if p.Insert.ReportsExistingKey != want || p.Insert.ReportsFirstKey {
			t.Errorf("%s\nhave: guarded %v, in the text %v\nwant: %v, not", text, p.Insert.ReportsExistingKey, p.Insert.ReportsFirstKey, want)
		}
	}
}

// Methods return the zero value for rows beyond the plan's.
func TestPlan_beyondItsRows(t *testing.T) {
	p := mustParse(t, "INSERT INTO t (id, a) VALUES (?, 1), (?, 2)", Options{Table: shardedByA})
	in := p.Insert
	must.Equal(t, in.Rows[1], (Row{Argument, 1}), "the second argument")
	for _, at := range [][2]int{{0, 2}, {1, 0}} {
		if have := p.Value(at[1], at[0]); have.From != Unknown {
			t.Errorf("column %d of row %d\nhave: %v\nwant: unknown", at[0], at[1], have)
		}
	}
}

func shardedByA(_, name string) *Table {
	if name != "t" {
		return nil
	}
	return &Table{Key: "id", Recorded: []string{"a"}, Fixed: []string{"a"}, Columns: []string{"id", "a"}}
}

// A string with letters beyond ASCII is known in UTF-8 only.
func TestGiven_charsets(t *testing.T) {
	for _, tt := range []struct {
		text    string
		charset string
		want    KeySource
	}{
		{"'ä'", "utf8mb4", Literal}, {"'ä'", "latin1", Unknown},
		{"'a'", "", Literal}, {"'a'", "latin1", Literal}, {"5", "latin1", Literal},
		{"f(a)", "utf8mb3", Unknown},
	} {
		p := mustParse(t, "INSERT INTO t (id, a) VALUES (1, "+tt.text+")", Options{Table: shardedByA, Charset: tt.charset})
		if have := p.Value(0, 0); have.From != tt.want {
			t.Errorf("%s in charset %s\nhave: %v\nwant: %s", tt.text, tt.charset, have, tt.want)
		}
	}
}

// x'41' is a number or a string, depending on the server and on the column.
func TestGiven_hexadecimal(t *testing.T) {
	for _, server := range append(goldenServers, "") {
		for _, text := range []string{"x'41'", "X'41'", "(x'41')", "0x41", "b'1'"} {
			tables := func(string, string) *Table { return &Table{Key: "id", Strings: true, Recorded: []string{"a"}} }
			opts := Options{Table: tables, Server: server}
			p := mustParse(t, "INSERT INTO t (id, a) VALUES (X'41', "+text+")", opts)
			if have := p.Value(0, 0); have.From != Unknown {
				t.Errorf("%s for server %q\nhave: %v\nwant: unknown", text, server, have)
			}
		}
	}
}

// A statement of the maximum length is examined.
func TestGivenNumbers_longest(t *testing.T) {
	const text = "INSERT INTO free VALUES (7, '')"
	for _, more := range []int{0, 1} {
		long := strings.Replace(text, "''", "'"+strings.Repeat("x", maxExplicit-len(text)+more)+"'", 1)
		numbers, plain := mustParse(t, long, Options{}).ExplicitNumbers()
		if want := more == 0; plain != want || (len(numbers) == 1) != want {
			t.Errorf("%d bytes\nhave: %v, plain: %v\nwant: %v", len(long), numbers, plain, want)
		}
	}
}

// A key column whose name has letters beyond ASCII is known in UTF-8 only.
func TestParse_keyColumnBeyondASCII(t *testing.T) {
	tables := func(string, string) *Table { return &Table{Key: "ключ"} }
	for charset, want := range map[string]string{"": "keys", "utf8mb3": "keys", "latin1": "refused", "gbk": "refused"} {
		must.Equal(t, becomes("INSERT INTO t (a) VALUES (1)", Options{Table: tables, Charset: charset}), want, charset)
	}
}

// Parse returns which fact it needs, and no plan. With the fact, it doesn't need it again.
func TestParse_needs(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"INSERT INTO t (a) VALUES (1)", "server"},
		{"INSERT INTO t (id) VALUES (-1)", "key column, server"},
		{"INSERT INTO t VALUES (5)", "columns, server"},
		{"INSERT INTO t SELECT 5", "columns, server"},
		{"INSERT INTO t (a) SELECT b FROM u", "server"},
		{"INSERT INTO t (id) VALUES (IGNORE)", "server"},
		{"INSERT INTO t (id) VALUES ('x')", "key column, server"},
		{"LOAD DATA INFILE 'x' INTO TABLE t", "columns"},
		{"INSERT INTO t (id, a) VALUES (1 + 1, 2)", "server, key column"},
		{"INSERT INTO t (id, a) VALUES (?, 2)", "server"},
		{"INSERT INTO u (a) VALUES (1)", ""},
		{"SELECT 1", ""},
	} {
		table := &Table{Key: "id", KeyColumnUnknown: true}
		opts := Options{ServerUnknown: true, Table: func(_, name string) *Table {
			if name != "t" {
				return nil
			}
			return table
		}}
		var have []string
		for {
			p, err := Parse(tt.text, opts)
			needs, ok := errors.AsType[*Needs](err)
			if !ok {
				break
			}
			must.Equal(t, p == nil && needs.Error() != "", true, tt.text)
			switch {
			case needs.Server:
				opts.ServerUnknown, opts.Server = false, serverMariaDB
				have = append(have, "server")
				continue
			case needs.Columns:
				table.Columns = []string{"id"}
				have = append(have, "columns")
			case needs.KeyColumn:
				table.KeyColumnUnknown = false
				have = append(have, "key column")
			}
			must.Equal(t, needs.Name, "t", tt.text)
		}
		must.Equal(t, strings.Join(have, ", "), tt.want, tt.text)
	}
}

// Values that request a key in an integer column, depending on the server's conversion.
func TestAsks_values(t *testing.T) {
	const uncertain = "uncertain"
	type of struct {
		mode              sqltoken.Mode
		ignore            bool
		row               int
		strings, unsigned bool // what the column stores
	}
	for _, tt := range []struct {
		value any
		of    of
		want  any
	}{
		{"0", of{mode: sqltoken.Strict}, true},
		{" 0 ", of{mode: sqltoken.Strict, row: 5, strings: true}, true},
		{"0.4", of{mode: sqltoken.Strict, strings: true}, true},
		{"0", of{mode: sqltoken.NoAutoValueOnZero}, false},
		{"1", of{}, false},
		{"x", of{mode: sqltoken.NoAutoValueOnZero}, false},
		// No number: converted to 0, or an error.
		{"x", of{}, true},
		{"x", of{row: 5}, true},
		{"x", of{mode: sqltoken.Strict, ignore: true}, true},
		{"x", of{mode: sqltoken.Strict}, false},
		{"x", of{mode: sqltoken.Strict, row: 1}, uncertain},
		{"x", of{strings: true}, false},
		{"", of{strings: true}, true},
		{"x", of{mode: sqltoken.Strict, ignore: true, row: 1, strings: true}, false},
		// Servers differ.
		{"é", of{}, uncertain},
		{"é", of{strings: true}, false},
		{"0\v", of{mode: sqltoken.Strict}, uncertain},
		{"0\f", of{mode: sqltoken.Strict, strings: true}, true},
		{"0e", of{mode: sqltoken.Strict}, uncertain},
		{"0e", of{}, true},
		{"0e5", of{mode: sqltoken.Strict}, uncertain},
		{"0E5", of{mode: sqltoken.Strict, strings: true}, true},
		{"0x5", of{mode: sqltoken.Strict}, false},
		{"e5", of{mode: sqltoken.Strict}, false},
		{math.NaN(), of{}, uncertain},
		{0.5, of{}, uncertain},
		{time.Time{}, of{}, uncertain},
		// Negative: converted to 0 in an unsigned column, or an error.
		{int64(-1), of{}, false},
		{int64(-1), of{unsigned: true}, true},
		{int64(-1), of{mode: sqltoken.Strict, unsigned: true}, false},
		{int64(-1), of{mode: sqltoken.Strict, unsigned: true, row: 1}, uncertain},
		{int64(-1), of{mode: sqltoken.Strict, ignore: true, unsigned: true, row: 1}, true},
		{int64(-1), of{mode: sqltoken.NoAutoValueOnZero, unsigned: true}, false},
		{int64(-1), of{strings: true}, false},
		{int64(math.MinInt64), of{unsigned: true}, true},
		{uint64(math.MaxUint64), of{unsigned: true}, false},
		{-0.4, of{mode: sqltoken.Strict}, true},
		{-0.4, of{unsigned: true}, true},
		{-0.4, of{mode: sqltoken.Strict, unsigned: true}, uncertain},
		{-0.5, of{unsigned: true}, true},
		{-0.6, of{unsigned: true}, true},
		{-0.6, of{mode: sqltoken.Strict, unsigned: true}, false},
		{-1e300, of{unsigned: true}, true},
		{math.Inf(-1), of{unsigned: true}, uncertain},
		{math.Inf(-1), of{}, false},
		{math.Inf(1), of{unsigned: true}, false},
		{"-3", of{}, false},
		{"-3", of{strings: true}, false},
		{" -3x", of{unsigned: true}, true},
		{"-3é", of{unsigned: true}, true},
		{"-3x", of{mode: sqltoken.Strict, unsigned: true}, false},
		{"-3x", of{mode: sqltoken.Strict, unsigned: true, row: 1}, uncertain},
		{[]byte("-0.4"), of{unsigned: true}, true},
		{"-0.4", of{mode: sqltoken.Strict, unsigned: true}, uncertain},
		{"-0.4x", of{mode: sqltoken.Strict, unsigned: true}, false},
		{"-0.0", of{mode: sqltoken.Strict, unsigned: true}, true},
		{"-1e18", of{unsigned: true}, true},
		{"-1e19", of{unsigned: true}, uncertain},
		{"-18446744073709551616", of{unsigned: true}, uncertain},
		{"-18446744073709551616", of{mode: sqltoken.Strict, unsigned: true}, false},
		{"-00000000000000000000003", of{unsigned: true}, true},
		{literal{"-0.4", true}, of{mode: sqltoken.Strict}, true},
		{literal{"-0.4", true}, of{mode: sqltoken.Strict, unsigned: true}, false},
		{literal{"-0.4", true}, of{unsigned: true}, true},
		{literal{"-4e-1", true}, of{mode: sqltoken.Strict, unsigned: true}, true},
		{literal{"-6e-1", true}, of{mode: sqltoken.Strict, unsigned: true}, false},
		{literal{"-6e-1", true}, of{unsigned: true}, true},
		{literal{"-18446744073709551616", true}, of{unsigned: true}, true},
		{literal{"-0x01", true}, of{unsigned: true}, true},
		{literal{"-0x00", true}, of{mode: sqltoken.Strict, unsigned: true}, true},
		{literal{"5", true}, of{unsigned: true}, false},
	} {
		in := Insert{Table: &Table{}, Ignore: tt.of.ignore}
		asks, reason, err := in.asksForKey(tt.value, tt.of.row,
			func() (sqltoken.Mode, error) { return tt.of.mode, nil },
			func() (strings, unsigned bool, err error) { return tt.of.strings, tt.of.unsigned, nil })
		have := any(asks)
		if reason != "" {
			have = uncertain
		}
		if err != nil || have != tt.want || reason != "" && asks {
			t.Errorf("%#v, %+v\nhave: %v, %q, %v\nwant: %v", tt.value, tt.of, asks, reason, err, tt.want)
		}
	}
}

// A key of a kind other than an integer needs no fact about the server.
func TestAsks_otherKinds(t *testing.T) {
	none := &Table{KeyColumnUnknown: true}
	strings := &Table{Strings: true}
	for _, tt := range []struct {
		table *Table
		value any
		want  bool
	}{
		{strings, nil, true}, {strings, "", true}, {strings, []byte{}, true}, {strings, "0", false}, {strings, int64(0), false}, {strings, "x", false},
	} {
		in := Insert{Table: tt.table}
		must.Equal(t, must.Get(in.asks(tt.value, 0, new(string), none))(t, *tt.table, tt.value), tt.want, *tt.table, tt.value)
	}
}

// A number is a key where a float holds it exactly.
func TestKept_numbers(t *testing.T) {
	for text, want := range map[string]any{
		"9007199254740992.0": int64(1) << 53, "-9007199254740992.0": int64(-1) << 53,
		"9007199254740994.0": nil, "-9007199254740994.0": nil, "9007199254740992e0": int64(1) << 53,
		"7.5": int64(8), "-7.5": int64(-8), "75e-1": int64(8), "65e-1": int64(6), "0x1F": int64(31), "-0x1F": nil,
		"2.5": int64(3), "2.5e0": int64(2), "2.5E0": int64(2), "18446744073709551615": uint64(math.MaxUint64), "18446744073709551616": nil, "'x5'": nil, "'5 '": int64(5),
	} {
		p := mustParse(t, "INSERT INTO t (id, a) VALUES ("+text+", 1)", Options{})
		must.Equal(t, p.LiteralKey(0), want, text)
	}
}

// The first row whose key is generated for certain, before an expression and without
// arguments.
func TestInsert_firstFill(t *testing.T) {
	for rows, want := range map[string]int{
		"(NULL), (5)": 0, "(5), (NULL), (NULL)": 1, "(5), (6)": -1, "(NULL), (1 + 1)": 0, "(1 + 1), (NULL)": 1,
		"(5), (NULL), (1 + 1)": 1, "(5), (1 + 1), (NULL)": 2, "(NULL), (?)": -1, "(?), (NULL)": -1, "(NULL), (1 + 1), (?)": -1,
	} {
		p := mustParse(t, "INSERT INTO t (id) VALUES "+rows, Options{})
		must.Equal(t, p.Insert.firstGenerated(), want, rows)
	}
}

// Keys that are added, and the modes that decide about them, do not hide each other.
func TestParse_consulted(t *testing.T) {
	for text, want := range map[string]sqltoken.Mode{
		`INSERT INTO t (a) VALUES ("x"), ('a\b'), ([y])`:      sqltoken.ANSIQuotes | sqltoken.NoBackslashEscapes | sqltoken.MSSQL,
		`INSERT INTO t (id, s) VALUES ('', 'a\b')`:            sqltoken.EmptyStringIsNull | sqltoken.NoAutoValueOnZero | sqltoken.Strict | sqltoken.NoBackslashEscapes,
		`INSERT INTO t (s, id) VALUES ("a\b", '')`:            sqltoken.EmptyStringIsNull | sqltoken.NoAutoValueOnZero | sqltoken.Strict | sqltoken.NoBackslashEscapes | sqltoken.ANSIQuotes,
		`INSERT INTO t (id) VALUES (''), (0), (1 + 1)`:        sqltoken.EmptyStringIsNull | sqltoken.NoAutoValueOnZero | sqltoken.Strict,
		`INSERT INTO t (id) VALUES (1 + 1), ('')`:             sqltoken.EmptyStringIsNull | sqltoken.NoAutoValueOnZero | sqltoken.Strict,
		`INSERT INTO t (id) VALUES ('x'), (0)`:                sqltoken.NoAutoValueOnZero | sqltoken.Strict,
		`INSERT INTO t (id) VALUES ('0'), (0)`:                sqltoken.NoAutoValueOnZero,
		`INSERT INTO t (id, a) VALUES (NULL, 1), (DEFAULT,2)`: 0,
		"INSERT INTO t (`a\"`) VALUES (1) -- \" \\":           0,
		`INSERT INTO t (id) VALUES (5), ('7x')`:               0,
		`INSERT INTO t (id) VALUES (1 + 1)`:                   sqltoken.NoAutoValueOnZero,
	} {
		p := mustParse(t, text, Options{})
		if p.consulted != want {
			t.Errorf("%s\nhave:%s\nwant:%s", text, namesOf(p.consulted), namesOf(want))
		}
	}
}

// TestCharset_neverUnfilled puts bytes at each place of INSERTs into a sharded table: each byte
// above 0x7F, and pairs that form one character in gbk, sjis and big5. In each character set the
// statement gets a key or is refused. It is refused if the byte may hide the end of a string.
func TestCharset_neverUnfilled(t *testing.T) {
	texts := []string{
		"INSERT INTO app.t (a) VALUES (1)", "INSERT INTO t (a, s) VALUES (1, 'x')", "SELECT 1; INSERT INTO `t` SET a = 1",
		"REPLACE t VALUES (NULL, 1, 'x')", "INSERT IGNORE INTO t (id, s) VALUES (0, ', 5), (NULL')",
	}
	bytes := []string{"\xa0", "\x80", "\xff", "\xbf\\", "\x83\\", "\xa5`", "\xe9"}
	for _, charset := range []string{"latin1", "ascii", "gbk", "sjis", "big5", "cp866", "binary"} {
		for _, text := range texts {
			for at := range len(text) + 1 {
				for _, b := range bytes {
					opts := goldenOptions()
					opts.Charset = charset
					other := sqltoken.ParseCharset(charset) == sqltoken.ParseCharset("gbk")
					broken := text[:at] + b + text[at:]
					have := becomes(broken, opts)
					inWord := at > 0 && at < len(text) && sqltoken.IsWordByte(text[at-1]) && sqltoken.IsWordByte(text[at])
					inName := !other && strings.Count(text[:at], "`") == 1 // another table
					if have == "passes" && !inWord && !inName || have == "keys" && other {
						t.Errorf("%s: %q\nhave: %s", charset, broken, have)
					}
				}
			}
		}
	}
}

// TestCharset_passesOthers: a statement that inserts into other tables is passed through in each
// character set.
func TestCharset_passesOthers(t *testing.T) {
	for _, charset := range []string{"latin1", "gbk", "sjis", "cp866"} {
		for _, text := range []string{
			"INSERT INTO free (s) VALUES ('\xbf\\')", "INSERT INTO free (s) VALUES ('\xbf\\'); SELECT 1", "INSERT INTO free (\xe9) VALUES (1)",
			"INSERT INTO free (s) VALUES ('INSERT INTO t\xbf')", "SELECT '\xbf\\'; INSERT INTO free (s) VALUES ('\xe9')",
			"SET @a = '\xbf INSERT INTO free'",
		} {
			opts := goldenOptions()
			opts.Charset = charset
			must.Equal(t, becomes(text, opts), "passes", charset, text)
		}
	}
}

// TestExecutable_neverUnfilled puts executable comments of each kind around each part
// of INSERTs into a sharded table: all are refused, with the comment's place.
func TestExecutable_neverUnfilled(t *testing.T) {
	for _, text := range []string{
		"INSERT INTO app . t ( a ) VALUES ( 1 )", "INSERT IGNORE INTO `t` SET a = 1 , s = 'x'", "REPLACE t ( a ) VALUES ( 1 )",
		"INSERT INTO t ( a ) SELECT 1 FROM x ON DUPLICATE KEY UPDATE a = 2",
	} {
		words := strings.Fields(text)
		for from := range words {
			for to := from; to <= len(words); to++ {
				for _, opening := range []string{"/*!", "/*!99999", "/*M!100100", "/*!080000", "/*!40000 free */ /*!"} {
					text := strings.Join(words[:from], " ") + " " + opening + " " + strings.Join(words[from:to], " ") + " */ " + strings.Join(words[to:], " ")
					_, err := Parse(text, goldenOptions())
					if failed, ok := errors.AsType[*StatementError](err); !ok || !strings.Contains(failed.Message, "an executable comment") || failed.offset(text) != strings.Index(text, "/*") {
						t.Fatalf("%s\nhave: %v\nwant: refused at the comment", text, err)
					}
				}
			}
		}
	}
}

// TestExecutable_passesOthers: a statement without an INSERT into a sharded table is passed
// through, for example those of a dump.
func TestExecutable_passesOthers(t *testing.T) {
	for _, text := range []string{
		"/*!40101 SET NAMES utf8 */", "/*!99999 INSERT INTO free (a) VALUES (1) */", "INSERT /*!50000 INTO */ free (a) VALUES (1)",
		"INSERT INTO free (a) VALUES (1 /*!50000 , 't' */)", "/*!40000 ALTER TABLE t DISABLE KEYS */",
		"/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1 */",
		"/*!50001 CREATE VIEW v AS SELECT REPLACE(a, 'x', 'y') FROM t */",
		"/*!50003 CREATE*/ /*!50003 TRIGGER x AFTER INSERT ON t FOR EACH ROW INSERT INTO audit VALUES (NEW.id) */",
	} {
		must.Equal(t, becomes(text, goldenOptions()), "passes", text)
	}
}

// TestErrors_showNoLiterals_inAnyCharset: where a string ends isn't known, so nothing
// after its first byte above 0x7F is shown.
func TestErrors_showNoLiterals_inAnyCharset(t *testing.T) {
	opts := goldenOptions()
	opts.Charset = "gbk"
	text := "INSERT INTO t (s) VALUES ('\xbf\\', 'secret')"
	_, err := Parse(text, opts)
	if said := fmt.Sprint(err, sqltoken.WithoutLiterals(text, 0, sqltoken.ParseCharset("gbk"), 1000), sqltoken.Near(text, 0, sqltoken.ParseCharset("gbk"))); err == nil || strings.Contains(said, "secret") {
		t.Error(said)
	}
}

// A literal in a select list may have an alias.
func TestGiven_aliases(t *testing.T) {
	for text, want := range map[string]KeySource{
		"INSERT INTO t (a, b) SELECT 5 AS x, 2": Literal, "INSERT INTO t (a, b) SELECT 5 x, 2": Literal, "INSERT INTO t (a, b) VALUES (5, 2)": Literal,
		"INSERT INTO t SET a = 5, b = 2": Literal, "INSERT INTO t (a, b) SELECT f(5) x, 2": Unknown,
	} {
		have := mustParse(t, text, Options{Table: shardedByA}).Value(0, 0)
		if have.From != want || want == Literal && have.Literal != any(int64(5)) {
			t.Errorf("%s\nhave: %+v\nwant: %v", text, have, want)
		}
	}
}

func TestReturnsKey(t *testing.T) {
	for clause, want := range map[string]bool{"id": true, "`id`": true, "t.id": true, "a": false, "id, a": false, "id + 1": false, "1": false, "*": false} {
		p := mustParse(t, "INSERT INTO t (a) VALUES (1) RETURNING "+clause, Options{Server: serverMariaDB, Table: shardedByA})
		must.Equal(t, p.Insert.ReturnsKey, want, clause)
	}
}

// The row alias of a row without values has no list: the row has all columns.
func TestRowAlias_ofNothing(t *testing.T) {
	p := mustParse(t, "INSERT INTO t () VALUES () AS new ON DUPLICATE KEY UPDATE a = 1", Options{Server: serverMySQL, Table: shardedByA})
	must.Equal(t, p.Query(), "INSERT INTO t (`id`) VALUES (?) AS new ON DUPLICATE KEY UPDATE a = 1")
}
