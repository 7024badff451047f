package lint

import (
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Files checks the statements of SQL files, with the columns of the tables that they create.
func (l *Linter) Files(names ...string) error {
	texts := make([]string, len(names))
	for i, name := range names {
		data, err := os.ReadFile(name)
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
	sqlcArgument  = regexp.MustCompile(`\bsqlc\.n?arg\(\s*'?\w+'?\s*\)`)
	delimiterLine = regexp.MustCompile(`(?i)^\s*DELIMITER[ \t]+(\S+)[^\n]*`)
	copyFrom      = regexp.MustCompile(`(?m)^\s*(?:--|#|/\*)\s*name:\s*\w+\s+:copyfrom\b`)
	program       = regexp.MustCompile(`(?i)^\s*(?:CREATE|ALTER)\s+[^;(]*?\b(?:PROCEDURE|FUNCTION|TRIGGER|EVENT|PACKAGE)\b`)
	blockWord     = regexp.MustCompile(`(?i)\b(?:BEGIN|CASE|END(?:\s+(?:CASE|IF|LOOP|REPEAT|WHILE|FOR))?)\b`)
)

// split splits a file into statements like the mysql client: at semicolons, or at the
// delimiter of a DELIMITER line. It keeps the body of a stored program together even without
// such a line.
func (l *Linter) split(text string) (spans []span) {
	masked, pos, delimiter := l.read(text).masked(), 0, ";"
	for pos < len(text) {
		if m := delimiterLine.FindStringSubmatch(masked[pos:]); m != nil {
			pos, delimiter = pos+len(m[0]), m[1]
			continue
		}
		end, next := statementEnd(masked, pos, delimiter)
		if strings.TrimSpace(masked[pos:end]) != "" {
			spans = append(spans, span{pos, end, copyFrom.MatchString(text[pos:end])})
		}
		pos = next
	}
	return spans
}

func statementEnd(masked string, pos int, delimiter string) (end, next int) {
	isProgram, open := delimiter == ";" && program.MatchString(masked[pos:]), 0
	for from := pos; ; {
		i := strings.Index(masked[from:], delimiter)
		if i < 0 {
			return len(masked), len(masked)
		}
		end = from + i
		if open += openBlocks(masked[from:end]); !isProgram || open <= 0 {
			return end, end + len(delimiter)
		}
		from = end + len(delimiter)
	}
}

// openBlocks returns the number of blocks in part of a stored program that have no END yet.
func openBlocks(body string) (n int) {
	for _, word := range blockWord.FindAllString(body, -1) {
		switch fields := strings.Fields(strings.ToUpper(word)); {
		case fields[0] != "END":
			n++
		case len(fields) == 1, fields[1] == "CASE":
			n--
		}
	}
	return n
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
