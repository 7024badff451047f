package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/must"
)

func TestChanges_session(t *testing.T) {
	all := changes{Mode: true, Charset: true, Database: true, Columns: true, Variables: true}
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
		"SET SESSION sql_mode = ''":              {Mode: true, Variables: true},
		"SET SESSION sql_modé = ''":              {Mode: true, Charset: true, Variables: true},
		"SET @@session.`ſql_mode` = ''":          {Mode: true, Charset: true, Variables: true},
		"SET @a = 'é'":                           {Variables: true},
		"SET NAMES latin1":                       {Charset: true, Variables: true},
		"SET CHARACTER SET latin1":               {Charset: true, Variables: true},
		"SET charset latin1":                     {Charset: true, Variables: true},
		"SET @@character_set_client = latin1, sql_mode = ''":            {Mode: true, Charset: true, Variables: true},
		"DO 1; SET NAMES latin1":                                        {Charset: true, Database: true, Columns: true, Variables: true},
		"/*!40101 SET NAMES utf8 */":                                    {Charset: true, Database: true, Columns: true, Variables: true},
		"ALTER TABLE t ADD a INT":                                       {Columns: true},
		"DROP DATABASE app":                                             {Database: true, Columns: true},
		"create schema app":                                             {Database: true, Columns: true},
		"LOAD DATA INFILE 'x' INTO TABLE t":                             {},
		"BEGIN NOT ATOMIC EXECUTE p; INSERT INTO t (a) VALUES (1); END": all,
	} {
		if have := changesOf(text, sqltoken.Classify(text), 0, sqltoken.UTF8); have != want {
			t.Errorf("%s\nhave: %+v\nwant: %+v", text, have, want)
		}
	}
}

func TestSetsLastInsertID_statements(t *testing.T) {
	for _, c := range cases.Read(t, "testdata/lastid.txt", 2) {
		must.Equal(t, fmt.Sprint(SetsLastInsertID(c[1], sqltoken.Classify(c[1]))), c[0], c[1])
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
		must.Equal(t, mayChangeTransaction(text, sqltoken.Classify(text)), want, text)
	}
}
