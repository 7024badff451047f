package session

import (
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// changes are the facts about a session that a string may change.
type changes struct {
	Reading  bool // sql_mode and character_set_client
	Database bool // the current database
	Columns  bool // columns of tables
	// Variables are session variables, as in SET, including sql_mode and character_set_client.
	Variables bool
}

// changesOf returns the facts that executing a query may change. mode and charset are the session's.
func changesOf(q *sqltoken.Query, mode sqltoken.Mode, charset sqltoken.Charset) changes {
	switch {
	case q.Class == sqltoken.ClassPass, q.IsOneInsert():
		return changes{}
	case q.Class == sqltoken.ClassUse:
		return changes{Database: true}
	case q.Class == sqltoken.ClassDDL:
		return changes{Database: q.Has(sqltoken.WordDatabase), Columns: true}
	}
	several := q.Class != sqltoken.ClassSet
	if several && q.Has(sqltoken.WordExecute|sqltoken.WordCall) {
		return changes{Reading: true, Database: true, Columns: true, Variables: true}
	}
	// MySQL 9.7 ignores accents in the names of variables, so sql_modé is sql_mode.
	reading := q.Has(sqltoken.WordSQLMode|sqltoken.WordNames|sqltoken.WordChar) || q.MayNameBeyondASCII(mode, charset)
	return changes{Reading: reading, Database: several, Columns: several, Variables: true}
}

// ReadsCounts reports whether a string calls FOUND_ROWS() or ROW_COUNT(). They return counts of the
// session's previous statement (MySQL manual, "Information Functions"), so a statement in between
// changes them.
func ReadsCounts(text string, mode sqltoken.Mode) bool {
	if !sqltoken.Contains(text, "FOUND_ROWS") && !sqltoken.Contains(text, "ROW_COUNT") {
		return false
	}
	lx := sqltoken.Lexer{Text: text, Mode: mode}
	for t := lx.Next(); t.Kind != sqltoken.EOF && t.Kind != sqltoken.Bad; t = lx.Next() {
		name := strings.Trim(text[t.Start:t.End], "`")
		if sqltoken.Is(name, "FOUND_ROWS", "ROW_COUNT") && lx.IsPunct(lx.Peek(), '(') {
			lx.Next()
			if lx.IsPunct(lx.Peek(), ')') {
				return true
			}
		}
	}
	return false
}

// nextTransaction returns the statements that set what only the next transaction has, after the server
// has executed a string. They are SET TRANSACTION without SESSION or GLOBAL, SET @@transaction_isolation
// and similar ones, and those behind them that set the same for the session. before are the statements
// before it.
func nextTransaction(before []string, text string, mode sqltoken.Mode, charset sqltoken.Charset) []string {
	pending := slices.Clone(before)
	lx := sqltoken.NewLexer(text, mode, charset)
	for {
		t := lx.Next()
		switch {
		case t.Kind == sqltoken.EOF, t.Kind == sqltoken.Bad:
			return lastOfEach(pending)
		case lx.IsPunct(t, ';'):
			continue
		}
		sets, keeps, end := follow(&lx, t)
		switch {
		case sets == nextOnly, sets == inSession && len(pending) > 0:
			pending = append(pending, text[t.Start:end])
		case !keeps:
			pending = nil
		}
	}
}

// lastOfEach removes all but the last of equal statements.
func lastOfEach(statements []string) []string {
	last := make(map[string]int, len(statements))
	for i, s := range statements {
		last[s] = i
	}
	n := 0
	for i, s := range statements {
		if last[s] == i {
			statements[n] = s
			n++
		}
	}
	return statements[:n]
}

// mayChangeTransaction reports whether a query may set the characteristics of the next transaction.
func mayChangeTransaction(q *sqltoken.Query) bool {
	return (q.Class == sqltoken.ClassSet || q.Class == sqltoken.ClassSeveral) && q.Has(sqltoken.WordTransaction)
}

// setsTransaction is what a statement does to the characteristics of transactions.
type setsTransaction uint8

const (
	nothing   setsTransaction = iota
	inSession                 // it sets those of the session, which replace the next transaction's
	nextOnly                  // it sets those of the next transaction
)

// follow parses the statement that begins with t, up to its semicolon. It reports in keeps whether the
// statement leaves the characteristics in effect, which is the case if it reads no table.
func follow(lx *sqltoken.Lexer, t sqltoken.Token) (sets setsTransaction, keeps bool, end int) {
	verb := lx.Keyword(t)
	set := sqltoken.Is(verb, "SET")
	keeps = set || sqltoken.Is(verb, "USE", "SELECT", "DO", "VALUES") || lx.IsPunct(t, '(') ||
		sqltoken.Is(verb, "SAVEPOINT", "PREPARE", "DEALLOCATE", "UNLOCK")
	show := sqltoken.Is(verb, "SHOW")
	target, depth := lx.Pos, 0 // the start of what SET assigns to, negative in a value
	for first := true; ; first = false {
		end = lx.Pos
		u := lx.Next()
		word := lx.Keyword(u)
		switch {
		case lx.EndsStatement(u):
			return sets, keeps, end
		case set && first && sqltoken.Is(word, "TRANSACTION"):
			sets = nextOnly
		case set && first && sqltoken.Is(word, "SESSION", "LOCAL") && lx.Is(lx.Peek(), "TRANSACTION"):
			sets = inSession
		case set && target >= 0 && lx.IsPunct(u, '='):
			sets, target = max(sets, assigns(lx.Text[target:u.Start])), -1
		case lx.IsPunct(u, '('):
			depth++
		case lx.IsPunct(u, ')'):
			depth--
		case lx.IsPunct(u, ',') && depth == 0:
			target = lx.Pos
		case set && first && sqltoken.Is(word, "STATEMENT"), sqltoken.Is(word, "FROM") && !lx.Is(lx.Peek(), "DUAL"):
			keeps = false
		case show && first:
			keeps = sqltoken.Is(word, "WARNINGS", "ERRORS", "VARIABLES", "STATUS", "CREATE")
		}
	}
}

// assigns returns what an assignment to a variable does. A variable @@name without a scope is the next
// transaction's (MySQL manual, "SET TRANSACTION Statement").
func assigns(target string) setsTransaction {
	words := strings.FieldsFunc(strings.ReplaceAll(target, "`", ""), func(r rune) bool { return strings.ContainsRune(" \t\r\n.:", r) })
	last := len(words) - 1
	if last < 0 || !isTransactionVariable(strings.TrimPrefix(words[last], "@@")) {
		return nothing
	}
	switch {
	case last > 0 && sqltoken.Is(strings.TrimPrefix(words[last-1], "@@"), "GLOBAL", "PERSIST", "PERSIST_ONLY"):
		return nothing
	case strings.HasPrefix(words[last], "@@"):
		return nextOnly
	}
	return inSession
}

// isTransactionVariable reports whether a name is a variable with characteristics of transactions.
func isTransactionVariable(name string) bool {
	return sqltoken.Is(name, "TRANSACTION_ISOLATION", "TRANSACTION_READ_ONLY", "TX_ISOLATION", "TX_READ_ONLY")
}
