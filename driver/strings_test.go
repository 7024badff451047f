package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/test/differential"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/spi"
)

// stringsPerServer is the number of random strings of statements in a run.
const stringsPerServer = 150

// firstKeys are the smallest generated keys of the tables t and c.
var firstKeys = map[string]int64{"t": 1_000_000, "c": 2_000_000}

// Random strings of two to five statements have the same rows, errors and insert IDs as with
// go-sql-driver and AUTO_INCREMENT.
func TestStrings_sameAsPlain(t *testing.T) { onEach(t, testStrings_sameAsPlain) }

func testStrings_sameAsPlain(t *testing.T) {
	next := map[string]int64{}
	keys := integers(func(_ context.Context, c spi.Column, n int) ([]any, error) {
		all := make([]any, n)
		for i := range all {
			all[i] = firstKeys[c.Table] + next[c.Table]
			next[c.Table]++
		}
		return all, nil
	})
	ours := newStringsSide(t, "", func(dsn string) *sql.DB {
		db, _ := openScriptedOn(t, dsn, generatorRule(t, keys, "t.id", "c.id"))
		return db
	})
	plain := newStringsSide(t, " AUTO_INCREMENT", func(dsn string) *sql.DB {
		return mustOpen(t, "mysql", dsn)
	})
	r := rand.New(rand.NewPCG(17, 4))
	g := &stringsGenerator{differential.Inserts{Rand: r}}
	refused, failed, ran := 0, 0, 0
	for i := range stringsPerServer {
		if i%20 == 19 {
			for _, side := range []*stringsSide{ours, plain} {
				side.send(t, "DELETE FROM t", "DELETE FROM c", "DELETE FROM x")
			}
		}
		query, args := g.query()
		before := ours.rows(t, ours.own)
		have := ours.exec(query, args)
		if errors.Is(have.err, ErrUnsupportedStatement) { // the statements before it ran
			refused++
			for _, side := range []*stringsSide{ours, plain} {
				side.reset(t)
				side.send(t, "DELETE FROM t", "DELETE FROM c", "DELETE FROM x", "UPDATE acct SET n = 100")
			}
			continue
		}
		want := plain.exec(query, args)
		if ran++; want.err != nil {
			failed++
		}
		for _, side := range []*stringsSide{ours, plain} {
			result := &have
			if side == plain {
				result = &want
			}
			result.inside = side.rows(t, side.own)
			side.reset(t)
			result.after = side.rows(t, side.other)
		}
		if want.err != nil && strings.HasSuffix(want.lastID, gone) {
			have.lastID = want.lastID // the key of a failed statement's first row
			ours.send(t, "DO LAST_INSERT_ID(77)")
			plain.send(t, "DO LAST_INSERT_ID(77)")
		}
		equal(t, have.String(), want.String(), query, args, "before", before)
	}
	t.Logf("%d refused, %d ran, of which %d failed", refused, ran, failed)
	if refused > stringsPerServer/10 || failed < stringsPerServer/20 || ran-failed < stringsPerServer/10 {
		t.Errorf("have: %d refused, %d ran, of which %d failed; want: some of each", refused, ran, failed)
	}
}

// stringsSide is one of two databases with the same tables.
type stringsSide struct {
	own   *sql.Conn // connection for the strings
	other *sql.DB   // another pool, through go-sql-driver
	name  string
}

