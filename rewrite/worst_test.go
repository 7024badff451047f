package rewrite

import (
	"runtime"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// worstCases are statements of about a given size that are slow by design.
var worstCases = []struct {
	name string
	text func(size int) string
}{
	{"backslashes", around("INSERT INTO t (a) VALUES ('", `\\`, "')")},
	{"backslashes in a name", around("INSERT INTO t (a) VALUES (`", `\`, "`)")},
	{"doubled quotes", around("INSERT INTO t (a) VALUES ('", `''`, "')")},
	{"short strings", around("INSERT INTO t (a) VALUES (1", `,''`, ")")},
	{"string without end", around("INSERT INTO t (a) VALUES ('", `''`, "")},
	{"escapes without end", around("INSERT INTO t (a) VALUES ('", `\'`, "")},
	{"comment without end", around("INSERT INTO t (a) VALUES (1 /* ", "/* ", "")},
	{"comments", around("INSERT INTO t (a) VALUES (1 ", "/**/", ")")},
	{"line comments", around("INSERT INTO t (a) VALUES (1 ", "--\n#\n", ")")},
	{"leading comments", around("", "/**/", "INSERT INTO t (a) VALUES (1)")},
	{"executable comments", around("INSERT INTO t (a) VALUES (1 ", "/*!*/", ")")},
	{"executable comments in one another", around("INSERT INTO t (a) VALUES (1 ", "/*!", ")")},
	{"openings of comments", around("", "/*! /*", "")},
	{"slashes", around("INSERT INTO t (a) VALUES (1 ", "/ ", ")")},
	{"brackets", around("INSERT INTO t (a) VALUES (", "(", "")},
	{"brackets of the key", around("INSERT INTO t (id) VALUES (", "(", "")},
	{"brackets of a query", around("INSERT INTO t (a) ", "(", "")},
	{"closing brackets", around("INSERT INTO t (a) VALUES (1)", ")", "")},
	{"blanks and brackets", around("INSERT INTO t (a) VALUES (1", strings.Repeat(" ", 100)+"(", ")")},
	{"semicolons", around("", ";", "INSERT INTO t (a) VALUES (1)")},
	{"statements", around("", "a;", "INSERT INTO t (a) VALUES (1)")},
	{"inserts", around("", "INSERT INTO t (a) VALUES (1);", "")},
	{"inserts without rule", around("", "INSERT INTO free VALUES (1);", "")},
	{"strings of semicolons", around("SELECT ", "';',", "1; INSERT INTO t (a) VALUES (1)")},
	{"SET STATEMENT", around("", "SET STATEMENT a = 1 FOR ", "INSERT INTO t (a) VALUES (1)")},
	{"triggers", around("", "CREATE TRIGGER x BEGIN END;", "INSERT INTO t (a) VALUES (1)")},
	{"CREATE", around("", "CREATE ", "; INSERT INTO t (a) VALUES (1)")},
	{"blocks", around("BEGIN NOT ATOMIC ", "INSERT ", "")},
	{"columns", around("INSERT INTO t (a", ",a", ") VALUES (1)")},
	{"parts of a name", around("INSERT INTO t", ".t", "")},
	{"modifiers", around("INSERT ", "IGNORE ", "t (a) VALUES (1)")},
	{"rows", around("INSERT INTO t (a) VALUES (1)", ",(1)", "")},
	{"rows with the key", around("INSERT INTO t (id) VALUES (1)", ",(0)", "")},
	{"empty rows", around("INSERT INTO t VALUES ()", ",()", "")},
	{"commas", around("INSERT INTO t (a) VALUES (1", ",", ")")},
	{"assignments", around("INSERT INTO t SET a = 1", ", a = 1", "")},
	{"a long value", around("INSERT INTO t SET a = 1", " + 1", "")},
	{"ON", around("INSERT INTO t (a) SELECT 1", " ON", "")},
	{"variables", around("INSERT INTO t (a) VALUES (1", "@@", ")")},
	{"RETURNING", around("INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 1", " RETURNING", "")},
	{"one long word", around("INSERT INTO t (", "a", ") VALUES (1)")},
	{"lines", around("INSERT INTO t", "\n", "%")},
}

func around(before, repeated, after string) func(size int) string {
	return func(size int) string {
		return before + strings.Repeat(repeated, max(1, (size-len(before)-len(after))/len(repeated))) + after
	}
}

// TestWorst_isLinear parses statements that are slow by design. If the time weren't linear, it
// would be hours, and the test would time out: it measures nothing.
func TestWorst_isLinear(t *testing.T) {
	const size = 1 << 20
	for _, c := range worstCases {
		t.Run(c.name, func(t *testing.T) {
			text := c.text(size)
			sqltoken.Classify(text)
			plan, err := Parse(text, benchmarkOptions())
			if err != nil {
				CheckStatementError(t, c.name, relocated(err))
				if len(err.Error()) > 1000 {
					t.Errorf("the error is %d bytes long", len(err.Error()))
				}
				return
			}
			plan.BindText()
		})
	}
}

// relocated is an error without its place.
func relocated(err error) error {
	if failed, ok := err.(*StatementError); ok {
		e := *failed
		e.Offset = 0
		return &e
	}
	return err
}

// TestMemory_planAndFill checks that planning a long statement and writing its keys allocates at
// most twice the statement's length, including the result.
func TestMemory_planAndFill(t *testing.T) {
	absent := rowsText(4 << 20)
	given := strings.Replace(strings.ReplaceAll(absent, "), (", "), (NULL, "), "(a, s) VALUES (", "(id, a, s) VALUES (NULL, ", 1)
	for name, text := range map[string]string{"key absent": absent, "key given": given} {
		t.Run(name, func(t *testing.T) {
			plan, err := Parse(text, benchmarkOptions())
			if err != nil {
				t.Fatal(err)
			}
			keys := benchmarkKeys(plan)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if plan, err = Parse(text, benchmarkOptions()); err == nil {
				plan.LiteralText(keys)
			}
			runtime.ReadMemStats(&after)
			if have, want := after.TotalAlloc-before.TotalAlloc, 2*uint64(len(text)); have > want {
				t.Errorf("bytes allocated for %d rows, %d bytes of text\nhave: %d\nwant: at most %d", plan.Inserts[0].Rows(), len(text), have, want)
			}
		})
	}
}
