package session

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/driver/internal/outcome"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/internal/test/must"
)

// answers are a server's answers to queries, by their prefix: one row or an error. Other queries
// return no row.
type answers map[string]any

// newScripted returns a session whose server gives these answers.
func newScripted(t *testing.T, a answers, cache *Cache) (*Session, *fakedb.Server) {
	t.Helper()
	server := &fakedb.Server{Query: func(query string) (driver.Rows, error) {
		for begin, answer := range a {
			if !strings.HasPrefix(query, begin) {
				continue
			}
			if err, ok := answer.(error); ok {
				return nil, err
			}
			return fakedb.Row(answer.([]driver.Value)...), nil
		}
		return &fakedb.Rows{}, nil
	}}
	under := must.Get(base.New(must.Get(server.Connect(t.Context()))(t), nil))(t)
	server.Forget()
	s := New(&under, cache)
	return &s, server
}

// The mode is queried once, and again after a statement that may change it.
func TestSession_mode(t *testing.T) {
	s, conn := newScripted(t, answers{"SELECT @@sql_mode": []driver.Value{"ANSI_QUOTES", "utf8mb4"}}, new(Cache))
	if _, _, known := s.KnownMode(); known {
		t.Error("have: known before it was asked")
	}
	pass := func(query string) {
		t.Helper()
		must.Get(s.BeforePass(t.Context(), new(sqltoken.Scan(query, true)), nil, false))(t)
	}
	for _, c := range []struct {
		query string
		asked int
	}{{"SELECT 1", 1}, {"SET sql_mode = ''", 2}, {"SET NAMES latin1", 3}, {"USE other", 3}} {
		pass(c.query)
		for range 2 {
			mode, charset, err := s.Mode(t.Context())
			if mode != sqltoken.ParseMode("ANSI_QUOTES") || charset != sqltoken.UTF8 || err != nil {
				t.Errorf("after %s\nhave: %v, %v, %v", c.query, mode, charset, err)
			}
		}
		must.Equal(t, len(conn.Calls), c.asked, "after", c.query, "questions")
	}
}

// A table with a schema needs no query. A table without one needs the current database, once.
func TestSession_tableNames(t *testing.T) {
	replies := answers{"SELECT DATABASE()": []driver.Value{"app"}}
	s, conn := newScripted(t, replies, new(Cache))
	qualified, err := s.Table(t.Context(), "app", "t")
	if err != nil || len(conn.Calls) != 0 {
		t.Errorf("with a schema\nhave: %v, asked %q\nwant: no question", err, conn.Calls)
	}
	plain, err := s.Table(t.Context(), "", "t")
	if err != nil || plain == qualified {
		t.Errorf("have: %v, %v\nwant: tables that differ", plain, err)
	}
	for _, c := range []struct {
		database string
		want     bool
	}{{"app", true}, {"other", false}} {
		replies["SELECT DATABASE()"] = []driver.Value{c.database}
		if _, err := s.BeforePass(t.Context(), new(sqltoken.Scan("USE x", true)), nil, false); err != nil {
			t.Error(err)
		}
		must.Equal(t, must.Get(s.Names(t.Context(), plain))(t), c.want, "in", c.database)
		if have, err := s.Names(t.Context(), qualified); !have || err != nil {
			t.Errorf("in %s, with a schema\nhave: %v, %v\nwant: true", c.database, have, err)
		}
	}
	if len(conn.Calls) != 3 {
		t.Errorf("have: %q\nwant: three questions", conn.Calls)
	}
}

// The characteristics of SET TRANSACTION survive a metadata query.
func TestSession_transactionSetAgain(t *testing.T) {
	const set = "SET TRANSACTION READ ONLY"
	s, conn := newScripted(t, nil, new(Cache))
	use := must.Get(s.BeforePass(t.Context(), new(sqltoken.Scan(set, true)), nil, false))(t)
	s.AfterPass(t.Context(), use, nil, nil, nil)
	if !s.PendingTransaction() {
		t.Error("have: nothing is pending")
	}
	_, _ = s.QueryRow(t.Context(), "SELECT 1")
	must.EqualSlices(t, conn.Calls, []string{"queryContext SELECT 1 []", "execContext " + set + " []"})
	if s.TransactionBegan(); s.PendingTransaction() {
		t.Error("have: still pending")
	}
}

// A session that may have temporary tables has its own facts.
func TestSession_ownTables(t *testing.T) {
	cache := new(Cache)
	first, _ := newScripted(t, nil, cache)
	second, _ := newScripted(t, nil, cache)
	of := facts.Name{Database: "app", Table: "t"}
	shared := first.entry(of)
	if second.entry(of) != shared {
		t.Error("have: another entry\nwant: a shared one")
	}
	const query = "CREATE TEMPORARY TABLE t (id INT)"
	must.Get(first.BeforePass(t.Context(), new(sqltoken.Scan(query, true)), nil, false))(t)
	if first.entry(of) == shared || second.entry(of) != shared {
		t.Error("have: the session's own table is shared")
	}
}

