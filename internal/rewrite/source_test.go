package rewrite

import "testing"

func TestSource_formOfTheQuery(t *testing.T) {
	for query, want := range map[string][2]bool{ // lockable, unlimited
		"SELECT a FROM s": {true, false},
		"select a from s where a in (select b from x) -- c": {true, false},
		"SELECT a FROM s ORDER BY a":                        {true, true},
		"SELECT a FROM s ORDER BY a LIMIT 5":                {true, false},
		"SELECT a FROM (SELECT a FROM s ORDER BY a) AS d":   {true, false},
		"WITH w AS (SELECT 1 AS a) SELECT a FROM w":         {true, false},
		"SELECT 1":                                  {false, false},
		"SELECT 1 ORDER BY 1":                       {false, true},
		"SELECT (SELECT a FROM s LIMIT 1)":          {false, false},
		"SELECT a FROM s UNION SELECT 2":            {false, false},
		"SELECT a FROM s UNION SELECT 2 ORDER BY 1": {false, false},
		"SELECT a FROM s EXCEPT SELECT 2":           {false, false},
		"(SELECT a FROM s)":                         {false, false},
		"TABLE s":                                   {false, false},
		"SELECT a FROM s FOR UPDATE":                {false, false},
		"SELECT a FROM s FOR SHARE":                 {false, false},
		"SELECT a FROM s LOCK IN SHARE MODE":        {false, false},
		"SELECT `for`, s.lock FROM s":               {true, false},
		"SELECT a FROM s ON DUPLICATE KEY UPDATE a = (SELECT 1 FROM x UNION SELECT 2 LIMIT 1)": {true, false},
	} {
		p, err := Parse("INSERT INTO t (a) "+query, Options{Tables: func(string, string) *Table { return &Table{KeyColumn: "id", Kind: KindInteger} }})
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		if have := [2]bool{p.Inserts[0].Source.Lockable, p.Inserts[0].Source.Unlimited}; have != want {
			t.Errorf("%s\nhave: %v\nwant: %v", query, have, want)
		}
	}
}
