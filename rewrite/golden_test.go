package rewrite

import (
	"database/sql/driver"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/internal/test/must"
)

var update = flag.Bool("update", false, "write what is seen into testdata/*.golden")

// goldenTables are the sharded tables of testdata: t has an integer key, u a string key, and v an
// unknown kind and unknown columns. k keeps explicit keys, n has an unsigned key, inv has an invisible key, and we`ird an
// unusual name.
func goldenTables(schema, name string) *Table {
	if schema != "" && !strings.EqualFold(schema, "app") {
		return nil
	}
	switch strings.ToLower(name) {
	case "t":
		return &Table{Key: "id", Columns: []string{"id", "a", "s"}}
	case "u":
		return &Table{Key: "uid", Strings: true, Columns: []string{"a", "uid"}}
	case "k":
		return &Table{Key: "id", KeepExplicit: true, Columns: []string{"id", "a"}}
	case "n":
		return &Table{Key: "id", Unsigned: true}
	case "inv":
		return &Table{Key: "id", Columns: []string{"a", "s"}}
	case "we`ird":
		return &Table{Key: "k`ey", Columns: []string{"k`ey", "select"}}
	case "表", "1e":
		return &Table{Key: "id", Columns: []string{"id", "a"}}
	}
	return nil
}

func goldenOptions() Options { return Options{Table: goldenTables} }

// goldenCase is one case of a golden file:
//
//	=== its name [ansi noescapes nozero strict mssql emptynull gbk big5 sjis latin1 strange mysql vitess mariadb beyond quoted]
//	the text; a Go string when it is quoted
//	--- what comes of it
type goldenCase struct {
	title  string
	text   string
	seen   string
	quoted bool
	opts   Options
}

var (
	goldenModes = map[string]sqltoken.Mode{
		"ansi": sqltoken.ANSIQuotes, "noescapes": sqltoken.NoBackslashEscapes, "nozero": sqltoken.NoAutoValueOnZero,
		"mssql": sqltoken.MSSQL, "emptynull": sqltoken.EmptyStringIsNull, "strict": sqltoken.Strict,
	}
	goldenServers = []string{serverMySQL, serverMariaDB, serverVitess}
)

func readGolden(t testing.TB, file string) (cases []goldenCase) {
	t.Helper()
	data, err := os.ReadFile(file)
	must.Do(t, err)
	for part := range strings.SplitSeq(strings.TrimPrefix(string(data), "=== "), "\n=== ") {
		title, body, _ := strings.Cut(strings.TrimSuffix(part, "\n"), "\n")
		text, seen, _ := strings.Cut(body, "\n---")
		c := goldenCase{title: title, text: text, opts: goldenOptions()}
		if seen != "" {
			c.seen = "---" + strings.TrimSuffix(seen, "\n")
		}
		_, flags, _ := strings.Cut(title, "[")
		for flag := range strings.FieldsSeq(strings.TrimSuffix(flags, "]")) {
			mode, isMode := goldenModes[flag]
			switch {
			case isMode:
				c.opts.SQLMode = (sqltoken.ParseMode(c.opts.SQLMode) | mode).String()
			case slices.Contains(goldenServers, flag):
				c.opts.Server = flag
			case slices.Contains([]string{"gbk", "big5", "sjis", "latin1", "strange"}, flag):
				c.opts.Charset = flag
			case flag == "beyond":
				c.opts.NamesBeyondASCII = true
			case flag == "quoted":
				c.quoted = true
				if c.text, err = strconv.Unquote(text); err != nil {
					t.Fatalf("%s: %s: %v", file, title, err)
				}
			default:
				t.Fatalf("%s: %s: unknown flag %q", file, title, flag)
			}
		}
		cases = append(cases, c)
	}
	return cases
}

func TestGolden_statements(t *testing.T) {
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".golden"), func(t *testing.T) {
			var b strings.Builder
			for _, c := range readGolden(t, file) {
				seen := c.see()
				if seen != c.seen && !*update {
					t.Errorf("%s\ntext: %s\nhave:\n%s\nwant:\n%s\nif that is right: go test ./rewrite -run Golden -update", c.title, c.text, seen, c.seen)
				}
				text := c.text
				if c.quoted {
					text = strconv.Quote(text)
				}
				fmt.Fprintf(&b, "=== %s\n%s\n%s\n\n", c.title, text, seen)
			}
			if *update {
				must.Do(t, os.WriteFile(file, []byte(b.String()), 0o666))
			}
		})
	}
}

