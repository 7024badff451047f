package driver

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

type reportTrigger struct {
	name string
	ddl  []string
}

// reportTriggers are the triggers of t. log (id, n) has AUTO_INCREMENT, called(n) inserts into it.
var reportTriggers = []reportTrigger{
	{"none", nil},
	{"BEFORE INSERT sets a column", []string{"BEFORE INSERT ON t FOR EACH ROW SET NEW.a = COALESCE(NEW.a, 3)"}},
	{"AFTER INSERT inserts", []string{"AFTER INSERT ON t FOR EACH ROW INSERT INTO log (n) VALUES (NEW.u)"}},
	{"BEFORE UPDATE sets a column", []string{"BEFORE UPDATE ON t FOR EACH ROW SET NEW.s = 'updated'"}},
	{"AFTER UPDATE inserts", []string{"AFTER UPDATE ON t FOR EACH ROW INSERT INTO log (n) VALUES (NEW.u)"}},
	{"AFTER DELETE inserts", []string{"AFTER DELETE ON t FOR EACH ROW INSERT INTO log (n) VALUES (OLD.u)"}},
	{"LAST_INSERT_ID(expr)", []string{"BEFORE INSERT ON t FOR EACH ROW SET NEW.s = LAST_INSERT_ID(123)",
		"BEFORE UPDATE ON t FOR EACH ROW SET NEW.s = LAST_INSERT_ID(124)"}},
	{"procedure and function", []string{"BEFORE INSERT ON t FOR EACH ROW SET NEW.s = called(NEW.u)",
		"AFTER UPDATE ON t FOR EACH ROW CALL logged(NEW.u)"}},
	{"SIGNAL", []string{"BEFORE INSERT ON t FOR EACH ROW IF NEW.u = 13 THEN SIGNAL SQLSTATE '45000'; END IF",
		"BEFORE UPDATE ON t FOR EACH ROW IF NEW.a = 13 THEN SIGNAL SQLSTATE '45000'; END IF"}},
}

