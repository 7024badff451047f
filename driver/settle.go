package driver

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"unicode"

	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// rowStates records for each row of an insertion whether it was inserted.
type rowStates struct {
	states []rowState
	// existing is the key of the only row that existed, if known.
	existing any
	// lastPresent: the last row's key is in the table, perhaps as another row's key.
	lastPresent bool
}

type rowState uint8

const (
	rowInserted rowState = iota
	rowNotInserted
	rowUncertain
)

func (s *rowStates) of(i int) rowState {
	if s == nil {
		return rowInserted
	}
	return s.states[i]
}

// mark sets the state of all rows.
func (k *insertion) mark(state rowState) {
	k.rows = &rowStates{states: make([]rowState, len(k.in.Rows))}
	for i := range k.rows.states {
		k.rows.states[i] = state
	}
}

// count returns the number of rows with a state.
func (k *insertion) count(state rowState) (n int) {
	for i := range k.in.Rows {
		if k.rows.of(i) == state {
			n++
		}
	}
	return n
}

// settleInsert determines which rows of an insertion were inserted. It returns the insert ID that
// an AUTO_INCREMENT column would report: the first generated key that was inserted. Without one it
// is the last row's key if the statement inserted or changed a row, otherwise 0.
func (e *execution) settleInsert(ctx context.Context, k *insertion, report insertReport) int64 {
	otherID := !k.plain && k.column.Facts().OtherHasAutoIncrement
	switch {
	case k.in.Returning:
		report = returned
	case !otherID && k.carries && !k.in.OnDuplicate:
		report.id = 0 // the statement passed this key to LAST_INSERT_ID()
	}
	verdict := e.judge(ctx, k, &report, otherID)
	switch verdict {
	case noneInserted:
		k.mark(rowNotInserted)
	case oneExists:
		k.mark(rowNotInserted)
		k.rows.existing = report.id
	case unclear:
		verdict = e.verify(ctx, k, &report)
	}
	k.first, k.inserted = k.firstInserted()
	switch {
	case e.plan.Statements > 1: // see keepLastIDOfAll
	case otherID:
		e.keepBeside(k, report, verdict)
	default:
		e.keepLastID(k, report, verdict, k.first, k.inserted)
	}
	id := e.insertID(k, report, verdict, otherID)
	if verdict == laterReplaced {
		e.settleReplaced(ctx, k, &report)
	}
	return id
}

// insertID returns the insert ID of an insertion; see settleInsert.
func (e *execution) insertID(k *insertion, report insertReport, verdict rowsOutcome, otherID bool) int64 {
	switch {
	case k.in.Returning:
		return 0 // the server reports no ID with rows
	case otherID && (verdict == oneExists || verdict == noneInserted):
		return 0 // the ID is the key, not the other column's value
	case otherID:
		return report.id // the other column's value, as without a rule
	case k.table.kind() == kindText:
		return 0
	case k.inserted:
		return k.first
	case k.in.ReadsLastID && report.id != 0:
		return report.id
	case !k.changed(report, e.session.Client().FoundRows):
		return 0
	}
	return e.lastRowsKey(k, report)
}

// rowsOutcome is the conclusion about an insertion's rows from the server's report.
type rowsOutcome uint8

const (
	allInserted rowsOutcome = iota
	noneInserted
	// oneExists: the only row existed already, and the insert ID is its key.
	oneExists
	// laterReplaced: all rows were inserted, and a REPLACE may have replaced its own earlier rows.
	laterReplaced
	// unclear: only a query of the table shows it.
	unclear
)

// judge returns the verdict on an insertion's rows from the server's report. It clears an insert ID
// that isn't a key. otherID reports whether a new row's insert ID is another column's value.
func (e *execution) judge(ctx context.Context, k *insertion, report *insertReport, otherID bool) rowsOutcome {
	v, all := allInserted, report.affected == int64(len(k.in.Rows))
	switch {
	case k.in.OnDuplicate:
		v = e.judgeUpsert(ctx, k, report, otherID)
	case report.affected == 0:
		v = noneInserted // skipped by IGNORE, or not executed: a comment for other servers contains it
	case k.in.Ignore && !all:
		v = unclear
	case k.in.Replace && len(k.in.Rows) > 1 && !all:
		v = laterReplaced
	}
	if (v == allInserted || v == laterReplaced) && (k.hasExpressions() || !k.plain && k.column.Facts().Triggered) {
		return unclear // only the table shows which key a row has
	}
	return v
}

