package rewrite

import (
	"slices"
	"strings"
)

// skipComment moves past the comment that begins at pos, if one does. For an
// executable comment that counts as text it moves past its opening, and later
// past its end. Within an executable comment the servers execute another one,
// and the first "*/" ends both.
func (lx *lexer) skipComment() (skipped, ok bool) {
	rest := lx.text[lx.pos:]
	switch rest[0] {
	case '#':
		lx.skipLine()
		return true, true
	case '-':
		if !lx.startsLine(rest) {
			return false, true
		}
		lx.skipLine()
		return true, true
	case '*':
		if !lx.inside || !strings.HasPrefix(rest, "*/") {
			return false, true
		}
		lx.inside = false
		lx.pos += 2
		return true, true
	case '/':
		if !strings.HasPrefix(rest, "/*") {
			return false, true
		}
	}
	opening, length := executableOpening(rest)
	if length == 0 {
		return true, lx.skipPlain(rest)
	}
	lx.open(opening)
	switch {
	case lx.engine.runs(opening):
		if lx.inside {
			lx.noted().unsure = "executable comments stand in one another; write the statement without them"
		}
		lx.inside = true
		lx.pos += length
		return true, true
	case lx.engine.isPlain(opening):
		return true, lx.skipPlain(rest)
	}
	return true, lx.skipExecutable(rest[length:], length)
}

// startsLine reports whether "--" begins a comment: it is followed by a blank
// or a control character.
func (lx *lexer) startsLine(rest string) bool {
	switch {
	case !strings.HasPrefix(rest, "--"):
		return false
	case len(rest) == 2 || rest[2] <= ' ' || rest[2] == 0x7f:
		return true
	case rest[2] >= 0x80 && lx.charset != CharsetUTF8:
		lx.noted().unsure = "-- stands before a letter that may be a blank; write a blank"
	}
	return false
}

func (lx *lexer) skipPlain(rest string) bool {
	end := strings.Index(rest[2:], "*/")
	lx.pos += 2 + end + 2
	return end >= 0
}

// skipExecutable moves past an executable comment, which may hold plain ones.
func (lx *lexer) skipExecutable(body string, opening int) bool {
	for i := 0; i+1 < len(body); i++ {
		switch body[i : i+2] {
		case "*/":
			lx.pos += opening + i + 2
			return true
		case "/*":
			end := strings.Index(body[i+2:], "*/")
			if end < 0 {
				return false
			}
			i += 2 + end + 1
		}
	}
	return false
}

func (lx *lexer) skipLine() {
	if end := strings.IndexByte(lx.text[lx.pos:], '\n'); end >= 0 {
		lx.pos += end + 1
	} else {
		lx.pos = len(lx.text)
	}
}

// opening is how an executable comment begins: /*!80000, or MariaDB's /*M!.
type opening struct {
	mariadb bool
	version int32 // 0 without one
	odd     bool
}

// executableOpening reads the opening that s begins with. Its length is 0 for
// an ordinary comment.
func executableOpening(s string) (o opening, length int) {
	switch {
	case strings.HasPrefix(s, "/*!"):
		length = len("/*!")
	case strings.HasPrefix(s, "/*M!"):
		o.mariadb, length = true, len("/*M!")
	default:
		return o, 0
	}
	version, digits := int32(0), 0
	for length+digits < len(s) && digits < 7 && isDigit(s[length+digits]) {
		if digits < 6 {
			version = 10*version + int32(s[length+digits]-'0')
		}
		digits++
	}
	if digits >= 5 {
		o.version, o.odd = version, digits > 6
		length += min(digits, 6)
	}
	return o, length
}

// maxOpenings are the openings, different from each other, that a text may have.
const maxOpenings = 16

// open takes note of an opening.
func (lx *lexer) open(o opening) {
	n := lx.noted()
	switch {
	case o.odd:
		n.unsure = "the version of an executable comment is not understood; write the statement without it"
	case slices.Contains(n.openings, o):
	case len(n.openings) == maxOpenings:
		n.unsure = "the executable comments are of too many versions; write the statement without them"
	default:
		n.openings = append(n.openings, o)
	}
}

// engine is a server, as executable comments see it.
type engine struct {
	all     bool  // runs every one
	mariadb bool  // runs /*M! too, and leaves out the versions that only MySQL had
	version int32 // runs those up to it; −1: none, as some proxies do
}

func (e engine) runs(o opening) bool {
	const mysqlFrom, mysqlTo = 50700, 99999 // versions that MariaDB leaves to MySQL
	switch {
	case e.all:
		return true
	case o.mariadb && !e.mariadb:
		return false
	case e.mariadb && !o.mariadb && o.version >= mysqlFrom && o.version <= mysqlTo:
		return false
	}
	return o.version <= e.version
}

// isPlain reports whether an executable comment is an ordinary one for e.
func (e engine) isPlain(o opening) bool { return o.mariadb && !e.mariadb }

// engines are servers that differ in which of the openings they run. The first
// runs them all.
func engines(openings []opening) []engine {
	list := []engine{{all: true}}
	var seen []uint32
	add := func(e engine) {
		runs := uint32(0)
		for i, o := range openings {
			if e.runs(o) {
				runs |= 1 << i
			}
		}
		if !slices.Contains(seen, runs) {
			seen, list = append(seen, runs), append(list, e)
		}
	}
	add(list[0])
	list = list[:1]
	add(engine{mariadb: true, version: -1})
	for _, mariadb := range []bool{false, true} {
		add(engine{mariadb: mariadb})
		for _, o := range openings {
			add(engine{mariadb: mariadb, version: o.version})
		}
	}
	return list
}