func newStringsSide(t *testing.T, auto string, open func(dsn string) *sql.DB) *stringsSide {
	t.Helper()
	dsn := testserver.Database(t) + "?multiStatements=true&interpolateParams=true"
	s := &stringsSide{name: must(mysql.ParseDSN(dsn))(t).DBName, other: mustOpen(t, "mysql", dsn)}
	for _, table := range []string{"t", "c"} {
		ddl := "CREATE TABLE " + table + " (id BIGINT NOT NULL" + auto + " PRIMARY KEY, a INT, u INT UNIQUE, s VARCHAR(60))"
		if auto != "" {
			ddl += " AUTO_INCREMENT=" + strconv.FormatInt(firstKeys[table], 10)
		}
		mustExec(t, s.other, ddl)
	}
	mustExec(t, s.other, "CREATE TABLE x (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT, u INT UNIQUE, s VARCHAR(60)) AUTO_INCREMENT=500")
	mustExec(t, s.other, "CREATE TABLE src (id BIGINT, a INT, s VARCHAR(60)); INSERT INTO src VALUES (1, 10, 'x'), (NULL, 20, 'y')")
	mustExec(t, s.other, "CREATE TABLE acct (n INT); INSERT INTO acct VALUES (100)")
	s.own = pinned(t, open(dsn))
	return s
}

// reset ends the transactions and locks of a string.
func (s *stringsSide) reset(t *testing.T) {
	t.Helper()
	s.send(t, "ROLLBACK", "USE "+s.name, "SET sql_mode = 'STRICT_TRANS_TABLES', @v = NULL")
}

func (s *stringsSide) send(t *testing.T, queries ...string) {
	t.Helper()
	for _, query := range queries {
		mustExec(t, s.own, query)
	}
}

// stringsResult is the result of a string.
type stringsResult struct {
	err           error
	id, affected  int64
	lastID        string
	inside, after string
}

// beyondSides matches the parts of error messages and IDs that may differ between the sides.
var beyondSides = regexp.MustCompile(`shardkey_test_\w+|[12]\d{6}`)

func (r stringsResult) String() string {
	err := "none"
	if r.err != nil {
		err = beyondSides.ReplaceAllString(r.err.Error(), "…")
		if i := strings.Index(err, "near '"); i >= 0 {
			err = err[:i] // the quoted string
		}
	}
	id := r.id
	if id >= firstKeys["t"] {
		id = id / 1_000_000 * 1_000_000
	}
	return fmt.Sprintf("error %s; id %d, %d affected; LAST_INSERT_ID() %s\ninside %s\nafter %s", err, id, r.affected, r.lastID, r.inside, r.after)
}

func (s *stringsSide) exec(query string, args []any) (r stringsResult) {
	ctx := context.Background()
	res, err := s.own.ExecContext(ctx, query, args...)
	if r.err = err; errors.Is(err, ErrUnsupportedStatement) {
		return r
	}
	if err == nil {
		r.id, _ = res.LastInsertId()
		r.affected, _ = res.RowsAffected()
	}
	var id int64
	if err := s.own.QueryRowContext(ctx, "SELECT LAST_INSERT_ID()").Scan(&id); err != nil {
		r.lastID = err.Error()
		return r
	}
	r.lastID = s.nameOf(ctx, s.own, id)
	return r
}

type queryer1 interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// gone follows the table's name if no row has the key.
const gone = " gone"

// nameOf describes a generated key by its row.
func (s *stringsSide) nameOf(ctx context.Context, db queryer1, id int64) string {
	table, first := "x", int64(500)
	switch {
	case id < first:
		return strconv.FormatInt(id, 10)
	case id >= firstKeys["c"]:
		table, first = "c", firstKeys["c"]
	case id >= firstKeys["t"]:
		table, first = "t", firstKeys["t"]
	}
	rows, err := db.QueryContext(ctx, fmt.Sprintf("SELECT COUNT(*), SUM(id = %d) FROM %s.%s WHERE id BETWEEN %d AND %d", id, s.name, table, first, id))
	if err != nil {
		return err.Error()
	}
	defer rows.Close()
	var rank, found sql.NullInt64
	for rows.Next() {
		if err := rows.Scan(&rank, &found); err != nil {
			return err.Error()
		}
	}
	if found.Int64 == 0 {
		return table + gone
	}
	return fmt.Sprintf("%s %d", table, rank.Int64)
}

