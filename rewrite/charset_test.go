package rewrite

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

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
					opts.Charset = charset
					other := sqltoken.ParseCharset(charset) == sqltoken.ParseCharset("gbk")
					broken := text[:at] + b + text[at:]
					p, err := Parse(broken, opts)
					inWord := at > 0 && at < len(text) && sqltoken.IsWordByte(text[at-1]) && sqltoken.IsWordByte(text[at])
					inName := !other && strings.Count(text[:at], "`") == 1 // another table
					if err == nil && len(p.Inserts) == 0 && !inWord && !inName {
						t.Errorf("%s: %q passes", charset, broken)
					}
					if err == nil && len(p.Inserts) > 0 && other {
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
			opts.Charset = charset
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
					if !errors.As(err, &failed) || !strings.Contains(failed.Message, "an executable comment") || failed.offset(text) != strings.Index(text, "/*") {
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
	opts.Charset = "gbk"
	text := "INSERT INTO t (s) VALUES ('\xbf\\', 'secret')"
	_, err := Parse(text, opts)
	if said := fmt.Sprint(err, sqltoken.WithoutLiterals(text, 0, sqltoken.ParseCharset("gbk"), 1000), sqltoken.Near(text, 0, sqltoken.ParseCharset("gbk"))); err == nil || strings.Contains(said, "secret") {
		t.Error(said)
	}
}
