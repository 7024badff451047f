package linear

import (
	"fmt"
	"strings"
)

// shape is a kind of statement that is slow by design. Table t_1 is sharded by a.
type shape struct {
	name string
	// before and after surround repetitions of repeated. A %d in repeated is their number.
	before, repeated, after string
}

// statement returns a statement of about size bytes.
func (s shape) statement(size int) string {
	var b strings.Builder
	b.WriteString(s.before)
	for i := 0; b.Len()+len(s.after) < size; i++ {
		if strings.Contains(s.repeated, "%d") {
			fmt.Fprintf(&b, s.repeated, i)
		} else {
			b.WriteString(s.repeated)
		}
	}
	b.WriteString(s.after)
	return b.String()
}

const insert = "INSERT INTO t_1 (a) VALUES (1"

// shapes are the statements that the entries read.
var shapes = []shape{
	{"backslashes", "INSERT INTO t_1 (a) VALUES ('", `\\`, "')"},
	{"backslashes in a name", "INSERT INTO t_1 (a) VALUES (`", `\`, "`)"},
	{"doubled quotes", "INSERT INTO t_1 (a) VALUES ('", `''`, "')"},
	{"short strings", insert, `,''`, ")"},
	{"adjacent strings", "INSERT INTO t_1 (id) VALUES (''", ` ''`, ")"},
	{"string without end", "INSERT INTO t_1 (a) VALUES ('", `''`, ""},
	{"escapes without end", "INSERT INTO t_1 (a) VALUES ('", `\'`, ""},
	{"comment without end", insert + " /* ", "/* ", ""},
	{"comments", insert, "/**/", ")"},
	{"line comments", insert + " ", "--\n#\n", ")"},
	{"leading comments", "", "/**/", "INSERT INTO t_1 (a) VALUES (1)"},
	{"executable comments", insert, "/*!*/", ")"},
	{"executable comments in one another", insert, "/*!", ")"},
	{"openings of comments", "", "/*! /*", ""},
	{"slashes", insert, "/ ", ")"},
	{"brackets", "INSERT INTO t_1 (a) VALUES (", "(", ""},
	{"brackets of the key", "INSERT INTO t_1 (id) VALUES (", "(", ""},
	{"brackets of a query", "INSERT INTO t_1 (a) ", "(", ""},
	{"closing brackets", "INSERT INTO t_1 (a) VALUES (1)", ")", ""},
	{"blanks and brackets", insert, "                    (", ")"},
	{"divisions in brackets", "SELECT 1", ", a/(b)", ""},
	{"divisions in an UPDATE", "UPDATE o SET a = CASE ", "WHEN id = %d THEN price/(1+tax) ", "END"},
	{"comments before brackets", "SELECT 1", ", /* c */(1)", ""},
	{"calls in comments", "SELECT ", "LAST_INSERT_ID(/*", "*/)"},
	{"calls", "SELECT 1", ", LAST_INSERT_ID()", ""},
	{"counts", "SELECT 1", ", ROW_COUNT(1)", ""},
	{"an integer", "INSERT INTO t_1 (id, a) VALUES (1, ", "1", ")"},
	{"an integer as key", "INSERT INTO t_1 (id, a) VALUES (", "1", ", 1)"},
	{"a hexadecimal key", "INSERT INTO t_1 (id, a) VALUES (0x", "1", ", 1)"},
	{"signs", "INSERT INTO t_1 (id, a) VALUES (", "- ", "1, 1)"},
	{"numbers in a string", "INSERT INTO t_1 (id, a) VALUES ('", "1-", "', 1)"},
	{"numbers in a value", "INSERT INTO free VALUES ('", "1-", "')"},
	{"exponents without digits", insert, ", 4.5e", "-- )"},
	{"dollar signs", "SELECT ", "$a$ ", "; INSERT INTO t_1 (a) VALUES (1)"},
	{"semicolons", "", ";", "INSERT INTO t_1 (a) VALUES (1)"},
	{"unknown statements", "", "a;", "INSERT INTO t_1 (a) VALUES (1)"},
	{"inserts", "", "INSERT INTO t_1 (a) VALUES (1);", ""},
	{"inserts without rule", "", "INSERT INTO free VALUES (1);", ""},
	{"inserts and rollbacks", "", "INSERT INTO t_1 (a) VALUES (1);ROLLBACK;", ""},
	{"inserts into two tables", "", "INSERT INTO t_1 (a) VALUES (1);INSERT INTO free (a) VALUES (1);", ""},
	{"strings of semicolons", "SELECT ", "';',", "1; INSERT INTO t_1 (a) VALUES (1)"},
	{"modes", "", "SET sql_mode='';", "INSERT INTO free (a) VALUES ('t_1')"},
	{"transactions", "", "SET TRANSACTION /*%d*/ READ ONLY;", ""},
	{"variables beyond ASCII", "SET @a = 1", ", é = 1", ""},
	{"SET STATEMENT", "", "SET STATEMENT a = 1 FOR ", "INSERT INTO t_1 (a) VALUES (1)"},
	{"SET STATEMENT without FOR", "", "SET STATEMENT ", ""},
	{"triggers", "", "CREATE TRIGGER x BEGIN END;", "INSERT INTO t_1 (a) VALUES (1)"},
	{"CREATE", "", "CREATE ", "; INSERT INTO t_1 (a) VALUES (1)"},
	{"blocks", "BEGIN NOT ATOMIC ", "INSERT ", ""},
	{"names in blocks", "BEGIN NOT ATOMIC ", "INSERT . ", ""},
	{"columns", "INSERT INTO t_1 (a", ",a", ") VALUES (1)"},
	{"parts of a name", "INSERT INTO t_1", ".t", ""},
	{"modifiers", "INSERT ", "IGNORE ", "t_1 (a) VALUES (1)"},
	{"rows", "INSERT INTO t_1 (a) VALUES (1)", ",(1)", ""},
	{"rows with the key", "INSERT INTO t_1 (id) VALUES (1)", ",(0)", ""},
	{"rows with arguments", "INSERT INTO t_1 (a, id) VALUES (1, 2)", ",(?,?)", ""},
	{"rows of other lengths", "INSERT INTO t_1 (a) VALUES (1)", ",(1,2)", ""},
	{"MATCH", "INSERT INTO t_1 (a) VALUES (1)", ",(MATCH a,b AGAINST ('c'))", ""},
	{"empty rows", "INSERT INTO t_1 VALUES ()", ",()", ""},
	{"commas", insert, ",", ")"},
	{"assignments", "INSERT INTO t_1 SET a = 1", ", a = 1", ""},
	{"assignments of an upsert", "INSERT INTO t_1 (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 1", ", a = VALUES(a)", ""},
	{"a long value", "INSERT INTO t_1 SET a = 1", " + 1", ""},
	{"ON", "INSERT INTO t_1 (a) SELECT 1", " ON", ""},
	{"variables", insert, "@@", ")"},
	{"RETURNING", "INSERT INTO t_1 (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 1", " RETURNING", ""},
	{"one long word", "INSERT INTO t_1 (", "a", ") VALUES (1)"},
	{"words beyond ASCII", "INSERT INTO free (a) VALUES (1) ", "é ", "/*! */"},
	{"quotes", "INSERT INTO free (a) VALUES (1) /*! */ ", "`a\"", ""},
	{"lines", "INSERT INTO t_1", "\n", "%"},
}
