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
func changesOf(q sqltoken.Query, mode sqltoken.Mode, charset sqltoken.Charset) changes {
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

// nextTransaction returns the statements that apply only to the next transaction and are still in
// effect after the server has executed a string. They are SET TRANSACTION without SESSION or
// GLOBAL, SET @@transaction_isolation and similar ones. before are the statements in effect before
// it.
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
		next, keeps, end := follow(&lx, t)
		switch {
		case next:
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
func mayChangeTransaction(q sqltoken.Query) bool {
	return (q.Class == sqltoken.ClassSet || q.Class == sqltoken.ClassSeveral) && q.Has(sqltoken.WordTransaction)
}

// follow parses the statement that begins with t, up to its semicolon. It reports in next
// whether the statement applies to the next transaction. It reports in keeps whether the statement
// leaves the characteristics in effect, which is the case if it reads no table.
func follow(lx *sqltoken.Lexer, t sqltoken.Token) (next, keeps bool, end int) {
	verb := lx.Keyword(t)
	set := sqltoken.Is(verb, "SET")
	keeps = set || sqltoken.Is(verb, "USE", "SELECT", "DO", "VALUES") || lx.IsPunct(t, '(') ||
		sqltoken.Is(verb, "SAVEPOINT", "PREPARE", "DEALLOCATE", "UNLOCK")
	show := sqltoken.Is(verb, "SHOW")
	session := false
	for first := true; ; first = false {
		end = lx.Pos
		u := lx.Next()
		word := lx.Keyword(u)
		switch {
		case lx.EndsStatement(u):
			return next && !session, keeps, end
		case set && first && sqltoken.Is(word, "TRANSACTION"):
			next = true
		case set && strings.HasSuffix(lx.Text[:u.Start], "@@") && isTransactionVariable(lx.Text[u.Start:u.End]):
			next = true
		case set && (sqltoken.Is(word, "SESSION", "LOCAL")) && lx.Is(lx.Peek(), "TRANSACTION"):
			session, keeps = true, false // it ends the characteristics of a single transaction
		case set && first && sqltoken.Is(word, "STATEMENT"), sqltoken.Is(word, "FROM") && !lx.Is(lx.Peek(), "DUAL"):
			keeps = false
		case show && first:
			keeps = sqltoken.Is(word, "WARNINGS", "ERRORS", "VARIABLES", "STATUS", "CREATE")
		}
	}
}

// isTransactionVariable reports whether a name, quoted or not, is a variable with characteristics
// of transactions.
func isTransactionVariable(name string) bool {
	if name[0] == '`' {
		name = sqltoken.UnquoteIdentifier(name)
	}
	return sqltoken.Is(name, "TRANSACTION_ISOLATION", "TRANSACTION_READ_ONLY", "TX_ISOLATION", "TX_READ_ONLY")
}
