package lint

import (
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/textfile"
	"github.com/shardkey/shardkey/internal/sqltoken"
)

// Files checks the statements of SQL files, with the columns of the tables that they create.
func (l *Linter) Files(names ...string) error {
	texts := make([]string, len(names))
	for i, name := range names {
		data, err := textfile.Read(name)
		if err != nil {
			return err
		}
		texts[i] = string(data)
		l.learnAll(texts[i])
	}
	for i, name := range names {
		l.statements(name, texts[i])
	}
	return nil
}

// Text checks text like the content of an SQL file called name.
func (l *Linter) Text(name, text string) {
	l.learnAll(text)
	l.statements(name, text)
}

func (l *Linter) statements(name, text string) {
	var all []Finding
	l.summary.Files++
	l.count(token.Position{Filename: name}, text)
	for _, s := range l.split(text) {
		found := l.Statement(sqlcArgument.ReplaceAllStringFunc(text[s.start:s.end], func(arg string) string {
			return "?" + strings.Repeat(" ", len(arg)-1) // of the same length
		}))
		if s.copies {
			found = copies(found)
		}
		for i := range found {
			found[i].offset += s.start
		}
		all = append(all, found...)
	}
	l.report(token.Position{Filename: name, Line: 1, Column: 1}, text, all)
}

func (l *Linter) learnAll(text string) {
	for _, s := range l.split(text) {
		if statement := text[s.start:s.end]; l.read(statement).creates() != nil {
			l.learn(statement)
		}
	}
}

// SQLFiles returns the SQL files of a directory and its subdirectories.
func SQLFiles(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.EqualFold(filepath.Ext(path), ".sql") {
			files = append(files, path)
		}
		return err
	})
	return files, err
}

// span is one statement of a file, with the comments before it.
type span struct {
	start, end int
	copies     bool // sqlc turns it into LOAD DATA
}

var (
	sqlcArgument = regexp.MustCompile(`\bsqlc\.n?arg\(\s*'?\w+'?\s*\)`)
	copyFrom     = regexp.MustCompile(`(?m)^\s*(?:--|#|/\*)\s*name:\s*\w+\s+:copyfrom\b`)
)

// split splits a file into statements like the mysql client: at semicolons, or at the
// delimiter of a DELIMITER line. It keeps the body of a stored program together even without
// such a line.
func (l *Linter) split(text string) (spans []span) {
	pos, delimiter := 0, ";"
	for s := l.read(text); len(s.tokens) > 0; s = s.from(pos) {
		first := s.tokens[0]
		if s.is(0, "DELIMITER") {
			line, _, _ := strings.Cut(text[first.End:], "\n")
			if words := strings.Fields(line); len(words) > 0 {
				pos, delimiter = first.End+len(line), words[0]
				continue
			}
		}
		end := s.end(delimiter)
		if first.Start < end {
			spans = append(spans, span{pos, end, copyFrom.MatchString(text[pos:end])})
		}
		pos = end + len(delimiter)
	}
	return spans
}

// end returns the offset of the delimiter after the first statement, or of the end of the text. A
// delimiter such as $$ may be the end of a word.
func (s script) end(delimiter string) int {
	isProgram, open := delimiter == ";" && s.program() != "", 0
	for i, t := range s.tokens {
		until := min(t.End+len(delimiter)-1, len(s.text))
		at := strings.Index(s.text[t.Start:until], delimiter)
		switch {
		case t.Kind == sqltoken.String || t.Kind == sqltoken.Quoted:
		case at >= 0 && (!isProgram || open <= 0):
			return t.Start + at
		case s.is(i, "BEGIN", "CASE") && !s.is(i-1, "END"):
			open++
		case s.is(i, "END") && !s.is(i+1, "IF", "LOOP", "REPEAT", "WHILE", "FOR"):
			open--
		}
	}
	return len(s.text)
}

// copies adjusts the findings for a query that sqlc turns into LOAD DATA LOCAL INFILE.
func copies(found []Finding) []Finding {
	for i := range found {
		f := &found[i]
		switch {
		case f.Outcome != Filled:
		case strings.Contains(f.Reason, "a key is generated"):
			f.Outcome = Refused
			f.Reason = "sqlc's :copyfrom uses LOAD DATA, for which no key is generated; " +
				"add the key to the columns, or use :exec"
		default:
			f.Outcome = Passed
			f.Reason = "sqlc's :copyfrom uses LOAD DATA, for which no key is generated; the program writes the key"
		}
	}
	return found
}