// see shows the result for a statement: with placeholders, with literal keys from 101 for servers
// that report LAST_INSERT_ID(expr), and the slots; or the error.
func (c *goldenCase) see() string {
	reports := c.opts
	reports.ReportKeys = true
	plan, err := Parse(c.text, c.opts)
	if err != nil { // perhaps for a server that doesn't report keys
		plan, err = Parse(c.text, reports)
	}
	var failed *StatementError
	switch {
	case errors.Is(err, ErrSeveralStatements):
		statement, rest, err := Split(c.text, c.opts)
		if err != nil {
			return "--- split: " + err.Error()
		}
		return "--- first\n" + c.shown(statement) + "\n--- rest\n" + c.shown(rest)
	case errors.As(err, &failed):
		return fmt.Sprintf("--- error: %s\noffset %d, line %d, column %d", failed, failed.offset(c.text), failed.Line, failed.Char)
	case err != nil:
		return "--- " + err.Error()
	}
	var b strings.Builder
	show := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if plan.Insert == nil {
		return "--- passes"
	}
	if bind := plan.Query(); bind != c.text {
		show("--- bind\n%s", c.shown(bind))
	}
	if plan, err = Parse(c.text, reports); err != nil {
		return "--- with reports: " + err.Error()
	}
	if count := plan.Count(); count != "" {
		show("--- count\n%s", c.shown(count))
	}
	if literal := plan.goldenLiteral(); literal != c.text {
		show("--- literal\n%s", c.shown(literal))
	}
	show("--- placeholders %d + %d%s", plan.NumArgs, plan.NumKeys, namesOf(plan.consulted))
	show("%s", plan.showInsert(plan.Insert))
	return strings.TrimSuffix(b.String(), "\n")
}

// shown shortens the expressions that count the keys of a query.
func (c *goldenCase) shown(text string) string {
	text = strings.ReplaceAll(text, boundCounter, "<counter>")
	if counter, err := newCounter([]int64{101, 102, 103, 104, 105}, 3, 50); err == nil {
		text = strings.ReplaceAll(text, counter.literal(), "<counter of literals>")
	}
	if c.quoted {
		return strconv.Quote(text)
	}
	return text
}

func namesOf(m sqltoken.Mode) string {
	names := ""
	for i, name := range []string{"ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "NO_AUTO_VALUE_ON_ZERO", "MSSQL", "EMPTY_STRING_IS_NULL", "STRICT"} {
		if m&(1<<i) != 0 {
			names += ", consults " + name
		}
	}
	return names
}

// goldenLiteral returns the statement with literal keys from 101.
func (plan *Plan) goldenLiteral() string {
	keys := goldenKeys(plan)
	if plan.Count() != "" {
		keys = &Keys{Ints: []int64{101, 102, 103, 104, 105}, Counted: 3, LastInsertID: 50}
	}
	text, _, err := plan.Bind(nil, make([]driver.NamedValue, plan.NumArgs), keys, true)
	if err != nil {
		return err.Error()
	}
	return text
}

func goldenKeys(p *Plan) *Keys {
	keys, next := new(Keys), int64(101)
	for _, r := range p.Insert.Rows {
		switch {
		case r.Key != Generated:
			continue
		case p.Insert.Table.Strings:
			keys.Values = append(keys.Values, fmt.Sprintf("k%d", next))
		default:
			keys.Ints = append(keys.Ints, next)
		}
		next++
	}
	return keys
}

func (plan *Plan) showInsert(in *Insert) string {
	out := sqltoken.QuoteTable(in.Schema, in.Name)
	for _, f := range []struct {
		name string
		on   bool
	}{{"replace", in.Replace}, {"ignore", in.Ignore}, {"on duplicate", in.OnDuplicate}, {"returning", in.Returning},
		{"mentions LAST_INSERT_ID", in.ReadsLastID}, {"guarded", in.ReportsExistingKey}, {"left to the server's error", in.Invalid}} {
		if f.on {
			out += ", " + f.name
		}
	}
	if in.SelectKey != "" {
		return out + fmt.Sprintf(": %s keys of %s", in.SelectKey, in.Select)
	}
	out += ":"
	for i, r := range in.Rows {
		switch param := r.Arg; r.Key {
		case Generated:
			out += " fill"
		case Argument:
			out += fmt.Sprintf(" argument(%d)", param)
		case Literal:
			out += fmt.Sprintf(" kept(%#v)", plan.LiteralKey(i))
		case Unknown:
			out += " unknown"
		case Expression:
			out += " expression"
		}
	}
	return out
}

// offset returns the position of an error in the string, in bytes from 0.
func (e *StatementError) offset(text string) int {
	lines := strings.SplitAfter(text, "\n")
	return len(strings.Join(lines[:e.Line-1], "")) + e.Char - 1
}