// judgeUpsert is judge for ON DUPLICATE KEY UPDATE.
//
// The insert ID of a guarded upsert is the key of the last existing row. If no row existed, it is
// the key that the statement carries. Otherwise it is 0 or, for a column with AUTO_INCREMENT, the
// last key that the statement set. It is also 0 if it was reset; see mayResetID.
func (e *execution) judgeUpsert(ctx context.Context, k *insertion, report *insertReport, otherID bool) rowsOutcome {
	guarded := k.in.ReportsExistingKey
	unsure := guarded && !e.session.ReportsInsertIDs() // it may lack an insert ID
	if unsure && report.id != 0 && !e.isKey(ctx, k, report.id) {
		report.id = 0 // another column's value, generated by a Vitess sequence
	}
	if len(k.in.Rows) > 1 {
		if guarded && !otherID && !e.mayResetID(k) && e.reportsNoRow(k, *report) {
			return allInserted
		}
		return unclear
	}
	resets, none := e.mayResetID(k), report.affected == 0
	changed := none || report.affected == 2 // the row existed
	switch {
	case report.affected == 1 && !e.session.Client().FoundRows && !resets:
		return allInserted // (MySQL 9.7 also counts 1 for an existing row whose change a trigger reverts.)
	case !guarded || unsure:
		switch {
		case changed && guarded && report.id != 0:
			return oneExists
		case changed:
			return noneInserted
		}
		return unclear
	case report.id == 0:
		switch {
		case k.in.Ignore && none:
			return noneInserted
		case k.carries, otherID, resets, changed:
			return unclear
		}
		return allInserted
	case otherID:
		if changed && !resets {
			return oneExists
		}
		return unclear
	case report.id != e.upsertKey(k), !k.carries && (changed || !k.mayReportGiven()):
		return oneExists
	case none:
		return noneInserted // skipped by IGNORE
	}
	return allInserted
}

// reportsNoRow reports whether the report about a guarded upsert of several rows shows that none
// existed. If the last row's key was generated, it isn't an existing row's key.
func (e *execution) reportsNoRow(k *insertion, report insertReport) bool {
	if report.affected != int64(len(k.in.Rows)) {
		return false
	}
	if report.id == 0 {
		mode, _, _ := e.session.KnownMode()
		return mode&sqltoken.NoAutoValueOnZero == 0 // otherwise a row may have the key 0
	}
	return report.id == e.upsertKey(k)
}

// upsertKey returns the key that a guarded upsert carries, or the last row's key if it was generated
// or is the only row's; 0 if unknown.
func (e *execution) upsertKey(k *insertion) int64 {
	last := len(k.in.Rows) - 1
	switch {
	case k.carries:
		return k.idOf(0)
	case k.isGenerated(last):
		return k.idOf(k.keys.Len() - 1)
	case last == 0:
		return session.InsertID(e.storedKey(k, 0))
	}
	return 0
}

// mayReportGiven reports whether the insert ID may be a new row's explicit key.
func (k *insertion) mayReportGiven() bool {
	facts := k.column.Facts()
	return facts.AutoIncrement || facts.Stores == session.StoresUnknown
}

// mayResetID reports whether the server may have reset the insert ID after the statement passed a
// key to LAST_INSERT_ID(). Each statement in a trigger or stored function resets it: they end with
// THD::cleanup_after_query (MySQL's and MariaDB's sql/sql_class.cc), which clears
// arg_of_last_insert_id_function. The function LAST_INSERT_ID() keeps its value.
func (e *execution) mayResetID(k *insertion) bool {
	return k.column.Facts().HasTriggers || len(k.in.Rows) > 1 && mayCallFunctions(e.plan.key.text)
}

