package rewrite

import (
	"slices"
	"strings"
)

// NextTransaction returns the statements that set the characteristics of the next
// transaction alone and are still in force after a string that the server has
// executed: SET TRANSACTION without SESSION or GLOBAL, and SET @@transaction_isolation
// and the like. before are those that were in force.
func NextTransaction(before []string, text string, mode Mode, charset Charset) []string {
	pending := slices.Clone(before)
	p := &parser{lexer: newLexer(text, mode, charset), plan: &Plan{text: text}}
	for {
		t := p.next()
		switch {
		case t.kind == tokenEOF, t.kind == tokenBad:
			return pending
		case p.isPunct(t, ';'):
			continue
		}
		next, keeps, end := p.nextTransaction(t)
		switch {
		case next:
			statement := text[t.start:end]
			pending = slices.DeleteFunc(pending, func(s string) bool { return s == statement })
			pending = append(pending, statement)
		case !keeps:
			pending = nil
		}
	}
}

// MayChangeTransaction reports whether a text of a class may set the characteristics of
// the next transaction.
func MayChangeTransaction(text string, class Class) bool {
	return (class == classSet || class == ClassSeveral) && (containsFold(text, "TRANSACTION") || containsFold(text, "@TX_") || containsFold(text, "@`TX_"))
}

// nextTransaction reads the statement that begins with t, up to its semicolon. It
// reports whether the statement is for the next transaction, and whether it leaves what
// is set for that, as statements do that read no table.
func (p *parser) nextTransaction(t token) (next, keeps bool, end int) {
	verb := p.word(t)
	set := fold(verb, "SET")
	keeps = set || fold(verb, "USE", "SELECT", "DO", "VALUES") || p.isPunct(t, '(') ||
		fold(verb, "SAVEPOINT", "PREPARE", "DEALLOCATE", "UNLOCK")
	show := fold(verb, "SHOW")
	session := false
	for first := true; ; first = false {
		end = p.pos
		u := p.next()
		word := p.word(u)
		switch {
		case p.endsStatement(u):
			return next && !session, keeps, end
		case set && first && fold(word, "TRANSACTION"):
			next = true
		case set && strings.HasSuffix(p.text[:u.start], "@@") && isTransactionVariable(p.text[u.start:u.end]):
			next = true
		case set && (fold(word, "SESSION", "LOCAL")) && p.is(p.peek(), "TRANSACTION"):
			session, keeps = true, false // it ends what was set for one transaction
		case set && first && fold(word, "STATEMENT"), fold(word, "FROM") && !p.is(p.peek(), "DUAL"):
			keeps = false
		case show && first:
			keeps = fold(word, "WARNINGS", "ERRORS", "VARIABLES", "STATUS", "CREATE")
		}
	}
}

// isTransactionVariable reports whether a name, quoted or not, is of a variable that a
// transaction takes its characteristics from.
func isTransactionVariable(name string) bool {
	if name[0] == '`' {
		name = unquoteIdentifier(name)
	}
	return fold(name, "TRANSACTION_ISOLATION", "TRANSACTION_READ_ONLY", "TX_ISOLATION", "TX_READ_ONLY")
}
