package sqltoken

import (
	"testing"

	"github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/must"
)

func TestClassify_classes(t *testing.T) {
	classes := map[string]Class{
		"pass": ClassPass, "may insert": ClassMayInsert, "SET": ClassSet, "USE": ClassUse, "CALL": ClassCall, "several": ClassSeveral,
		"LOAD": ClassLoad, "DDL": ClassDDL,
	}
	for _, c := range cases.Read(t, "testdata/classes.txt", 2) {
		must.Equal(t, Classify(c[1]), classes[c[0]], c[1])
	}
}

// Without multiStatements, only CREATE and ALTER are known to be one statement.
func TestClassifyOne_classes(t *testing.T) {
	for text, want := range map[string]Class{
		"CREATE PROCEDURE p() BEGIN INSERT INTO t (a) VALUES (1); END":  ClassDDL,
		"/* c */ alter event e DO BEGIN DO 1; REPLACE t SET a = 1; END": ClassDDL,
		"/*!50003 CREATE FUNCTION f() BEGIN INSERT t SET a = 1; END */": ClassMayInsert,
		"SELECT 1; INSERT INTO t (a) VALUES (1)":                        ClassMayInsert,
		"INSERT INTO t (a) VALUES (1)":                                  ClassMayInsert,
		"CREATE TABLE t (a INT)":                                        ClassDDL,
	} {
		must.Equal(t, ClassifyOne(text), want, text)
	}
}

func TestClassify_noAllocations(t *testing.T) {
	for _, text := range []string{"SELECT 1", "/* trace */ SELECT 1; SELECT 2", "SET @a = 'INSER'"} {
		if n := testing.AllocsPerRun(100, func() { Classify(text) }); n != 0 {
			t.Errorf("%s\nhave: %v allocations\nwant: none", text, n)
		}
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
		must.Equal(t, [2]bool{MentionsLastInsertID(text), MentionsSQLMode(text)}, want, text)
	}
}
