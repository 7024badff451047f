package driver

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// unusual returns unusual values of a variable, as literals. The server refuses those of another type.
func unusual(name, value string) []string {
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		return []string{"0", "1"}
	}
	switch value {
	case "ON":
		return []string{"OFF"}
	case "OFF":
		return []string{"ON"}
	}
	all := []string{"''", "NULL", "1", "'2020-01-01 00:00:00'", "'SERIALIZABLE'", "'READ-UNCOMMITTED'", "'MyISAM'", "'tr_TR'", "'UTC'"}
	if strings.Contains(name, "character_set") || strings.Contains(name, "collation") {
		all = append(all, "utf16", "utf16_bin", "filename", "latin1", "latin5_bin", "swe7", "binary", "gbk", "utf8mb4_bin")
	}
	if strings.Contains(name, "mode") {
		all = append(all, "'ANSI,ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE,IGNORE_SPACE,PAD_CHAR_TO_FULL_LENGTH,REAL_AS_FLOAT'",
			"'TRADITIONAL'", "'ORACLE'", "'MSSQL'", "'NO_FIELD_OPTIONS'", "'EMPTY_STRING_IS_NULL'")
	}
	if name == "optimizer_switch" {
		for pair := range strings.SplitSeq(value, ",") {
			flag, is, _ := strings.Cut(pair, "=")
			all = append(all, "'"+flag+"="+map[string]string{"on": "off", "off": "on"}[is]+"'")
		}
	}
	return all
}

// Whatever the program sets in its session, the facts about a table are the same, or the server doesn't
// answer, and the rows of an INSERT IGNORE are found.
func TestFacts_eachVariable(t *testing.T) { onEach(t, testFacts_eachVariable) }

func testFacts_eachVariable(t *testing.T) {
	_, _, c, db, plain := twoDatabases(t)
	mustExec(t, plain, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT UNIQUE)")
	mustExec(t, plain, "CREATE TABLE u (x ENUM('a'), id BIGINT UNSIGNED NOT NULL, n INT NOT NULL AUTO_INCREMENT UNIQUE, PRIMARY KEY (id))")
	mustExec(t, plain, "CREATE TRIGGER tr BEFORE INSERT ON u FOR EACH ROW SET NEW.id = 5")
	mustExec(t, plain, "CREATE TRIGGER tr2 AFTER INSERT ON u FOR EACH ROW SET @x = LAST_INSERT_ID()")
	mustExec(t, plain, "CREATE VIEW v AS SELECT id, n FROM u")
	mustExec(t, plain, "INSERT INTO t (id, a) VALUES (1, 1)")
	want := describeTables(t, c)
	if strings.Count(want, "?") > 0 || strings.Count(want, "\n") != 3 {
		t.Fatalf("have: %s", want)
	}
	rows := must(plain.Query("SHOW SESSION VARIABLES"))(t)
	defer rows.Close()
	var names []string
	values := map[string]string{}
	for rows.Next() {
		var name, value string
		noError(t, rows.Scan(&name, &value))
		names = append(names, name)
		values[name] = value
	}
	set, unanswered, next := 0, map[string]bool{}, 1
	for _, name := range names {
		if slices.Contains([]string{"gtid_next", "pseudo_replica_mode", "pseudo_slave_mode"}, name) {
			continue // the connection isn't a program's
		}
		for _, own := range []bool{false, true}[:1+strings.Count(name, "limit")+strings.Count(name, "character_set_r")] {
			session := must(db.Conn(t.Context()))(t)
			if own {
				mustExec(t, session, "CREATE TEMPORARY TABLE own (a INT)")
			}
			for _, value := range unusual(name, values[name]) {
				if _, err := session.ExecContext(t.Context(), "SET SESSION "+name+" = "+value); err != nil {
					continue
				}
				set++
				setting := fmt.Sprintf("%s = %s, own tables %v", name, value, own)
				for i, have := range strings.Split(describeTables(t, session), "\n") {
					if strings.Contains(have, "?") {
						unanswered[name] = true
					} else {
						equal(t, have, strings.Split(want, "\n")[i], setting)
					}
				}
				next++
				var keys Keys
				if _, err := session.ExecContext(WithKeys(t.Context(), &keys), "INSERT IGNORE INTO t (a) VALUES (1), (?)", next); err != nil {
					continue
				}
				if name == "autocommit" {
					mustExec(t, session, "COMMIT")
				}
				key := cmp.Or(column(t, plain, fmt.Sprintf("SELECT id FROM t WHERE a = %d", next)), "<nil>")
				if keys.Values()[1] == nil && key != "<nil>" { // uncommitted, or the rows couldn't be read
					unanswered["INSERT IGNORE under "+name] = true
					continue
				}
				equal(t, fmt.Sprint(keys.Values()), "[<nil> "+key+"]", setting)
			}
			_ = session.Close() // a timeout may have closed it
			db.SetMaxIdleConns(0)
		}
	}
	t.Logf("%d settings of %d variables, not answered under %v", set, len(names), unanswered)
	if set < 250 {
		t.Errorf("have: %d settings", set)
	}
}

// describeTables returns the facts that a session learns about the tables of testFacts_eachVariable, a line
// each. An unanswered question is "?".
func describeTables(t *testing.T, c *sql.Conn) string {
	t.Helper()
	var all strings.Builder
	noError(t, c.Raw(func(under any) error {
		s := &under.(*conn).session
		for _, name := range []string{"t", "u", "v"} {
			known, err := s.AskFacts(t.Context(), "", name)
			if err != nil || known.Column("id").Unanswered {
				all.WriteString("?\n")
				continue
			}
			id := known.Column("id")
			fmt.Fprintln(&all, known.Opaque, known.Versioned, id.Text, id.Stores, id.NotNull, id.OtherHasAutoIncrement, id.MayHaveOther,
				id.HasTriggers, id.Triggered, id.ReadsLastID, known.Column("x").Text)
		}
		return nil
	}))
	return all.String()
}
