package rewrite

import "testing"

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
		"SET NAMES utf8mb4":                           classSet,
		"/* trace */ set sql_mode = ''":               classSet,
		"USE app":                                     classUse,
		"CALL p()":                                    classCall,
		"EXECUTE s USING @a":                          classCall,
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
		"LOAD DATA INFILE 'x' INTO TABLE t":           classLoad,
		"load xml infile 'x' into table t; SELECT 1":  classLoad,
		"SELECT 1; LOAD DATA INFILE 'x' INTO TABLE t": ClassMayInsert,
		"CREATE TABLE t (a INT)":                      classDDL,
		"CREATE OR REPLACE TABLE t (a INT)":           classDDL,
		"/* c */ alter table t ADD a INT":             classDDL,
		"DROP TABLE t":                                classDDL,
		"RENAME TABLE t TO u":                         classDDL,
		"TRUNCATE t":                                  classDDL,
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
		"TRUNCATE `insert`":                           classDDL,
		"ROLLBACK":                                    ClassPass,
		"DEALLOCATED insert":                          ClassMayInsert,
		" \n\tSET a = 1":                              classSet,
		"/* c */ USE app":                             classUse,
		"-- c\n\tUSE app":                             classUse,
		"# c\nUSE app":                                classUse,
		"/* c */-- d\n/* e */ CALL p()":               classCall,
		"DO REPLACE('a', 'b', 'c')":                   ClassPass,
	} {
		if have := Classify(text); have != want {
			t.Errorf("%q\nhave: %d\nwant: %d", text, have, want)
		}
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
		"SELECT identity FROM t":          {false, false},
		"SET SESSION Sql_Mode = ''":       {false, true},
		"":                                {false, false},
		"SELECT LAST_INSERT_I":            {false, false},
	} {
		if have := [2]bool{MentionsLastInsertID(text), mentionsSQLMode(text)}; have != want {
			t.Errorf("%s\nhave: %v\nwant: %v", text, have, want)
		}
	}
}

func TestChanges_session(t *testing.T) {
	all := Changes{Mode: true, Charset: true, Database: true, Columns: true, Variables: true}
	for text, want := range map[string]Changes{
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
		if have := ChangesOf(text, Classify(text)); have != want {
			t.Errorf("%s\nhave: %+v\nwant: %+v", text, have, want)
		}
	}
}
