package driver

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// What tells nothing of itself is asked for its shards, once in a connector.
func TestServer_askedForItsShards(t *testing.T) {
	for _, c := range []struct {
		comment string
		shards  bool
		asked   int
		want    string
	}{
		{"", true, 1, `server: vitess ("8.0.40"), with ids of upserts`},
		{"", false, 1, `server: other ("8.0.40"), with`},
		{"MySQL Community Server - GPL", false, 0, `server: mysql ("8.0.40"), with insert ids`},
	} {
		base := &lyingBase{rows: func(query string) (driver.Rows, error) {
			switch {
			case strings.Contains(query, "VERSION()"):
				return answer{[]string{"v", "c"}, [][]driver.Value{{"8.0.40", c.comment}}}.rows(), nil
			case strings.Contains(query, "VITESS_SHARDS") && c.shards:
				return answer{[]string{"Shards"}, [][]driver.Value{{"app/-80"}}}.rows(), nil
			}
			return nil, &mysql.MySQLError{Number: 1064, Message: "syntax"}
		}}
		connector := mustConnector(t, base, taggedSnowflake(t))
		if text := connector.Describe(); !strings.Contains(text, "server: auto, not asked yet") {
			t.Errorf("before\nhave: %s", text)
		}
		db := sql.OpenDB(connector)
		for range 3 {
			mustExec(t, db, "INSERT INTO ruled (a) VALUES (1)")
		}
		if text := connector.Describe(); !strings.Contains(text, c.want) {
			t.Errorf("have: %s\nwant: %s", text, c.want)
		}
		equal(t, len(base.sent("VITESS_SHARDS")), c.asked, c.comment, "asked", "times")
		_ = db.Close()
	}
}

func TestServer_kinds(t *testing.T) {
	for _, kind := range []string{"mysql", "mariadb", "vitess", "tidb", "other"} {
		base := &lyingBase{}
		connector := must(NewConnector(base, taggedSnowflake(t), Config{Server: kind}))(t)
		if text := connector.Describe(); !strings.Contains(text, "server: "+kind+", with") {
			t.Errorf("have: %s", text)
		}
		db := sql.OpenDB(connector)
		mustExec(t, db, "INSERT INTO ruled (a) VALUES (1)")
		equal(t, len(base.sent("VERSION()")), 0, kind, "is asked what it is")
		_ = db.Close()
	}
	var wrong *DSNError
	if _, err := NewConnector(&lyingBase{}, testRule(t), Config{Server: "Vitess"}); !errors.As(err, &wrong) || !strings.Contains(wrong.Reason, "vitess, tidb") {
		t.Errorf("have: %v", err)
	}
}

// What an upsert tells on a server whose insert id may be missing or another column's.
func TestUpsert_ofUnsureServer(t *testing.T) {
	const made, existing = 1001, 77
	for _, c := range []struct {
		name         string
		affected, id int64
		present      bool // the insert id is a row's key
		foundRows    bool
		want         int64
		keys         any
	}{
		{"new", 1, 0, false, false, made, int64(made)},
		{"changed", 2, existing, true, false, existing, int64(existing)},
		{"unchanged", 0, existing, true, false, 0, int64(existing)},
		{"changed, not told", 2, 0, false, false, 0, nil},
		{"changed, and a sequence's id told", 2, 31, false, false, 0, nil},
		{"new, and a sequence's id told", 1, 31, false, false, made, int64(made)},
	} {
		base := &lyingBase{
			result: func(query string) (driver.Result, error) { return lyingResult{c.id, c.affected}, nil },
			rows: func(query string) (driver.Rows, error) {
				a := answer{columns: []string{"id"}}
				switch {
				case !strings.Contains(query, "IN (NULL"):
					return nil, errScript
				case c.present && strings.Contains(query, ", 77)"), c.affected == 1 && strings.Contains(query, "1001"):
					a.values = [][]driver.Value{{int64(existing)}}
				}
				return a.rows(), nil
			},
		}
		connector := must(NewConnector(base, scriptRule(t, listed(int64(made-1), int64(made), int64(made+1)), "ruled.id"), Config{Server: "vitess"}))(t)
		connector.known.Client.FoundRows = false
		db := sql.OpenDB(connector)
		var keys Keys
		res := must(db.ExecContext(WithKeys(t.Context(), &keys), "INSERT INTO ruled (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2"))(t)
		id, _ := res.LastInsertId()
		want := c.want
		if c.want == made {
			want = toInt64(keys.Values()[0])
		}
		if id != want || len(keys.Values()) != 1 || c.want != made && keys.Values()[0] != c.keys || c.want == made && keys.Values()[0] == nil {
			t.Errorf("%s\nhave: %d %v\nwant: %d %v", c.name, id, keys.Values(), c.want, c.keys)
		}
		if sent := base.sent("LAST_INSERT_ID(`ruled`.`id`)"); len(sent) != 1 {
			t.Errorf("%s\nsent: %s", c.name, base.calls)
		}
		_ = db.Close()
	}
}
