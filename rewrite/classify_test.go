package rewrite

import "testing"

func TestClassify(t *testing.T) {
	for text, want := range map[string]Class{
		"":                                    Passes,
		"  \n":                                Passes,
		"SELECT 1":                            Passes,
		"select 'insert into t'":              Passes,
		"(SELECT 1)":                          Passes,
		"SELECT 1;":                           Passes,
		"SELECT 1 ; \n":                       Passes,
		"UPDATE t SET a = REPLACE(a, 'b', 1)": Passes,
		"/* trace */ SELECT 1":                Passes,
		"-- trace\n# more\nSELECT 1":          Passes,
		"/* INSERT */":                        Passes,
		"EXPLAIN SELECT 1":                    Passes,
		"BEGIN":                               Passes,
		"INSERTS":                             Passes,
		"INSERT INTO t (a) VALUES (1)":        MayInsert,
		" \n\tinsert into t (a) values (1)":   MayInsert,
		"/* trace */ INSERT t SET a = 1":      MayInsert,
		"-- x\nREPLACE t SET a = 1":           MayInsert,
		"/*!40000 INSERT t SET a = 1 */":      MayInsert,
		"SELECT 1; INSERT t SET a = 1":        MayInsert,
		";INSERT t SET a = 1":                 MayInsert,
		"ANALYZE INSERT t SET a = 1":          MayInsert,
		"EXPLAIN ANALYZE REPLACE t SET a = 1": MayInsert,
		"BEGIN NOT ATOMIC INSERT t SET a = 1": MayInsert,
		"SET STATEMENT a = 1 FOR INSERT t ()": MayInsert,
		"SET @a = REPLACE('a', 'b', 'c')":     MayInsert,
		"SET NAMES utf8mb4":                   Sets,
		"/* trace */ set sql_mode = ''":       Sets,
		"USE app":                             Uses,
		"CALL p()":                            Calls,
		"EXECUTE s USING @a":                  Calls,
		"SELECT 1; SELECT 2":                  Several,
		"SET a = 1; SELECT ';'":               Several,
		"/*!40101 SET NAMES utf8 */":          Several,
		"SELECT ';'":                          Several, // for all that this looks at
	} {
		if have := Classify(text); have != want {
			t.Errorf("%q\nhave: %d\nwant: %d", text, have, want)
		}
	}
}

func TestClassifyDoesNotAllocate(t *testing.T) {
	for _, text := range []string{"SELECT 1", "/* trace */ SELECT 1; SELECT 2", "SET @a = 'INSER'"} {
		if n := testing.AllocsPerRun(100, func() { Classify(text) }); n != 0 {
			t.Errorf("%s\nhave: %v allocations\nwant: none", text, n)
		}
	}
}

func TestMentions(t *testing.T) {
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
		if have := [2]bool{MentionsLastInsertID(text), MentionsSQLMode(text)}; have != want {
			t.Errorf("%s\nhave: %v\nwant: %v", text, have, want)
		}
	}
}
