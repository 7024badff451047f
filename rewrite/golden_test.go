package rewrite

import (
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
		return &Table{KeyColumn: "id", Kind: KindInteger, Columns: []string{"id", "a", "s"}}
	case "u":
		return &Table{KeyColumn: "uid", Kind: KindText, Columns: []string{"a", "uid"}}
	case "v":
		return &Table{KeyColumn: "id"}
	case "k":
		return &Table{KeyColumn: "id", Kind: KindInteger, KeepExplicit: true, Columns: []string{"id", "a"}}
	case "n":
		return &Table{KeyColumn: "id", Kind: KindInteger}
	case "inv":
		return &Table{KeyColumn: "id", Kind: KindInteger, Columns: []string{"a", "s"}}
	case "we`ird":
		return &Table{KeyColumn: "k`ey", Kind: KindInteger, Columns: []string{"k`ey", "select"}}
	case "表", "1e":
		return &Table{KeyColumn: "id", Kind: KindInteger, Columns: []string{"id", "a"}}
	}
	return nil
}

// goldenOptions returns an error that names the missing fact, if goldenTables doesn't have it.
func goldenOptions(mode sqltoken.Mode) Options {
	return Options{
		Mode:      mode,
		Tables:    goldenTables,
		Columns:   func(in *Insert) ([]string, error) { return nil, errors.New("asks for the columns of " + in.Name) },
		KeyColumn: func(in *Insert) (strings, unsigned bool, err error) { return false, in.Name == "n", nil },
	}
}

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
	goldenDialects = map[string]Dialect{"mysql": DialectMySQL, "vitess": DialectVitess, "mariadb": DialectMariaDB}
)

func readGolden(t testing.TB, file string) (cases []goldenCase) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(string(data), "=== "), "\n=== ") {
		title, body, _ := strings.Cut(strings.TrimSuffix(part, "\n"), "\n")
		text, seen, _ := strings.Cut(body, "\n---")
		c := goldenCase{title: title, text: text, opts: goldenOptions(0)}
		if seen != "" {
			c.seen = "---" + strings.TrimSuffix(seen, "\n")
		}
		_, flags, _ := strings.Cut(title, "[")
		for flag := range strings.FieldsSeq(strings.TrimSuffix(flags, "]")) {
			mode, isMode := goldenModes[flag]
			dialect, isDialect := goldenDialects[flag]
			switch {
			case isMode:
				c.opts.Mode |= mode
			case isDialect:
				c.opts.Dialect = func() (Dialect, error) { return dialect, nil }
			case slices.Contains([]string{"gbk", "big5", "sjis", "latin1", "strange"}, flag):
				c.opts.Charset = sqltoken.ParseCharset(flag)
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
					t.Errorf("%s\ntext: %s\nhave:\n%s\nwant:\n%s", c.title, c.text, seen, c.seen)
				}
				text := c.text
				if c.quoted {
					text = strconv.Quote(text)
				}
				fmt.Fprintf(&b, "=== %s\n%s\n%s\n\n", c.title, text, seen)
			}
			if *update {
				if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// see shows the result for a statement: with placeholders, with literal keys from 101 for servers
// that report LAST_INSERT_ID(expr), and the slots; or the error.
func (c *goldenCase) see() string {
	plan, err := Parse(c.text, c.opts)
	var failed *StatementError
	switch {
	case errors.As(err, &failed):
		return fmt.Sprintf("--- error: %s\noffset %d, line %d, column %d", failed, failed.Offset, failed.Line, failed.Column)
	case err != nil:
		return "--- " + err.Error()
	}
	var b strings.Builder
	show := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if len(plan.Inserts) == 0 {
		return "--- passes"
	}
	if bind := plan.BindText(); bind != c.text {
		show("--- bind\n%s", c.shown(bind))
	}
	plan.Report()
	if literal := plan.LiteralText(goldenKeys(plan)); literal != c.text {
		show("--- literal\n%s", c.shown(literal))
	}
	show("--- statements %d, placeholders %d + %d%s", plan.Statements, plan.Params(), plan.Fills(), namesOf(plan.Consulted))
	for i := range plan.Inserts {
		show("%s", plan.showInsert(&plan.Inserts[i]))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (c *goldenCase) shown(text string) string {
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

func goldenKeys(p *Plan) []Keys {
	keys, next := make([]Keys, len(p.Inserts)), int64(101)
	for i := range p.Inserts {
		for range p.Inserts[i].fills() {
			if p.Inserts[i].Table.Kind == KindText {
				keys[i].Values = append(keys[i].Values, fmt.Sprintf("k%d", next))
			} else {
				keys[i].Ints = append(keys[i].Ints, next)
			}
			next++
		}
	}
	return keys
}

func (p *Plan) showInsert(in *Insert) string {
	out := sqltoken.QuoteTable(in.Schema, in.Name)
	for _, f := range []struct {
		name string
		on   bool
	}{{"replace", in.Replace}, {"ignore", in.Ignore}, {"on duplicate", in.OnDuplicate}, {"returning", in.Returning},
		{"mentions LAST_INSERT_ID", in.MentionsLastID}, {"guarded", in.Guarded}, {"left to the server's error", in.Refused}} {
		if f.on {
			out += ", " + f.name
		}
	}
	if s := in.Source; s != nil {
		return out + fmt.Sprintf("\nquery of %v, key %d, placeholders %d + %d\nhead  %s\nquery %s\ntail  %s\ntext  %s", s.Columns, s.KeyIndex,
			s.QueryParams, s.TailParams, s.Head, s.Query, s.Tail, in.Text("SELECT …"))
	}
	out += ":"
	for i := range in.Rows() {
		switch kind, param := in.Slot(i); kind {
		case SlotFill:
			out += " fill"
		case SlotParam:
			out += fmt.Sprintf(" argument(%d)", param)
		case SlotKept:
			out += fmt.Sprintf(" kept(%#v)", p.Kept(in, i))
		case SlotUnknown:
			out += " unknown"
		case SlotExpression:
			out += fmt.Sprintf(" expression(%d)", param)
		}
	}
	return out
}