// reportCases run on the rows (5, 1, 1, NULL), (6, 2, 2, NULL) and (7, 3, 3, NULL) of t.
var reportCases = []step{
	q("INSERT INTO t (u) VALUES (11)"),
	q("INSERT INTO t (u) VALUES (?), (?)", 11, 12),
	q("INSERT INTO t (u) VALUES (13)"),
	q("INSERT INTO t (id, a, u) VALUES (NULL, called(1), 11)"),
	q("INSERT INTO t (id, a, u) VALUES (20, called(1), 11), (DEFAULT, called(2), 12)"),
	q("INSERT INTO t (id, u) VALUES (20, 11)"),
	q("INSERT INTO t (id, u) VALUES (?, 11)", 20),
	q("INSERT IGNORE INTO t (u) VALUES (1)"),
	q("INSERT IGNORE INTO t (u) VALUES (11), (1), (12)"),
	q("INSERT IGNORE INTO t (u) VALUES (11), (13), (12)"),
	q("INSERT IGNORE INTO t (id, u) VALUES (NULL, 11), (5, 12), (21, 14)"),
	q("REPLACE INTO t (u) VALUES (1)"),
	q("REPLACE INTO t (u, a) VALUES (1, called(4)), (11, 2)"),
	q("REPLACE INTO t (id, u) VALUES (5, 2), (NULL, 3)"),

	// Upserts of one row: new, changed, unchanged.
	q("INSERT INTO t (u, a) VALUES (11, 1) ON DUPLICATE KEY UPDATE a = 9"),
	q("INSERT INTO t (u, a) VALUES (?, ?) ON DUPLICATE KEY UPDATE a = ?", 11, 1, 9),
	q("INSERT INTO t (u, a) VALUES (1, 1) ON DUPLICATE KEY UPDATE a = 9"),
	q("INSERT INTO t (u, a) VALUES (?, ?) ON DUPLICATE KEY UPDATE a = ?", 1, 1, 9),
	q("INSERT INTO t (u, a) VALUES (1, 1) ON DUPLICATE KEY UPDATE a = VALUES(a)"),
	q("INSERT INTO t (u, a) VALUES (1, 1) ON DUPLICATE KEY UPDATE a = 13"),
	q("INSERT INTO t (id, u, a) VALUES (20, 11, 1) ON DUPLICATE KEY UPDATE a = 9"),
	q("INSERT INTO t (id, u, a) VALUES (?, 11, 1) ON DUPLICATE KEY UPDATE a = 9", 20),
	q("INSERT INTO t (id, u, a) VALUES (5, 11, 1) ON DUPLICATE KEY UPDATE a = 9"),
	q("INSERT INTO t (id, u, a) VALUES (5, 11, 1) ON DUPLICATE KEY UPDATE a = 1"),
	q("INSERT INTO t (id, u, a) VALUES (20, 1, 1) ON DUPLICATE KEY UPDATE a = 9"),
	q("INSERT INTO t (id, u, a) VALUES (?, 1, 1) ON DUPLICATE KEY UPDATE a = 1", 20),
	q("INSERT INTO t (id, u, a) VALUES (?, 11, 1) ON DUPLICATE KEY UPDATE a = 9", nil),
	q("INSERT INTO t (id, u, a) VALUES (?, 1, 1) ON DUPLICATE KEY UPDATE a = 9", 0),
	q("INSERT INTO t (id, a, u) VALUES (NULL, called(1), 11) ON DUPLICATE KEY UPDATE a = called(9)"),
	q("INSERT INTO t (id, a, u) VALUES (NULL, called(1), 1) ON DUPLICATE KEY UPDATE a = called(9)"),
	q("INSERT INTO t (id, a, u) VALUES (NULL, (SELECT MAX(n) FROM calling), 11) ON DUPLICATE KEY UPDATE a = 9"),
	q("INSERT INTO t SET u = 11 ON DUPLICATE KEY UPDATE a = 9"),
	q("INSERT IGNORE INTO t (u, a) VALUES (11, 1) ON DUPLICATE KEY UPDATE a = 9"),
	q("INSERT IGNORE INTO t (u, a) VALUES (1, 1) ON DUPLICATE KEY UPDATE a = 9"),
	q("INSERT IGNORE INTO t (u, a) VALUES (1, 1) ON DUPLICATE KEY UPDATE u = 2"),
	q("INSERT INTO t (u, a) VALUES (1, 1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), a = 9"),
	q("INSERT INTO t (u, a) VALUES (11, 1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), a = 9"),

	// Upserts of several rows.
	q("INSERT INTO t (u, a) VALUES (11, 1), (12, 2) ON DUPLICATE KEY UPDATE a = 9"),
	q("INSERT INTO t (u, a) VALUES (1, 1), (11, 2) ON DUPLICATE KEY UPDATE a = 9"),
	q("INSERT INTO t (u, a) VALUES (11, 1), (1, 2) ON DUPLICATE KEY UPDATE a = 9"),
	q("INSERT INTO t (u, a) VALUES (?, 1), (?, 2) ON DUPLICATE KEY UPDATE a = 9", 1, 2),
	q("INSERT INTO t (u, a) VALUES (1, 1), (2, 9) ON DUPLICATE KEY UPDATE a = VALUES(a)"),
	q("INSERT INTO t (u, a) VALUES (1, 9), (2, 2) ON DUPLICATE KEY UPDATE a = VALUES(a)"),
	q("INSERT INTO t (u, a) VALUES (1, 9), (2, 2), (11, 4) ON DUPLICATE KEY UPDATE a = VALUES(a)"),
	q("INSERT INTO t (u, a) VALUES (1, 9), (2, 2), (11, called(4)) ON DUPLICATE KEY UPDATE a = VALUES(a)"),
	q("INSERT INTO t (u, a) VALUES (1, 1), (2, 2) ON DUPLICATE KEY UPDATE a = VALUES(a)"),
	q("INSERT INTO t (id, u, a) VALUES (20, 11, 1), (NULL, 12, 2) ON DUPLICATE KEY UPDATE a = 9"),
	q("INSERT INTO t (id, u, a) VALUES (5, 11, 1), (NULL, 12, 2) ON DUPLICATE KEY UPDATE a = 9"),
	q("INSERT INTO t (id, u, a) VALUES (NULL, 1, 9), (6, 12, 2) ON DUPLICATE KEY UPDATE a = VALUES(a)"),
	q("INSERT INTO t (id, u, a) VALUES (20, 11, 1), (21, 12, 2) ON DUPLICATE KEY UPDATE a = 9"),
	q("INSERT INTO t (id, u, a) VALUES (20, 1, 9), (21, 2, 2) ON DUPLICATE KEY UPDATE a = VALUES(a)"),
	q("INSERT IGNORE INTO t (u, a) VALUES (1, 9), (2, 2), (11, 4) ON DUPLICATE KEY UPDATE a = VALUES(a)"),
}

