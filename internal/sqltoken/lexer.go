package sqltoken

import "strings"

// Kind is the kind of a token.
type Kind uint8

const (
	EOF    Kind = iota
	Word        // an identifier or keyword without quotes
	Quoted      // a quoted identifier
	String      // a string literal
	Number      // an integer, decimal, float, 0x… or 0b… literal
	Param       // ?
	Punct       // any other byte
	Bad         // an unterminated string, identifier or comment
)

// Token is a token with its place in [Lexer.Text].
type Token struct {
	Kind       Kind
	Start, End int
}

// Lexer finds the ends of comments, strings, identifiers, placeholders and brackets as MySQL and
// MariaDB do (MySQL manual, "Language Structure"; MariaDB, "Comment Syntax").
type Lexer struct {
	Text    string
	Pos     int
	Params  int // the number of placeholders before Pos
	Mode    Mode
	Charset Charset
	// cut: unreadable bytes follow.
	cut bool
	// executable: an executable comment was opened.
	executable bool
	// ExecutableIsBlank: executable comments are skipped as other comments are. One that may contain
	// the end of a statement, or an INSERT, is a doubt.
	ExecutableIsBlank bool
	// Unsure is the reason why the servers may read the string differently from UnsureAt on; empty
	// if they don't.
	Unsure   string
	UnsureAt int
	// Consulted are the sql_mode bits that the tokens depended on.
	Consulted Mode
	Prev      Token
}

// NewLexer returns a lexer for the readable part of a string.
func NewLexer(text string, mode Mode, charset Charset) Lexer {
	lx := Lexer{Text: charset.Readable(text), Mode: mode, Charset: charset}
	lx.cut = len(lx.Text) < len(text)
	return lx
}

// CountParams returns the number of placeholders in a string.
func CountParams(text string, mode Mode, charset Charset) int {
	lx := NewLexer(text, mode, charset)
	for t := lx.Next(); t.Kind != EOF && t.Kind != Bad; t = lx.Next() {
	}
	return lx.Params
}

// Doubt records that the servers may read the string differently, unless there is an earlier doubt.
func (lx *Lexer) Doubt(at int, reason string) {
	if lx.Unsure == "" {
		lx.Unsure, lx.UnsureAt = reason, at
	}
}

// Next returns the next token, skipping blanks and comments.
func (lx *Lexer) Next() Token {
	lx.Prev = lx.scan()
	lx.MustRead(lx.Pos)
	return lx.Prev
}

// MustRead doubts a string that must be read up to a position, if it is unreadable there.
func (lx *Lexer) MustRead(to int) {
	if lx.cut && len(lx.Text) <= to {
		lx.Doubt(len(lx.Text), reasonOther)
	}
}

func (lx *Lexer) scan() Token {
	if bad := lx.skipBlanks(); bad >= 0 {
		lx.Pos = len(lx.Text)
		return Token{Bad, bad, len(lx.Text)}
	}
	start := lx.Pos
	if lx.AtEnd() {
		return Token{EOF, start, start}
	}
	switch c := lx.Text[start]; {
	case c == '\'' || c == '"' || c == '`':
		return lx.quoted(c)
	case c == '?':
		lx.Pos++
		lx.Params++
		return Token{Param, start, lx.Pos}
	case isDigit(c), c == '.' && lx.dotStartsNumber():
		return lx.number()
	case IsWordByte(c):
		return lx.wordTo(WordEnd(lx.Text, start))
	case c == '[':
		return lx.Bracketed()
	}
	lx.Pos++
	return Token{Punct, start, lx.Pos}
}

// wordTo returns the word that ends at a position.
func (lx *Lexer) wordTo(end int) Token {
	start := lx.Pos
	if lx.Charset != UTF8 && !IsASCII(lx.Text[start:end]) {
		lx.Doubt(start, ReasonLatin1)
	}
	if lx.Text[start] == '$' && strings.IndexByte(lx.Text[start+1:end], '$') >= 0 {
		lx.Doubt(start, reasonDollar)
	}
	lx.Pos = end
	return Token{Word, start, end}
}

// AtEnd reports whether the string ends here. The servers accept a NUL at the end.
func (lx *Lexer) AtEnd() bool {
	rest := lx.Text[lx.Pos:]
	return rest == "" || rest == "\x00"
}

// Bracketed reads a name in square brackets, for MariaDB's mode MSSQL.
func (lx *Lexer) Bracketed() Token {
	lx.Consulted |= MSSQL
	if lx.Mode&MSSQL == 0 {
		lx.Pos++
		return Token{Punct, lx.Pos - 1, lx.Pos}
	}
	return lx.quoted(']')
}

