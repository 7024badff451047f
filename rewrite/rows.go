package rewrite

import (
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// rowReader parses rows of values. Statements can have very many rows, so it reads bytes and
// examines only the key's value.
type rowReader struct {
	*parser
	in    *Insert
	key   int // index of the key in each row, −1 if it is missing
	arity int // number of values that each row must have
	// notes are the columns whose values the plan records, by their index in each row. most is the
	// largest index to examine, −1 for none. given are the recorded values of the current row.
	notes []int
	most  int
	given []given
	// listed: the statement lists its columns.
	listed bool
	// wrong is the position of the first row with a wrong number of values, −1 for none. values is
	// that number.
	wrong, values int
	// commented: there is a comment in the row.
	commented bool
}

// find determines the indexes of the values to examine.
func (r *rowReader) find(list []string) {
	r.most = r.key
	if len(r.in.Table.Recorded) == 0 {
		return
	}
	for place, column := range list {
		i := r.noted(r.in, column)
		if i >= 0 {
			r.most, r.given = max(r.most, place), make([]given, len(r.in.Table.Recorded))
		}
		r.notes = append(r.notes, i)
	}
}

func (r *rowReader) all() error {
	for {
		t := r.Next()
		if r.Is(t, "ROW") {
			t = r.Next()
		}
		if !r.IsPunct(t, '(') {
			return r.fail(t.Start, r.in, "expected a row of values")
		}
		if err := r.row(); err != nil {
			return err
		}
		for r.nextRow() {
			if err := r.row(); err != nil {
				return err
			}
		}
		if !r.IsPunct(r.Peek(), ',') {
			return nil
		}
		r.Next()
	}
}

// nextRow moves into the next row if only a comma and blanks precede its bracket. This avoids the
// lexer for most rows.
func (r *rowReader) nextRow() bool {
	pos := r.Pos
	if pos == len(r.Text) || r.Text[pos] != ',' {
		return false
	}
	for pos++; pos < len(r.Text) && sqltoken.IsBlank(r.Text[pos]); pos++ {
	}
	if pos == len(r.Text) || r.Text[pos] != '(' {
		return false
	}
	r.Prev = sqltoken.Token{Kind: sqltoken.Punct, Start: pos, End: pos + 1}
	r.Pos = pos + 1
	return true
}

// row parses one row after its opening bracket.
func (r *rowReader) row() error {
	n, start := 0, r.Pos
	for {
		switch {
		case n == r.key:
			if err := r.keyValue(); err != nil {
				return err
			}
		case n < len(r.notes) && r.notes[n] >= 0:
			v := r.expression(inRow)
			r.given[r.notes[n]] = r.givenBy(&v)
		}
		commas, end, err := r.skipValues(n < r.most)
		if err != nil {
			return err
		}
		n += commas
		if end {
			break
		}
	}
	closing := r.Pos
	r.Pos++
	if r.commented { // a comment may separate the name from its bracket
		r.last = r.last || sqltoken.MentionsLastInsertID(r.Text[start:closing])
		r.commented = false
	}
	if n > 0 || !r.blank(start, closing) {
		n++
	}
	misread := n != r.arity
	switch {
	case !misread:
	case r.listed && r.key < 0 && sqltoken.Contains(r.Text[start:closing], "AGAINST"):
		// MATCH a, b AGAINST (…) contains a comma within a value. The row gets its key, and the
		// server counts its values.
	default:
		r.in.Invalid = true
	}
	if r.in.Invalid && r.wrong < 0 {
		r.wrong, r.values = start, n
	}
	if r.key < 0 {
		r.addRow(r.in, Row{Generated, r.Params}, place{uint32(closing), uint32(closing)})
	}
	if r.given != nil {
		if misread {
			clear(r.given) // the commas don't all separate values
		}
		r.in.given = append(r.in.given, r.given...)
		clear(r.given)
	}
	return nil
}

// outOfRange is a value that the servers refuse even with IGNORE (1690, BIGINT UNSIGNED value is out
// of range).
const outOfRange = "~0 + 1"

// refuse makes the server refuse the statement in any case: it replaces the values of the first
// wrong row by outOfRange. Their number stays wrong, so the server reports its usual error for that.
func (r *rowReader) refuse() {
	more := outOfRange
	if r.values+1 == r.arity {
		more += ", " + outOfRange
	}
	if r.values > 0 {
		more += ", "
	}
	r.in.head = addition(r.wrong, more)
}

// blank reports whether there are only blanks and comments between two positions.
func (r *rowReader) blank(start, end int) bool {
	for start < end && sqltoken.IsBlank(r.Text[start]) {
		start++
	}
	if start == end {
		return true
	}
	if !sqltoken.IsComment(r.Text[start]) {
		return false
	}
	lx := r.Lexer
	lx.Pos = start
	return lx.Next().Start == end
}

// skipValues moves to the closing bracket of the row, or after the next comma if one is set. It
// returns the number of skipped commas.
func (r *rowReader) skipValues(one bool) (commas int, end bool, err error) {
	depth, values := 0, r.Charset.ValueBytes()
	for r.Pos = indexOf(values, r.Text, r.Pos); r.Pos < len(r.Text); r.Pos = indexOf(values, r.Text, r.Pos) {
		start := r.Pos
		switch c := r.Text[start]; c {
		case '\'', '"', '`':
			var ok bool
			if r.Pos, ok = r.SkipQuoted(start, c); !ok {
				return 0, false, r.fail(start, r.in, "unterminated string or name")
			}
			continue
		case '(':
			r.noteCall(start)
			depth++
		case ')':
			if depth == 0 {
				return commas, true, nil
			}
			depth--
		case ',':
			if depth > 0 {
				break
			}
			if commas++; one {
				r.Pos++
				return commas, false, nil
			}
		case ';':
			return 0, false, r.fail(start, r.in, "unterminated row of values")
		case '?':
			r.Params++
		case '@':
			r.noteVariable(start)
		case '[':
			if t := r.Bracketed(); t.Kind == sqltoken.Bad {
				return 0, false, r.fail(start, r.in, "unterminated name")
			}
			continue
		default: // possibly a comment, or a letter
			skipped, err := r.skipOther(c)
			if err != nil {
				return 0, false, err
			}
			if skipped {
				continue
			}
		}
		r.Pos++
	}
	return 0, false, r.fail(len(r.Text), r.in, "unterminated row of values")
}

// indexOf returns the position of the next byte that is set, from pos on, or the text's length.
func indexOf(set *[256]bool, text string, pos int) int {
	for pos < len(text) && !set[text[pos]] {
		pos++
	}
	return pos
}

// skipOther moves after a comment, if there is one, and doubts a letter beyond ASCII.
func (r *rowReader) skipOther(c byte) (skipped bool, err error) {
	if c >= 0x80 {
		r.Doubt(r.Pos, sqltoken.ReasonLatin1)
		return false, nil
	}
	start := r.Pos
	skipped, ok := r.SkipComment()
	if !ok {
		return false, r.fail(start, r.in, "unterminated comment")
	}
	r.commented = r.commented || skipped
	return skipped, nil
}

// noteCall detects LAST_INSERT_ID in front of a bracket.
func (r *rowReader) noteCall(bracket int) {
	named := sqltoken.CallsLastInsertID(r.Text, bracket)
	r.last = r.last || named
}

// noteVariable detects @@last_insert_id and @@identity, with or without a scope.
func (r *rowReader) noteVariable(at int) {
	const longest = len("@@session . `last_insert_id`")
	if at+1 < len(r.Text) && r.Text[at+1] == '@' && sqltoken.MentionsLastInsertID(r.Text[at:min(at+longest, len(r.Text))]) {
		r.last = true
	}
}

// place has the bytes that a row's key replaces; they are equal if the key is added.
type place struct{ at, end uint32 }

// addRow adds the next row, whose key has a place.
func (p *parser) addRow(in *Insert, r Row, at place) {
	if len(in.Rows) == reserveAfter {
		p.reserve(in)
	}
	in.Rows, in.places = append(in.Rows, r), append(in.places, at)
	in.AllGenerated = in.AllGenerated && r.Key == Generated
}

// reserveAfter is the number of rows after which reserve estimates their total number.
const reserveAfter = 64

// reserve allocates memory for the remaining rows, assuming that they are as long as the rows so
// far. So long statements don't reallocate repeatedly.
func (p *parser) reserve(in *Insert) {
	rest := p.Text[p.Pos:]
	if semicolon := strings.IndexByte(rest, ';'); semicolon >= 0 {
		rest = rest[:semicolon]
	}
	length := (p.Pos - int(in.places[0].at)) / reserveAfter
	more := len(rest)/length/16*17 + reserveAfter
	in.Rows, in.places = slices.Grow(in.Rows, more), slices.Grow(in.places, more)
}