// Triggers and stored functions don't change what a statement reports.
func TestReports_triggersAndFunctions(t *testing.T) {
	onEachAndOldest(t, testReports_triggersAndFunctions)
}

func testReports_triggersAndFunctions(t *testing.T) {
	var variants []variant
	var all [][2]side
	for _, sh := range shapes[:2] {
		for _, params := range []string{"", "clientFoundRows=true", "interpolateParams=true"} {
			v := variant{shape: sh, params: params}
			variants = append(variants, v)
			all = append(all, reportSides(t, v))
		}
	}
	for at, tr := range reportTriggers {
		for _, both := range all {
			tr.create(t, both)
		}
		for i, st := range reportCases {
			n := at + i // each statement runs in other ways with each trigger
			v := variants[n%len(variants)]
			if v.prepared = n/len(variants)%2 == 1; tr.differs(st, v) {
				continue
			}
			rows := q("INSERT INTO t (id, u, a) VALUES (5, 1, 1), (6, 2, 2), (7, 3, 3)")
			c := differentialCase{st.text, []step{rows, st, q("INSERT INTO child (t_id) VALUES (LAST_INSERT_ID())")}}
			t.Run(tr.name+"/"+v.String()+"/"+st.text, func(t *testing.T) {
				report(t, c.run(t, all[n%len(variants)], v))
			})
		}
		for _, both := range all {
			tr.drop(t, both)
		}
	}
}

func reportSides(t *testing.T, v variant) [2]side {
	t.Helper()
	both := sides(t, v.params, v.shape)
	for _, s := range both {
		for _, ddl := range []string{
			"CREATE TABLE log (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, n INT) AUTO_INCREMENT = 5000000",
			"CREATE FUNCTION called(x INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO log (n) VALUES (x); RETURN x; END",
			"CREATE PROCEDURE logged(x INT) INSERT INTO log (n) VALUES (x)",
			"CREATE VIEW calling AS SELECT called(8) AS n",
		} {
			mustExec(t, s.db, ddl)
		}
	}
	return both
}

func (tr *reportTrigger) create(t *testing.T, both [2]side) {
	for _, s := range both {
		for i, ddl := range tr.ddl {
			mustExec(t, s.db, fmt.Sprintf("CREATE TRIGGER tr%d %s", i, ddl))
		}
	}
}

func (tr *reportTrigger) drop(t *testing.T, both [2]side) {
	for _, s := range both {
		for i := range tr.ddl {
			mustExec(t, s.db, fmt.Sprintf("DROP TRIGGER tr%d", i))
		}
	}
}

// differs reports whether docs/reference/sql.md lists a difference.
func (tr *reportTrigger) differs(st step, v variant) bool {
	updates := slices.ContainsFunc(tr.ddl, func(ddl string) bool { return strings.Contains(ddl, "UPDATE ON") })
	byKey := v.params == "clientFoundRows=true" && strings.Contains(st.text, "(5, 11, 1) ON DUPLICATE KEY UPDATE a = 1")
	return updates && (byKey || strings.Contains(st.text, "LAST_INSERT_ID(id)")) || byKey && v.shape.name == "AUTO_INCREMENT"
}
