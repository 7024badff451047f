package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/lint"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write what is seen into testdata/*.golden and the documentation")

// still is a clock that stands at its own time: keys come out the same.
type still struct{ now time.Time }

func (c *still) Now() time.Time { return c.now }

func (c *still) Sleep(context.Context, time.Duration) error {
	return fmt.Errorf("nothing sleeps here")
}

// session runs command lines as a shell shows them: what each printed on both
// outputs, and its exit status unless that is 0. Lines that are no command are
// taken for an earlier run's output and left out.
func session(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(text) {
		command, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ shardkey")
		if !ok {
			continue
		}
		fmt.Fprintf(&b, "$ shardkey%s\n", command)
		if status := pipeline(t, &b, command); status != 0 {
			fmt.Fprintf(&b, "[exit status %d]\n", status)
		}
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(b.String(), wd, "/home/me")
}

// pipeline runs commands, each on the output of the one before, the first one on a
// file (< FILE) or on a line that is there for those that ask for it.
func pipeline(t *testing.T, b *strings.Builder, line string) (status int) {
	t.Helper()
	input, piped := "INSERT INTO t_order (user_id) VALUES (1)\n", false
	commands := strings.Split(line, " | shardkey")
	for i, command := range commands {
		words := split(t, command)
		if n := len(words); n > 1 && words[n-2] == "<" {
			text, err := os.ReadFile(words[n-1])
			if err != nil {
				t.Fatal(err)
			}
			words, input, piped = words[:n-2], string(text), true
		}
		var out bytes.Buffer
		p := newProgram(strings.NewReader(input), &out, b, &still{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
		p.zone, p.piped = time.UTC, piped
		if i == len(commands)-1 {
			p = newProgram(strings.NewReader(input), b, b, p.clock)
			p.zone, p.piped = time.UTC, piped
		}
		status = p.run(t.Context(), words)
		input, piped = out.String(), true
	}
	return status
}

// split takes a command line apart as a shell does, as far as it is needed.
func split(t *testing.T, line string) (words []string) {
	t.Helper()
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		end, word := strings.IndexByte(line, ' '), ""
		if q := line[0]; q == '\'' || q == '"' {
			end = strings.IndexByte(line[1:], q) + 2
			if end < 2 {
				t.Fatalf("no end of the quotes in %s", line)
			}
			word = line[1 : end-1]
		} else {
			if end < 0 {
				end = len(line)
			}
			word = line[:end]
		}
		words, line = append(words, word), line[end:]
	}
	return words
}

func TestGolden_commands(t *testing.T) {
	t.Chdir("testdata")
	files, err := filepath.Glob("*.golden")
	if err != nil || len(files) != 8 {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, file, session(t, string(want)), string(want))
		})
	}
}

// TestLint_goPackages lints the packages of a program that is a module of its own.
func TestLint_goPackages(t *testing.T) {
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Chdir(filepath.Join("testdata", "lint", "app"))
	want, err := os.ReadFile("lint.golden")
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "lint.golden", session(t, string(want)), string(want))
}

func compare(t *testing.T, file, have, want string) {
	t.Helper()
	if have == want {
		return
	}
	if *update {
		if err := os.WriteFile(file, []byte(have), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	haveLines, wantLines := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i, line := range haveLines {
		if i >= len(wantLines) || line != wantLines[i] {
			t.Fatalf("%s:%d\nhave: %s\nwant: %s", file, i+1, line, wantLines[min(i, len(wantLines)-1)])
		}
	}
	t.Fatalf("%s ends at line %d\nwant: more lines", file, len(haveLines))
}

// TestDocs_commands runs the commands that the documentation shows, with its rule.
func TestDocs_commands(t *testing.T) {
	const fence = "```console\n"
	t.Chdir("testdata")
	file := filepath.Join("..", "..", "..", "docs", "cli.md")
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rule, err := os.ReadFile("rule.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(want, rule) {
		t.Errorf("%s does not show testdata/rule.yaml as it is", file)
	}
	parts := strings.Split(string(want), fence)
	if len(parts) < 5 {
		t.Fatalf("%s shows %d sessions", file, len(parts)-1)
	}
	have := parts[0]
	for _, part := range parts[1:] {
		shown, rest, _ := strings.Cut(part, "```")
		have += fence + session(t, shown) + "```" + rest
	}
	compare(t, file, have, string(want))
}

// TestDocs_names looks for each command, flag and JSON field in the documentation.
func TestDocs_names(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, c := range newProgram(nil, io.Discard, io.Discard, nil).rootCommand().Commands() {
		if !strings.Contains(text, "shardkey "+c.Name()) && !strings.Contains(text, "`"+c.Name()+"`") {
			t.Errorf("command %s is not documented", c.Name())
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Name != "help" && !regexp.MustCompile("[` ]-"+regexp.QuoteMeta(f.Name)+"[ `]").MatchString(text) {
				t.Errorf("%s: flag -%s is not documented", c.Name(), f.Name)
			}
		})
	}
	_, fields, _ := strings.Cut(text, "## JSON")
	for _, v := range []any{decoded{}, guess{}, interval{}, checkedRule{}, made{}, checkedTable{}, problem{}, planned{}, plannedInsert{}, remark{}, lint.Finding{}, generated{}, workerStore{}, storeUser{}, workerIDRecord{}, version{}} {
		typ := reflect.TypeOf(v)
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if name != "" && !strings.Contains(fields, "`"+name+"`") {
				t.Errorf("%s: the field %s is not documented", typ, name)
			}
		}
	}
}
