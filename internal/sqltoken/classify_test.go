package sqltoken

import (
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

func TestClassify_classes(t *testing.T) {
	for text, want := range map[string]Class{
		"":                                            ClassPass,
		"  \n":                                        ClassPass,
		"SELECT 1":                                    ClassPass,
		"select 'insert into t'":                      ClassPass,
		"(SELECT 1)":                                  ClassPass,
		"SELECT 1;":                                   ClassPass,
		"SELECT 1 ; \n":                               ClassPass,
		"UPDATE t SET a = REPLACE(a, 'b', 1)":         ClassPass,
		"/* trace */ SELECT 1":                        ClassPass,
		"-- trace\n# more\nSELECT 1":                  ClassPass,
		"/* INSERT */":                                ClassPass,
		"EXPLAIN SELECT 1":                            ClassPass,
		"BEGIN":                                       ClassPass,
		"INSERTS":                                     ClassMayInsert, // as far as Classify checks
		"INSERT INTO t (a) VALUES (1)":                ClassMayInsert,
		" \n\tinsert into t (a) values (1)":           ClassMayInsert,
		"/* trace */ INSERT t SET a = 1":              ClassMayInsert,
		"-- x\nREPLACE t SET a = 1":                   ClassMayInsert,
		"/*!40000 INSERT t SET a = 1 */":              ClassMayInsert,
		"SELECT 1; INSERT t SET a = 1":                ClassMayInsert,
		";INSERT t SET a = 1":                         ClassMayInsert,
		"ANALYZE INSERT t SET a = 1":                  ClassMayInsert,
		"EXPLAIN ANALYZE REPLACE t SET a = 1":         ClassMayInsert,
		"BEGIN NOT ATOMIC INSERT t SET a = 1":         ClassMayInsert,
		"SET STATEMENT a = 1 FOR INSERT t ()":         ClassMayInsert,
		"SET @a = REPLACE('a', 'b', 'c')":             ClassMayInsert,
		"SET NAMES utf8mb4":                           ClassSet,
		"/* trace */ set sql_mode = ''":               ClassSet,
		"USE app":                                     ClassUse,
		"CALL p()":                                    ClassCall,
		"EXECUTE s USING @a":                          ClassCall,
		"SELECT 1; SELECT 2":                          ClassSeveral,
		"SET a = 1; SELECT ';'":                       ClassSeveral,
		"/*!40101 SET NAMES utf8 */":                  ClassSeveral,
		"SELECT ';'":                                  ClassSeveral, // as far as Classify checks
		"WITH x AS (SELECT 1) INSERT INTO t ":         ClassMayInsert,
		"WITH x AS (SELECT 1) SELECT 1":               ClassPass,
		"TRACE INSERT INTO t (a) VALUES (1)":          ClassMayInsert,
		"<<x>> BEGIN REPLACE t (a) VALUES (1)":        ClassMayInsert,
		"\xa0INSERT INTO t (a) VALUES (1)":            ClassMayInsert,
		"INSERT\xa0INTO t (a) VALUES (1)":             ClassMayInsert,
		"LOAD DATA INFILE 'x' INTO TABLE t":           ClassLoad,
		"load xml infile 'x' into table t; SELECT 1":  ClassLoad,
		"SELECT 1; LOAD DATA INFILE 'x' INTO TABLE t": ClassMayInsert,
		"CREATE TABLE t (a INT)":                      ClassDDL,
		"CREATE OR REPLACE TABLE t (a INT)":           ClassDDL,
		"/* c */ alter table t ADD a INT":             ClassDDL,
		"DROP TABLE t":                                ClassDDL,
		"RENAME TABLE t TO u":                         ClassDDL,
		"TRUNCATE t":                                  ClassDDL,
		"GRANT INSERT ON t TO x":                      ClassPass,
		"COMMIT":                                      ClassPass,
		"'x'":                                         ClassPass,
		"?":                                           ClassPass,
		";":                                           ClassSeveral,
		"/ 1":                                         ClassSeveral,
		"- 1":                                         ClassPass,
		"/* SET":                                      ClassSeveral,
		"DEALLOCATE PREPARE `insert`":                 ClassPass,
		"deallocate prepare `insert`":                 ClassPass,
		"ZZALLOCATE PREPARE `insert`":                 ClassMayInsert,
		"TRUNCATE `insert`":                           ClassDDL,
		"ROLLBACK":                                    ClassPass,
		"DEALLOCATED insert":                          ClassMayInsert,
		" \n\tSET a = 1":                              ClassSet,
		"/* c */ USE app":                             ClassUse,
		"-- c\n\tUSE app":                             ClassUse,
		"# c\nUSE app":                                ClassUse,
		"/* c */-- d\n/* e */ CALL p()":               ClassCall,
		"DO REPLACE('a', 'b', 'c')":                   ClassPass,
	} {
		if have := Classify(text); have != want {
			t.Errorf("%q\nhave: %d\nwant: %d", text, have, want)
		}
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