// mayCallFunctions reports whether an upsert of several rows may call a stored function, perhaps in
// a view, after its first row. It only reads what precedes brackets, and may return true for names,
// strings and comments.
func mayCallFunctions(text string) bool {
	const blanks = " \t\r\n"
	_, text, _ = strings.Cut(text, ")") // the end of the column list, or in the first row
	for {
		before, after, found := strings.Cut(text, "(")
		if !found {
			return false
		}
		before, text = strings.TrimRight(before, blanks), after
		name := before[len(strings.TrimRightFunc(before, isNameRune)):]
		begin := strings.ToUpper(strings.TrimLeft(after[:min(len(after), 80)], blanks))
		switch {
		case !strings.Contains(builtIn, " "+strings.ToUpper(name)+" "), strings.HasSuffix(before, "*/"),
			strings.HasPrefix(begin, "/*"), strings.HasPrefix(begin, "SELECT"), strings.HasPrefix(begin, "WITH"):
			return true
		}
	}
}

// isNameRune reports whether a character may be in a name, which may be qualified and quoted.
func isNameRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_$.`\"", r)
}

// builtIn are the words before a bracket in usual upserts that aren't stored functions, between
// blanks. The empty word is one.
const builtIn = "  VALUES VALUE ROW UPDATE IN AND OR NOT XOR INTERVAL CASE WHEN THEN ELSE DEFAULT IF IFNULL NULLIF COALESCE " +
	"GREATEST LEAST ABS CEIL CEILING FLOOR MOD RAND ROUND CAST CONVERT CHAR NOW CURDATE CURTIME CURRENT_DATE CURRENT_TIME " +
	"CURRENT_TIMESTAMP LOCALTIME LOCALTIMESTAMP SYSDATE UTC_DATE UTC_TIME UTC_TIMESTAMP UNIX_TIMESTAMP FROM_UNIXTIME DATE " +
	"DATE_ADD DATE_SUB DATE_FORMAT STR_TO_DATE TIME TIMESTAMP UUID UUID_SHORT UUID_TO_BIN CONCAT CONCAT_WS HEX UNHEX LEFT " +
	"RIGHT LENGTH CHAR_LENGTH LOWER UPPER LPAD RPAD REPLACE SUBSTR SUBSTRING TRIM MD5 SHA SHA1 SHA2 CRC32 FROM_BASE64 " +
	"TO_BASE64 INET_ATON INET6_ATON JSON_ARRAY JSON_EXTRACT JSON_MERGE_PATCH JSON_OBJECT JSON_QUOTE JSON_SET POINT " +
	"ST_GEOMFROMTEXT ST_GEOMFROMWKB LAST_INSERT_ID USER CURRENT_USER DATABASE CONNECTION_ID VERSION "

// changed reports whether the statement inserted or changed a row. With clientFoundRows, an
// existing row that stays unchanged counts as one affected row.
func (k *insertion) changed(report insertReport, foundRows bool) bool {
	if !k.in.OnDuplicate || k.count(rowInserted) > 0 || !foundRows {
		return report.affected != 0
	}
	return report.affected > int64(len(k.in.Rows))
}

// firstInserted returns the first generated key that was inserted.
func (k *insertion) firstInserted() (first int64, ok bool) {
	next := 0
	for i := range k.in.Rows {
		if !k.isGenerated(i) {
			continue
		}
		if k.rows.of(i) == rowInserted {
			return k.idOf(next), true
		}
		next++
	}
	return 0, false
}

// lastRowsKey returns the key of the last row: the explicit key, or the existing row's key. It
// returns 0 if only the server has the key.
func (e *execution) lastRowsKey(k *insertion, report insertReport) int64 {
	last := len(k.in.Rows) - 1
	switch {
	case k.rows != nil && k.rows.lastPresent:
	case k.isGenerated(last) && report.id == k.idOf(k.keys.Len()-1):
		return 0 // the key of an ignored row: the server returns the last key of an AUTO_INCREMENT column
	case k.in.ReportsExistingKey && last > 0 && k.rows.of(last) == rowUncertain && !k.isGenerated(last):
		return 0 // the ID may be an earlier row's key
	case k.rows.of(last) != rowInserted:
		return report.id
	}
	if k.isGenerated(last) {
		return 0 // the first generated key was reported
	}
	return session.InsertID(e.storedKey(k, last))
}

// settleReplaced handles rows that a later row of the same REPLACE may have replaced. It queries
// the table only if the caller wants the keys, since AUTO_INCREMENT reports the first key of a
// REPLACE anyway.
func (e *execution) settleReplaced(ctx context.Context, k *insertion, report *insertReport) {
	if e.out == nil {
		k.mark(rowUncertain)
	} else {
		e.verify(ctx, k, report)
	}
}

// verify queries which of the rows' keys are in the table, and which existing row a guarded upsert
// matched last. If the query fails, or if its result contradicts the affected rows, the other rows
// stay uncertain, since the statement has succeeded. verify returns the verdict on an upsert of one
// row.
func (e *execution) verify(ctx context.Context, k *insertion, report *insertReport) rowsOutcome {
	keys := e.rowKeys(k)
	k.mark(rowUncertain)
	reports := k.in.ReportsExistingKey && e.session.ReportsInsertIDs()
	found, err := e.session.PresentKeys(ctx, k.in, keys, reports)
	if err == nil {
		own := report.id == 0 || found[session.Text(report.id)] // the matched row may be one of the statement's
		n := k.compare(keys, found)
		lost := reports && len(found) == 0 && n.given == 0 && k.matched(report) && !(own && n.inserted > 0)
		if lost || !k.isPossible(n, report.affected, e.session.Client().FoundRows) {
			err = errContradiction
		}
		if k.in.Ignore && !k.in.OnDuplicate {
			k.settleGiven(report.affected - n.inserted)
		}
	}
	if err != nil {
		e.doubt(ctx, k, err)
		return unclear
	}
	k.findExisting(report, found)
	return k.verdict()
}

// rowCounts are numbers of rows by their keys.
type rowCounts struct {
	inserted int64 // generated, and in the table
	given    int64 // explicit or an expression, so another row may have it
	missing  int64 // not in the table
}

// compare sets the rows' states by the keys that are in the table, and removes these from present.
func (k *insertion) compare(keys []any, present map[string]bool) (n rowCounts) {
	last := keys[len(keys)-1]
	k.rows.lastPresent = last != nil && present[session.Text(last)]
	for i, key := range keys {
		switch is := key != nil && present[session.Text(key)]; {
		case is && k.isGenerated(i):
			k.rows.states[i] = rowInserted
			n.inserted++
		case is:
			k.rows.states[i] = rowInserted
			n.given++
		case key == nil, k.isExpression(i): // the row has another key, or was not inserted
			n.given++
		default:
			k.rows.states[i] = rowNotInserted
			n.missing++
		}
	}
	for _, key := range keys {
		delete(present, session.Text(key))
	}
	return n
}

var errContradiction = errors.New("the affected rows don't match the keys in the table: a replica may have answered the query")

// isPossible reports whether the rows allow that number of affected rows. Otherwise another server
// answered the query, another session changed the rows, or an invisible trigger did.
func (k *insertion) isPossible(n rowCounts, affected int64, foundRows bool) bool {
	switch {
	case affected == unknownCount, k.column.Facts().Triggered:
		return true
	case k.in.Replace: // the last row isn't replaced
		return k.rows.of(len(k.in.Rows)-1) != rowNotInserted
	case !k.in.OnDuplicate:
		return n.inserted <= affected && affected <= n.inserted+n.given
	}
	// A row that existed counts 2, or 0 if it is unchanged; with foundRows or a trigger perhaps 1.
	even := (affected-n.inserted)%2 == 0 || n.given > 0 || foundRows || k.column.Facts().HasTriggers
	return n.inserted <= affected && affected <= n.inserted+2*(n.missing+n.given) && even
}

// doubt makes the rows whose keys are missing uncertain, and logs that.
func (e *execution) doubt(ctx context.Context, k *insertion, err error) {
	for i, state := range k.rows.states {
		if state == rowNotInserted {
			k.rows.states[i] = rowUncertain
		}
	}
	k.warnUnknownKeys(ctx, e.plan.rules.logger, len(k.in.Rows), err)
}

// warnUnknownKeys logs that the keys of a statement's rows weren't found, once for each table.
func (t *plannedInsert) warnUnknownKeys(ctx context.Context, logger *slog.Logger, rows int, err error) {
	if !t.table.warnedKeys.Swap(true) {
		logger.WarnContext(ctx, "shardkey: keys of an INSERT are unknown", "table", nameOf(t.in), "rows", rows, "error", err)
	}
}

// findExisting records the key of the row that an upsert matched last. others are the keys in the
// table that aren't the rows' own: LAST_INSERT_ID(), at most. That is the existing row's key if the
// statement set it, and may be an older one otherwise.
func (k *insertion) findExisting(report *insertReport, others map[string]bool) {
	missing := k.count(rowNotInserted)
	for text := range others {
		key := sqltoken.ParseInteger(text, 10)
		if id := session.InsertID(key); !k.matched(report) && !(k.carries && missing > 0) && id != report.id {
			continue
		}
		if missing == 1 && k.count(rowUncertain) == 0 {
			k.rows.existing = key
		}
		report.id = session.InsertID(key)
	}
}

// matched reports whether a row certainly existed, so that LAST_INSERT_ID() is the key of the last
// such row. IGNORE may have skipped a row instead, and a trigger may have changed a new row's key.
func (k *insertion) matched(report *insertReport) bool {
	facts, updated := k.column.Facts(), report.affected == 2*int64(len(k.in.Rows))
	return k.count(rowNotInserted) > 0 && (updated || !k.in.Ignore && !facts.Triggered) &&
		!(facts.OtherHasAutoIncrement && len(k.in.Rows) > 1) // LAST_INSERT_ID() may be that column's value
}

// verdict returns the verdict on an upsert of one row from the row's state.
func (k *insertion) verdict() rowsOutcome {
	switch {
	case !k.in.OnDuplicate || len(k.in.Rows) > 1 || k.rows.of(0) == rowUncertain:
		return unclear
	case k.rows.of(0) == rowInserted:
		return allInserted
	case k.rows.existing != nil:
		return oneExists
	}
	return noneInserted
}

// isKey reports whether an insert ID is the key of a row, for servers where it may be another
// column's value.
func (e *execution) isKey(ctx context.Context, k *insertion, id int64) bool {
	present, err := e.session.PresentKeys(ctx, k.in, []any{id}, false)
	return err == nil && present[session.Text(id)]
}

// isExpression reports whether an expression may have replaced row i's generated key.
func (k *insertion) isExpression(i int) bool {
	return k.in.Rows[i].Key == rewrite.Expression
}

func (k *insertion) hasExpressions() bool {
	isExpression := func(r rewrite.Row) bool { return r.Key == rewrite.Expression }
	return !k.in.AllGenerated && slices.ContainsFunc(k.in.Rows, isExpression)
}

// settleGiven sets the state of the rows with explicit keys of an IGNORE, given how many rows without
// a generated key were inserted. An explicit key in the table may be another row's.
func (k *insertion) settleGiven(inserted int64) {
	state, others := rowUncertain, int64(0)
	for i := range k.rows.states {
		if !k.isGenerated(i) || k.isExpression(i) && k.rows.of(i) != rowInserted {
			others++
		}
	}
	switch {
	case k.column.Facts().Triggered: // a generated key that the trigger changed looks as if it was skipped
	case inserted == others:
		state = rowInserted
	case inserted == 0:
		state = rowNotInserted
	}
	for i := range k.rows.states {
		if !k.isGenerated(i) {
			k.rows.states[i] = state
		}
	}
}