// Peek returns the next token without consuming it.
func (lx *Lexer) Peek() Token {
	saved := *lx
	t := lx.Next()
	lx.Restore(saved)
	return t
}

// Unread makes the last token the next one again.
func (lx *Lexer) Unread() {
	if lx.Pos = lx.Prev.Start; lx.Prev.Kind == Param {
		lx.Params--
	}
}

// Restore returns to a saved position, but keeps recorded doubts and modes.
func (lx *Lexer) Restore(saved Lexer) {
	saved.Consulted = lx.Consulted
	saved.executable, saved.Unsure, saved.UnsureAt = lx.executable, lx.Unsure, lx.UnsureAt
	*lx = saved
}

func (lx *Lexer) quoted(quote byte) Token {
	start := lx.Pos
	end, ok := lx.SkipQuoted(start, quote)
	lx.Pos = end
	switch {
	case !ok:
		return Token{Bad, start, end}
	case quote == '`', quote == ']', quote == '"' && lx.Mode&ANSIQuotes != 0:
		return Token{Quoted, start, end}
	}
	return Token{String, start, end}
}

// SkipQuoted returns the position after the string or identifier that begins at start and ends with
// quote. It reports whether there is an end.
func (lx *Lexer) SkipQuoted(start int, quote byte) (int, bool) {
	escapes := quote == '\''
	if quote == '"' {
		lx.Consulted |= ANSIQuotes
		escapes = lx.Mode&ANSIQuotes == 0
	}
	pos, end := start+1, -1 // end: the next quote at or after pos
	for {
		if end < pos {
			next := strings.IndexByte(lx.Text[min(pos, len(lx.Text)):], quote)
			if next < 0 {
				if escapes && strings.IndexByte(lx.Text[min(pos, len(lx.Text)):], '\\') >= 0 {
					lx.Consulted |= NoBackslashEscapes
				}
				return len(lx.Text), false
			}
			end = pos + next
		}
		if escapes {
			if slash := strings.IndexByte(lx.Text[pos:end], '\\'); slash >= 0 {
				lx.Consulted |= NoBackslashEscapes
				if lx.Mode&NoBackslashEscapes == 0 {
					pos += slash + 2
					continue
				}
			}
		}
		// A doubled quote is an escaped quote.
		pos = end + 1
		if pos == len(lx.Text) || lx.Text[pos] != quote {
			return pos, true
		}
		pos++
	}
}

// skipBlanks moves to the next byte that is neither blank nor comment. It returns −1, or the
// position of an unterminated comment.
func (lx *Lexer) skipBlanks() (unterminated int) {
	for lx.Pos < len(lx.Text) {
		c := lx.Text[lx.Pos]
		if IsBlank(c) {
			lx.Pos++
			continue
		}
		if !IsComment(c) {
			break
		}
		at := lx.Pos
		skipped, ok := lx.SkipComment()
		if !ok {
			return at
		}
		if !skipped {
			break
		}
	}
	return -1
}

// Reasons for refusing a statement that MySQL reads differently from other servers.
const (
	// MySQL 9.7 drops 4.5e and a sign behind it. In 4.5e-- 1 no comment begins: it is −1.
	reasonExponent = "servers differ in the number, whose exponent has no digits; write its digits"
	// MySQL 9 reads $tag$ … $tag$ as a string.
	reasonDollar = "a name that contains two dollar signs begins a string on MySQL 9; write it in backquotes"
)

// reasonExecutable is the reason for refusing a statement with an executable comment. Whether the
// comment is part of it depends on the server and its version.
const reasonExecutable = "an executable comment (/*! or /*M!) is part of the INSERT on some servers only; " +
	"remove the comment"

// SkipComment moves past the comment at pos, if there is one. For an executable comment it skips
// only the beginning and the end.
func (lx *Lexer) SkipComment() (skipped, ok bool) {
	rest := lx.Text[lx.Pos:]
	switch {
	case rest[0] == '#', lx.startsLine(rest):
		lx.skipLine()
		return true, true
	case lx.executable && strings.HasPrefix(rest, "*/"):
		lx.Pos += len("*/")
		return true, true
	case strings.HasPrefix(rest, "/*!"), strings.HasPrefix(rest, "/*M!"):
		if lx.ExecutableIsBlank {
			return true, lx.skipExecutable(rest)
		}
		lx.executable = true
		lx.Doubt(lx.Pos, reasonExecutable)
		lx.Pos += strings.IndexByte(rest, '!') + 1
		for n := 0; n < 6 && lx.Pos < len(lx.Text) && isDigit(lx.Text[lx.Pos]); n++ {
			lx.Pos++ // a digit of the version
		}
		return true, true
	case strings.HasPrefix(rest, "/*"):
		end := strings.Index(rest[2:], "*/")
		lx.Pos += 2 + end + 2
		return true, end >= 0
	}
	return false, true
}

