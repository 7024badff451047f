package rewrite

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

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
		"utf8mb4": CharsetUTF8, "UTF8MB3": CharsetUTF8, "utf8": CharsetUTF8, "latin1": charsetLatin1, "ascii": charsetLatin1,
		"binary": charsetOther, "gb18030": charsetOther, "cp932": charsetOther, "big5": charsetOther, "cp866": charsetOther,
		"": charsetOther, "made_up": charsetOther,
	} {
		if have := ParseCharset(name); have != want {
			t.Errorf("%s\nhave: %d\nwant: %d", name, have, want)
		}
	}
}

func TestValidPrefix_cutsWhatIsNoUTF8(t *testing.T) {
	for name, want := range map[string]string{"": "", "t": "t", "tü表": "tü表", "t\xc3": "t", "tü\xf0\x9f": "tü", "\xa0t": "", "t\ufffd": "t\ufffd"} {
		if have := validPrefix(name); have != want {
			t.Errorf("%q\nhave: %q\nwant: %q", name, have, want)
		}
	}
}

func TestASCIIEnd_findsTheFirst(t *testing.T) {
	for _, n := range []int{0, 1, 7, 31, 32, 33, 64, 100} {
		ascii := strings.Repeat("a", n)
		if have := asciiEnd(ascii); have != n {
			t.Errorf("have: %d\nwant: %d", have, n)
		}
		if have := asciiEnd(ascii + "\x80" + strings.Repeat("é", 20)); have != n {
			t.Errorf("have: %d\nwant: %d", have, n)
		}
		for at := range n { // one alone, at each place
			if have := asciiEnd(ascii[:at] + "\x80" + ascii[at:]); have != at {
				t.Errorf("have: %d\nwant: %d", have, at)
			}
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
					opts := goldenOptions(0)
					opts.Charset = ParseCharset(charset)
					broken := text[:at] + b + text[at:]
					p, err := Parse(broken, opts)
					inWord := at > 0 && at < len(text) && isWordByte(text[at-1]) && isWordByte(text[at])
					inName := opts.Charset != charsetOther && strings.Count(text[:at], "`") == 1 // another table
					if err == nil && len(p.Inserts) == 0 && !inWord && !inName {
						t.Errorf("%s: %q passes", charset, broken)
					}
					if err == nil && len(p.Inserts) > 0 && opts.Charset == charsetOther {
						t.Errorf("%s: %q is filled", charset, broken)
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
			opts := goldenOptions(0)
			opts.Charset = ParseCharset(charset)
			if p, err := Parse(text, opts); err != nil || len(p.Inserts) > 0 {
				t.Errorf("%s: %q: %v", charset, text, err)
			}
		}
	}
}

// TestExecutable_neverUnfilled puts executable comments of each kind around each part
// of INSERTs into a sharded table: all are refused, with the comment's place.
func TestExecutable_neverUnfilled(t *testing.T) {
	for _, text := range []string{
		"INSERT INTO app . t ( a ) VALUES ( 1 )", "INSERT IGNORE INTO `t` SET a = 1 , s = 'x'", "BEGIN ; REPLACE t ( a ) VALUES ( 1 )",
		"INSERT INTO t ( a ) SELECT 1 FROM x ON DUPLICATE KEY UPDATE a = 2",
	} {
		words := strings.Fields(text)
		for from := range words {
			for to := from; to <= len(words); to++ {
				for _, opening := range []string{"/*!", "/*!99999", "/*M!100100", "/*!080000", "/*!40000 free */ /*!"} {
					text := strings.Join(words[:from], " ") + " " + opening + " " + strings.Join(words[from:to], " ") + " */ " + strings.Join(words[to:], " ")
					_, err := Parse(text, goldenOptions(0))
					var failed *StatementError
					if !errors.As(err, &failed) || failed.Reason != reasonExecutable || failed.Offset != strings.Index(text, "/*") {
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
		if p, err := Parse(text, goldenOptions(0)); err != nil || len(p.Inserts) > 0 {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestErrors_showNoLiterals_inAnyCharset: where a string ends isn't known, so nothing
// after its first byte above 0x7F is shown.
func TestErrors_showNoLiterals_inAnyCharset(t *testing.T) {
	opts := goldenOptions(0)
	opts.Charset = ParseCharset("gbk")
	text := "INSERT INTO t (s) VALUES ('\xbf\\', 'secret')"
	_, err := Parse(text, opts)
	if said := fmt.Sprint(err, WithoutLiterals(text, opts, 1000), excerpt(text, opts)); err == nil || strings.Contains(said, "secret") {
		t.Error(said)
	}
}