// A DDL statement of a session ends the facts of all sessions, before it and after it.
func TestSession_forgottenByOthers(t *testing.T) {
	for _, c := range []struct {
		query string
		ends  bool
	}{
		{"ALTER TABLE t MODIFY id BIGINT", true}, {"CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET NEW.id = 1", true},
		{"DROP TABLE u", true}, {"DO 1; RENAME TABLE t TO u", true}, {"EXECUTE p", true},
		{"TRUNCATE u", false}, {"CREATE TEMPORARY TABLE x (a INT)", false}, {"CALL p()", false}, {"USE other", false},
	} {
		cache := new(Cache)
		s, _ := newScripted(t, nil, cache)
		s.Begin("app")
		for _, ddl := range []bool{false, true} { // in a session with temporary tables too
			learner, conn := newScripted(t, nil, cache)
			learner.Begin("app")
			if ddl {
				const query = "CREATE TEMPORARY TABLE x (a INT)"
				must.Get(learner.BeforePass(t.Context(), new(sqltoken.Scan(query, true)), nil, false))(t)
			}
			known := must.Get(learner.Facts(t.Context(), "", "t"))(t)
			other, _ := newScripted(t, nil, cache)
			use := must.Get(other.BeforePass(t.Context(), new(sqltoken.Scan(c.query, true)), nil, false))(t)
			again := must.Get(learner.Facts(t.Context(), "", "t"))(t)
			other.AfterPass(t.Context(), use, nil, nil, nil)
			after := must.Get(learner.Facts(t.Context(), "", "t"))(t)
			if (again != known) != c.ends || (after != again) != c.ends {
				t.Errorf("%s\nhave: asked again %v, %v: %q\nwant: %v", c.query, again != known, after != again, conn.Calls, c.ends)
			}
		}
	}
}

// Sessions without a server use the facts of the others, and add none.
func TestCache_assume(t *testing.T) {
	replies := answers{"SHOW FULL": []driver.Value{"id", "int", nil, "NO"}, "SELECT DATABASE": []driver.Value{"app"}}
	cache := &Cache{Kind: ServerOther}
	s, _ := newScripted(t, replies, cache)
	must.Get(s.Facts(t.Context(), "", "t"))(t)

	as := &Assumed{Err: errors.ErrUnsupported}
	a := cache.Assume(as, "")
	database, err := a.currentDatabase(t.Context())
	if s.IsAssumed() || !a.IsAssumed() || database != "app" || err != nil {
		t.Errorf("have: %v, %v, database %q, %v", s.IsAssumed(), a.IsAssumed(), database, err)
	}
	known, err := a.Column(t.Context(), "", "t", "id")
	if err != nil || known.Text != "int" || known.Assumed || as.Notes != nil {
		t.Errorf("have: %+v, %v, assumed %q", known, err, as.Notes)
	}
	known, err = a.Column(t.Context(), "", "u", "id")
	if err != nil || !known.Assumed || s.entry(facts.Name{Database: "app", Table: "u"}).Table() != nil || len(as.Notes) != 1 {
		t.Errorf("have: %+v, %v, assumed %q", known, err, as.Notes)
	}
	unasked := &Cache{Kind: ServerAuto}
	server, err := unasked.Assume(as, "").Server(t.Context())
	if err != nil || server.Kind != ServerMySQL || unasked.server.Load() != nil {
		t.Errorf("have: %v, %v, server %v\nwant: MySQL, not known to the others", server, err, unasked.server.Load())
	}
	cache.noteDatabase("app2")
	must.Equal(t, must.Get(cache.Assume(as, "").currentDatabase(t.Context()))(t), "", "as there are two")
}

func TestServerOf_versionsAndComments(t *testing.T) {
	for _, c := range cases.Read(t, "testdata/servers.txt", 4) {
		have, told := serverOf(c[2], c[3])
		must.EqualSlices(t, []string{have, fmt.Sprint(told)}, c[:2], c[2:])
	}
}

// If setting the server's value fails, the session sets it before the next statement that reads it.
func TestLastID_setAgainAfterAFailure(t *testing.T) {
	replies := answers{"SELECT LAST_INSERT_ID(5)": errors.New("away")}
	s, conn := newScripted(t, replies, new(Cache))
	s.SetLastID(outcome.LastID{}.After(outcome.Untold(5)))
	must.Fail(t, s.SyncLastID(t.Context()))
	clear(replies)
	for range 2 {
		must.Do(t, s.SyncLastID(t.Context()))
	}
	must.Equal(t, len(conn.Calls), 2, conn.Calls)
}

func TestGivenNumbers_mayBe(t *testing.T) {
	const id = 5000
	for _, c := range []struct {
		bound driver.Value
		want  bool
	}{
		{nil, false}, {int64(5000), true}, {int64(5001), false}, {uint64(5000), true},
		{5000.4, true}, {4.0, false}, {true, false},
		{"5000", true}, {" 5e3 ", true}, {"5000 apples", true}, {"apples", false}, {[]byte("5000"), true}, {"", false},
		{time.Time{}, false}, {struct{}{}, true},
	} {
		g := &Given{Plain: true}
		must.Equal(t, g.mayBe(id, []driver.NamedValue{{Value: c.bound}}), c.want, c.bound)
	}
	if g := (&Given{Plain: true, Numbers: []float64{1, 5000}}); !g.mayBe(id, nil) || g.mayBe(7000, nil) {
		t.Error("the text's own numbers are not seen")
	}
}