// rows returns the rows of all tables, with generated keys replaced by their rank.
func (s *stringsSide) rows(t *testing.T, db queryer1) string {
	t.Helper()
	ctx := context.Background()
	var all []string
	for _, table := range []string{"t", "c", "x", "acct"} {
		order := " ORDER BY id"
		if table == "acct" {
			order = ""
		}
		rows := must(db.QueryContext(ctx, "SELECT * FROM "+s.name+"."+table+order))(t)
		columns, _ := rows.Columns()
		all = append(all, table+fmt.Sprint(columns))
		var values [][]sql.NullString
		for rows.Next() {
			row := make([]sql.NullString, len(columns))
			into := make([]any, len(columns))
			for i := range row {
				into[i] = &row[i]
			}
			noError(t, rows.Scan(into...))
			values = append(values, row)
		}
		noError(t, rows.Close())
		for _, row := range values {
			var words []string
			for i, v := range row {
				key, err := strconv.ParseInt(v.String, 10, 64)
				switch {
				case !v.Valid:
					words = append(words, "NULL")
				case columns[i] == "id" && key >= firstKeys["t"]:
					words = append(words, "key")
				case err == nil:
					words = append(words, s.nameOf(ctx, db, key))
				default:
					words = append(words, v.String)
				}
			}
			all = append(all, "("+strings.Join(words, " ")+")")
		}
	}
	return strings.Join(all, " ")
}

// stringsGenerator generates strings of statements like the differential test.
type stringsGenerator struct{ differential.Inserts }

// query returns a string of statements with its arguments.
func (g *stringsGenerator) query() (string, []any) {
	var args []any
	kind := g.IntN(4) // statements in addition to INSERTs
	parts := make([]string, 2+g.IntN(4))
	for i := range parts {
		switch g.IntN(5) {
		case 0:
			parts[i] = oneOf(g.Rand, "BEGIN", "START TRANSACTION", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO SAVEPOINT s", "COMMIT /* ; */")
		case 1:
			if kind == 0 {
				parts[i] = g.otherStatement()
				continue
			}
			fallthrough
		default:
			query, more := g.Insert()
			for strings.Contains(query, "(id, a, u) SELECT") { // a key of a query that is NULL is an error
				query, more = g.Insert()
			}
			query = tableOfDifferential.ReplaceAllString(query, oneOf(g.Rand, "t", "t", "t", "c", "x"))
			parts[i] = strings.TrimSuffix(strings.Replace(query, "ABS(-3)", oneOf(g.Rand, "LAST_INSERT_ID()", "@@last_insert_id"), 1), ";")
			args = append(args, more...)
		}
	}
	if kind == 2 && g.IntN(2) == 0 { // no INSERT into a sharded table
		for i := range parts {
			parts[i] = oneOf(g.Rand, g.otherStatement(), "INSERT INTO x (u) VALUES (NULL)", "INSERT INTO x VALUES (NULL, NULL, LAST_INSERT_ID())", "COMMIT")
		}
		args = nil
	}
	return strings.Join(parts, oneOf(g.Rand, "\n; ", "\n;\n-- ; next\n", "\n;")) + oneOf(g.Rand, "", "\n;", "\n; -- ; end", "\n;;"), args
}

func (g *stringsGenerator) otherStatement() string {
	return oneOf(g.Rand, "UPDATE acct SET n = n - 10", "UPDATE t SET u = u + 100 WHERE u < 5", "DELETE FROM c", "SET @v = 1", "SET sql_mode = 'ANSI_QUOTES'",
		"SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'", "USE mysql", "SET NAMES utf8mb4", "SELECT LAST_INSERT_ID()", "SELECT COUNT(*) FROM t", "DO LAST_INSERT_ID(77)",
		"ALTER TABLE acct MODIFY n INT", "CREATE TABLE IF NOT EXISTS made (a INT)", "DROP TABLE IF EXISTS made", "TRUNCATE TABLE made", "no statement")
}
