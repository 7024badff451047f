package engines_test

import (
	"sync"
	"testing"

	"github.com/shardkey/shardkey/internal/test/engines"
)

// Spider shards a table over servers, each with its own AUTO_INCREMENT. With shardkey, the whole
// table has one generator.
func TestSpider_oneGenerator(t *testing.T) {
	s := engines.StartSpider(t, 1, 2)
	if err := s.CreateTable("ruled", "id BIGINT NOT NULL PRIMARY KEY, a INT", "HASH (id)"); err != nil {
		t.Fatal(err)
	}
	dsn := s.Heads[0].DSN() + "app"
	ours := openRuled(t, dsn)
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for i := range 5 {
				for _, query := range []string{"INSERT INTO ruled (a) VALUES (?)",
					"INSERT INTO ruled (a) VALUES (?), (2), (3)", "INSERT INTO ruled VALUES (NULL, ?)"} {
					if _, err := ours.Exec(query, i); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	users.Wait()
	mustRun(t, dsn, "CREATE TABLE src (a INT)", "INSERT INTO src VALUES (1), (2), (3)")
	res := mustExec(t, ours, "INSERT INTO ruled (a) SELECT a + 100 FROM src")
	first := count(t, dsn, "SELECT MIN(id) FROM ruled WHERE a > 100")
	if id, err := res.LastInsertId(); id != int64(first) || err != nil {
		t.Errorf("LastInsertId of INSERT … SELECT\nhave: %d, %v\nwant: %d", id, err, first)
	}
	const want = 4*5*5 + 3
	if n := count(t, dsn, "SELECT COUNT(DISTINCT id) FROM ruled WHERE id > 0"); n != want {
		t.Errorf("rows\nhave: %d\nwant: %d", n, want)
	}
	for i, b := range s.BackEnds {
		if n := count(t, b.DSN()+"app", "SELECT COUNT(*) FROM ruled"); n < want/2-10 {
			t.Errorf("back end %d holds %d rows of %d", i, n, want)
		}
	}
}