func TestChanges_session(t *testing.T) {
	all := changes{Reading: true, Database: true, Columns: true, Variables: true}
	for text, want := range map[string]changes{
		"SELECT 1":                               {},
		"INSERT INTO t (s) VALUES ('sql_mode')":  {},
		"INSERT INTO t (s) VALUES (1);":          {},
		"INSERT INTO t (s) VALUES (1); SELECT 1": {Database: true, Columns: true, Variables: true},
		"USE app":                                {Database: true},
		"CALL p()":                               all,
		"EXECUTE IMMEDIATE 'USE app'":            all,
		"DO 1; EXECUTE p":                        all,
		"DO 1; CALL p()":                         all,
		"SET @a = 1":                             {Variables: true},
		"SET SESSION sql_mode = ''":              {Reading: true, Variables: true},
		"SET SESSION sql_modé = ''":              {Reading: true, Variables: true},
		"SET @@session.`ſql_mode` = ''":          {Reading: true, Variables: true},
		"SET @a = 'é'":                           {Variables: true},
		"SET NAMES latin1":                       {Reading: true, Variables: true},
		"SET CHARACTER SET latin1":               {Reading: true, Variables: true},
		"SET charset latin1":                     {Reading: true, Variables: true},
		"SET @@character_set_client = latin1, sql_mode = ''":            {Reading: true, Variables: true},
		"DO 1; SET NAMES latin1":                                        {Reading: true, Database: true, Columns: true, Variables: true},
		"/*!40101 SET NAMES utf8 */":                                    {Reading: true, Database: true, Columns: true, Variables: true},
		"ALTER TABLE t ADD a INT":                                       {Columns: true},
		"DROP DATABASE app":                                             {Database: true, Columns: true},
		"create schema app":                                             {Database: true, Columns: true},
		"LOAD DATA INFILE 'x' INTO TABLE t":                             {},
		"BEGIN NOT ATOMIC EXECUTE p; INSERT INTO t (a) VALUES (1); END": all,
	} {
		must.Equal(t, changesOf(new(sqltoken.Scan(text, true)), 0, sqltoken.UTF8), want, text)
	}
}

func TestSetsLastInsertID_statements(t *testing.T) {
	for _, c := range cases.Read(t, "testdata/lastid.txt", 2) {
		q := sqltoken.Scan(c[1], true)
		must.Equal(t, fmt.Sprint(q.SetsLastInsertID()), c[0], c[1])
	}
}

// FOUND_ROWS() and ROW_COUNT() are calls without arguments.
func TestReadsCounts_statements(t *testing.T) {
	for text, want := range map[string]bool{
		"SELECT 1": false, "SELECT FOUND_ROWS()": true, "SELECT row_count ( )": true, "SELECT ROW_COUNT": false,
		"SELECT FOUND_ROWS(1)": false, "SELECT 'FOUND_ROWS()'": false, "SELECT `ROW_COUNT`()": true, "SELECT `a`()": false, "": false,
		"SELECT FOUND_ROWS, ROW_COUNT()": true, "SELECT ROW_COUNT(1), FOUND_ROWS()": true, "SELECT 'ROW_COUNT": false,
		"SELECT a FROM row_count": false, "SELECT \"FOUND_ROWS()\"": false,
	} {
		must.Equal(t, ReadsCounts(text, 0), want, text)
	}
}

// What is set for the next transaction stays in force until a statement that reads a table,
// or begins one.
func TestNextTransaction_statements(t *testing.T) {
	expand := strings.NewReplacer("<level>", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "<only>", "SET TRANSACTION READ ONLY")
	split := func(list string) []string { return strings.FieldsFunc(list, func(r rune) bool { return r == '|' }) }
	for _, c := range cases.Read(t, "testdata/transactions.txt", 3) {
		before, text, want := split(expand.Replace(c[0])), expand.Replace(c[1]), expand.Replace(c[2])
		unchanged := slices.Clone(before)
		have := strings.Join(nextTransaction(before, text, 0, sqltoken.UTF8), "|")
		if have != want || !slices.Equal(before, unchanged) {
			t.Errorf("%s after %q\nhave: %q\nwant: %q", text, before, have, want)
		}
	}
	for text, want := range map[string]bool{
		"SET TRANSACTION READ ONLY": true, "SET @@tx_isolation = 1": true, "SET @@`tx_isolation` = 1": true, "SET a = 1": false,
		"SELECT 1; SET TRANSACTION READ ONLY": true, "SELECT 'TRANSACTION'": false, "START TRANSACTION": false, "CALL transaction()": false,
		"SELECT 1; SELECT 2": false,
	} {
		must.Equal(t, mayChangeTransaction(new(sqltoken.Scan(text, true))), want, text)
	}
}