// skipExecutable moves past an executable comment, with which rest begins.
func (lx *Lexer) skipExecutable(rest string) (ok bool) {
	content, _, ok := strings.Cut(rest[2:], "*/")
	if strings.Contains(content, ";") || strings.Contains(content, "/*") || MentionsInsert(content) {
		lx.Doubt(lx.Pos, reasonExecutable)
	}
	lx.Pos = min(lx.Pos+2+len(content)+2, len(lx.Text))
	return ok
}

// startsLine reports whether "--" begins a comment: a blank or a control character must follow.
func (lx *Lexer) startsLine(rest string) bool {
	switch {
	case !strings.HasPrefix(rest, "--"):
		return false
	case len(rest) == 2 || rest[2] <= ' ' || rest[2] == 0x7f:
		if lx.endsInExponent() {
			lx.Doubt(lx.Pos, reasonExponent)
		}
		return true
	case rest[2] >= 0x80 && lx.Charset != UTF8:
		lx.Doubt(lx.Pos, ReasonLatin1)
	}
	return false
}

// endsInExponent reports whether the text before Pos ends in a number with a point and an e.
func (lx *Lexer) endsInExponent() bool {
	number := strings.TrimRight(lx.Text[:lx.Pos], "eE")
	return len(number)+1 == lx.Pos && strings.HasSuffix(strings.TrimRight(number, "0123456789"), ".")
}

func (lx *Lexer) skipLine() {
	if end := strings.IndexByte(lx.Text[lx.Pos:], '\n'); end >= 0 {
		lx.Pos += end + 1
	} else {
		lx.Pos = len(lx.Text)
	}
}

// dotStartsNumber reports whether a dot begins a number: as in ".5", but not in "t.5".
func (lx *Lexer) dotStartsNumber() bool {
	afterName := (lx.Prev.Kind == Word || lx.Prev.Kind == Quoted) && lx.Prev.End == lx.Pos
	return !afterName && lx.Pos+1 < len(lx.Text) && isDigit(lx.Text[lx.Pos+1])
}

// number reads a number, or a word that begins with a digit: 12abc and 1e are names, 1e5 and 0x1F
// aren't. After a dot, all of them are names.
func (lx *Lexer) number() Token {
	start := lx.Pos
	afterDot := lx.Prev.Kind == Punct && lx.Prev.End == start && lx.Text[lx.Prev.Start] == '.'
	if end := numberEnd(lx.Text, start); end > 0 && !afterDot {
		lx.Pos = end
		if end < len(lx.Text) && lx.Text[end]|0x20 == 'e' && strings.IndexByte(lx.Text[start:end], '.') >= 0 {
			lx.Doubt(start, reasonExponent)
		}
		return Token{Number, start, end}
	}
	return lx.wordTo(WordEnd(lx.Text, start))
}

// Keyword returns a word that may be a keyword. The servers read the INTO in INTO.t as a name.
func (lx *Lexer) Keyword(t Token) string {
	if t.Kind != Word || t.End+1 < len(lx.Text) && lx.Text[t.End] == '.' && IsWordByte(lx.Text[t.End+1]) {
		return ""
	}
	return lx.Text[t.Start:t.End]
}

// Is reports whether a token is one of the keywords.
func (lx *Lexer) Is(t Token, keywords ...string) bool {
	return t.Kind == Word && Is(lx.Keyword(t), keywords...)
}

// EndsStatement reports whether a token is the semicolon after a statement, or the end of the
// readable part.
func (lx *Lexer) EndsStatement(t Token) bool {
	return t.Kind == EOF || t.Kind == Bad || lx.IsPunct(t, ';')
}

// LookAhead returns a function that returns to the next token.
func (lx *Lexer) LookAhead() (back func()) {
	saved := *lx
	return func() { lx.Restore(saved) }
}

// IsPunct reports whether a token is this punctuation.
func (lx *Lexer) IsPunct(t Token, c byte) bool {
	return t.Kind == Punct && lx.Text[t.Start] == c
}
