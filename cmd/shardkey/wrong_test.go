package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/spi"
)

// TestMain is the tool itself where a test asks for it.
func TestMain(m *testing.M) {
	if os.Getenv("SHARDKEY_TEST_RUNS_TOOL") != "" {
		main()
	}
	os.Exit(m.Run())
}

// toolCommand runs the tool in a process of its own.
func toolCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), "SHARDKEY_TEST_RUNS_TOOL=1")
	return c
}

// endless is input without an end.
type endless struct{ part string }

func (e endless) Read(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		n += copy(b[n:], e.part)
	}
	return n, nil
}

var garbage = strings.Repeat("\x7fELF\x00\x01\xff\xfe\n\x1b[31m", 500)

// TestWrong_commandLines types wrong things. Nothing panics or hangs, the status is
// the one that is promised, standard output has nothing but JSON, and the message says what
// is wrong.
func TestWrong_commandLines(t *testing.T) {
	t.Chdir("testdata")
	if err := os.WriteFile(filepath.Join(t.TempDir(), "binary"), []byte(garbage), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), "binary.yaml")
	if err := os.WriteFile(bin, []byte(garbage), 0o600); err != nil {
		t.Fatal(err)
	}
	sql := filepath.Join(t.TempDir(), "binary.sql")
	if err := os.WriteFile(sql, []byte(garbage), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, test := range []struct {
		args   string // | between words
		stdin  io.Reader
		status int
		want   string // on standard error
	}{
		{"decod|1", nil, 2, `unknown command "decod"; did you mean decode?`},
		{"|", nil, 2, `unknown command ""`},
		{"DECODE|1", nil, 2, "did you mean decode?"},
		{"-|decode", nil, 2, `unknown command "-"`},
		{"-nothing|decode|1", nil, 2, "unknown flag -nothing"},
		{"decode|-lay|js53|1", nil, 2, "unknown flag -lay; did you mean -layout?"},
		{"decode|--layuot=js53|1", nil, 2, "did you mean -layout?"},
		{"decode|---layout|js53|1", nil, 2, "bad flag syntax"},
		{"decode|-=|1", nil, 2, "bad flag syntax"},
		{"decode|-layout", nil, 2, "-layout needs a value"},
		{"decode|-layout=|1", nil, 2, `layout ""`},
		{"decode|-tick|-1s|1", nil, 2, "-tick -1s is not above 0"},
		{"decode|-tick|soon|1", nil, 2, "not a duration"},
		{"decode|-o|xml|1", nil, 2, `-o "xml" is none of text, json`},
		{"decode|-o=JSON|1", nil, 2, "did you mean json?"},
		{"decode|-o", nil, 2, "-o needs a value"},
		{"decode|-guess=perhaps|1", nil, 2, "neither true nor false"},
		{"decode|-color|sometimes|1", nil, 2, "none of auto, always, never"},
		{"decode|", nil, 1, `"" is not a key`},
		{"decode|1e5", nil, 1, `"1e5" is not a key`},
		{"decode|0x10", nil, 1, "is not a key"},
		{"decode|１２", nil, 1, "is not a key"},
		{"decode|1\x1b[31m", nil, 1, `"1\x1b[31m" is not a key`},
		{"decode|" + strings.Repeat("9", 100_000), nil, 1, `999…" is not a key`},
		{"decode", nil, 2, "give the keys"},
		{"decode|-", strings.NewReader(""), 2, "standard input is empty"},
		{"decode|-", strings.NewReader("\n \n"), 2, "standard input is empty"},
		{"decode|-", strings.NewReader(garbage), 1, "and 481 more that are no keys"},
		{"decode|-", endless{"x"}, 1, "line 1 is longer than 65536 bytes"},
		{"decode|-|-", strings.NewReader("x"), 2, "asked for twice"},
		{"decode|-rule|.|1", nil, 1, "is a directory"},
		{"decode|-rule|" + bin + "|1", nil, 1, "not YAML"},
		{"check|.", nil, 1, "is a directory"},
		{"check|", nil, 1, "no such file"},
		{"check|" + bin, nil, 1, "not YAML"},
		{"check|-strict", nil, 2, "give the rule files"},
		{"check|-strict=2|rule.yaml", nil, 2, "neither true nor false"},
		{"check|-", strings.NewReader(""), 2, "standard input is empty"},
		{"check|-", strings.NewReader(garbage), 1, "<stdin>"},
		{"check|-", endless{"a: 1\n"}, 1, "standard input: longer than"},
		{"plan|-rule|rule.yaml", nil, 2, "give one statement"},
		{"plan|-rule|rule.yaml|-", strings.NewReader(""), 2, "standard input is empty"},
		{"plan|-rule|rule.yaml|-", endless{"SELECT 1;\n"}, 1, "longer than"},
		{"plan|-rule|.|SELECT 1", nil, 1, "is a directory"},
		{"plan|-rule|rule.yaml|-sql-mode|FOO|SELECT 1", nil, 2, `-sql-mode: "FOO" is no word of sql_mode`},
		{"plan|-rule|rule.yaml|-sql-mode|ansi_quote|SELECT 1", nil, 2, "did you mean ANSI_QUOTES?"},
		{"lint|-rule|rule.yaml|-sql-mode|FOO|lint/schema.sql", nil, 2, `"FOO"`},
		{"decode|-tick|0s|1", nil, 2, "-tick 0s is not above 0"},
		{"lint|-rule|rule.yaml|absent.sql", nil, 2, "no such file"},
		{"lint|-rule|rule.yaml|" + dir, nil, 2, "has no .sql files"},
		{"lint|-rule|rule.yaml|-", strings.NewReader(" "), 2, "standard input is empty"},
		{"lint|-rule|rule.yaml", nil, 2, "give .sql files"},
		{"range|yesteday", nil, 2, "is not a time"},
		{"range|1|2|3", nil, 2, "give one time or two"},
		{"range|today|-tz|Nowhere/Land", nil, 2, "not a time zone"},
		{"range|today|-tz|../../etc/passwd", nil, 2, "not a time zone"},
		{"range|-99999999w", nil, 2, "is not a time"},
		{"range|1900-01-01", nil, 1, "after the epoch"},
		{"range|9999-01-01", nil, 1, "no key of layout"},
		{"generate|-rule|rule.yaml|-table|t_order|-n|99999999999999999999", nil, 2, "not a number"},
		{"generate|-rule|rule.yaml|-table|t_order|-n|1.5", nil, 2, "not a number"},
		{"generate|-rule|rule.yaml|-table|t_order|-n|-1", nil, 2, "-n -1 is not in 1..1000000"},
		{"generate|-rule|rule.yaml|-table|t_order|-n", nil, 2, "-n needs a value"},
		{"generate|-rule|rule.yaml|-table|t_order|-dsn|@.", nil, 1, "is a directory"},
		{"generate|-rule|rule.yaml|-table|t_order|-dsn|@-", strings.NewReader(""), 2, "standard input is empty"},
		{"generate|-type|NANOID|-prop|size=-1", nil, 2, "size"},
		{"workers|-rule|absent.yaml", nil, 1, "no such file"},
		{"workers|-rule|rule.yaml|nobody", nil, 2, `no generator "nobody"`},
		{"version|1", nil, 2, "takes no arguments"},
		{"help|decod", nil, 2, "did you mean decode?"},
		{"completion|tcsh", nil, 2, "none of bash, zsh, fish, powershell"},
	} {
		for _, format := range []string{"text", "json"} {
			args := strings.Split(test.args, "|")
			if format == "json" {
				if args[0] != "decode" && args[0] != "check" && args[0] != "plan" && args[0] != "generate" && args[0] != "workers" && args[0] != "range" || strings.Contains(test.args, "|-o") || test.stdin != nil || test.status == 2 {
					continue
				}
				args = append(args, "-o", "json")
			}
			stdin := test.stdin
			if stdin == nil {
				stdin = strings.NewReader("")
			}
			var out, errs bytes.Buffer
			status := newProgram(stdin, &out, &errs, spi.SystemClock).run(t.Context(), args)
			shown := errs.String()
			if format == "json" {
				shown = out.String()
				for line := range strings.Lines(shown) {
					var v map[string]any
					if err := json.Unmarshal([]byte(line), &v); err != nil || v["error"] == nil {
						t.Errorf("%.100s\nhave: %s, %v\nwant: an error as JSON", test.args, line, err)
					}
				}
			} else if out.Len() > 0 {
				t.Errorf("%.100s\nhave: %.300s\nwant: nothing on standard output", test.args, out.String())
			}
			want := test.want
			if format == "json" {
				text, _ := json.Marshal(want)
				want = strings.Trim(string(text), `"`)
			}
			if status != test.status || !strings.Contains(shown, want) || strings.Contains(shown, "\x1b") || strings.Contains(shown, "goroutine") {
				t.Errorf("%.100s, %s\nhave: status %d, %.600s\nwant: status %d, %s", test.args, format, status, shown, test.status, want)
			}
		}
	}
}

// What reads a keys' pipe may stop, as head does: that is no error, and says nothing.
func TestPipe_readerGoes(t *testing.T) {
	c := toolCommand(t, "generate", "-rule", "testdata/rule.yaml", "-table", "t_order", "-n", "200000")
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_ = out.Close()
	if waited := c.Wait(); err != nil || len(line) < 10 || waited != nil || errs.Len() > 0 {
		t.Errorf("have: %q, %v, %v, %s\nwant: a key, and status 0", line, err, waited, errs.String())
	}
}

// The same of what reads a pipe itself.
func TestPipe_readerOfReaderGoes(t *testing.T) {
	c := toolCommand(t, "decode")
	c.Stdin = strings.NewReader(strings.Repeat("1095292305367040001\n", 200_000))
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_ = out.Close()
	// The tool no longer reads either, which is what Wait says of the test's own copying.
	if waited := c.Wait(); err != nil || line == "" || c.ProcessState.ExitCode() != 0 || errs.Len() > 0 {
		t.Errorf("have: %q, %v, %v, %s\nwant: a line, and status 0", line, err, waited, errs.String())
	}
}

// A pipe is read where no argument is given, and answered as it comes; /dev/null
// is not.
func TestPipe_isRead(t *testing.T) {
	c := toolCommand(t, "decode")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for i, want := range []string{"SEQUENCE", " 1 ", " 2 "} { // while the pipe is open
		if i > 0 {
			fmt.Fprintln(in, int64(1095292305367040000)+int64(i))
		}
		if i == 1 && (!lines.Scan() || !strings.Contains(lines.Text(), "SEQUENCE")) {
			t.Errorf("have: %s\nwant: the header", lines.Text())
		}
		if i > 0 && (!lines.Scan() || !strings.Contains(lines.Text(), want)) {
			t.Errorf("have: %s\nwant: %q", lines.Text(), want)
		}
	}
	_ = in.Close()
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	if out, err := toolCommand(t, "decode").CombinedOutput(); err == nil || !strings.Contains(string(out), "give the keys") {
		t.Errorf("/dev/null\nhave: %s, %v\nwant: wrong use", out, err)
	}
}

// A million keys go through in little memory, and a full disk is an error.
func TestPipe_long(t *testing.T) {
	const n = 100_000
	var in strings.Builder
	for i := range n {
		fmt.Fprintln(&in, int64(1095292305367040000)+int64(i))
	}
	counter := new(lineCounter)
	var errs bytes.Buffer
	p := newProgram(strings.NewReader(in.String()), counter, &errs, spi.SystemClock)
	if status := p.run(t.Context(), []string{"decode", "-"}); status != 0 || counter.lines != n+1 || counter.most > 64<<10 {
		t.Errorf("have: status %d, %d lines, %d bytes at once", status, counter.lines, counter.most)
	}
	p = newProgram(strings.NewReader(in.String()), fullDisk{}, &errs, spi.SystemClock)
	if status := p.run(t.Context(), []string{"decode", "-"}); status != statusError || !strings.Contains(errs.String(), "no space left") {
		t.Errorf("have: status %d, %s", status, errs.String())
	}
}

type lineCounter struct{ lines, most int }

func (c *lineCounter) Write(b []byte) (int, error) {
	c.lines += bytes.Count(b, []byte("\n"))
	c.most = max(c.most, len(b))
	return len(b), nil
}

// Colours are for terminals, and for those who ask for them.
func TestColour_whenAsked(t *testing.T) {
	for _, test := range []struct {
		args string
		auto bool
		want bool
	}{
		{"check testdata/warned.yaml", false, false},
		{"check testdata/warned.yaml", true, true},
		{"check testdata/warned.yaml -color never", true, false},
		{"check -color=always testdata/warned.yaml", false, true},
		{"-color always check testdata/warned.yaml", false, true},
		{"check testdata/warned.yaml -color always -o json", true, false},
	} {
		var out bytes.Buffer
		p := newProgram(strings.NewReader(""), &out, io.Discard, spi.SystemClock)
		p.colours.stdout = test.auto
		if status := p.run(t.Context(), strings.Fields(test.args)); status != 0 || strings.Contains(out.String(), "\x1b[") != test.want {
			t.Errorf("%s\nhave: status %d, %q\nwant: colours %v", test.args, status, out.String(), test.want)
		}
	}
	t.Setenv("NO_COLOR", "1")
	if c := terminalColours(os.Stdout, os.Stderr); c.stdout || c.stderr {
		t.Errorf("NO_COLOR\nhave: %+v\nwant: none", c)
	}
}

// Ctrl-C ends a wait for input.
func TestInput_interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	silent, _ := io.Pipe()
	cancel()
	var errs bytes.Buffer
	p := newProgram(interruptible{ctx, silent}, io.Discard, &errs, spi.SystemClock)
	if status := p.run(ctx, []string{"decode", "-"}); status != statusError || !strings.Contains(errs.String(), "standard input: interrupted") {
		t.Errorf("have: status %d, %s", status, errs.String())
	}
	p = newProgram(interruptible{t.Context(), strings.NewReader("1\n2\n")}, io.Discard, io.Discard, spi.SystemClock)
	if status := p.run(t.Context(), []string{"decode", "-"}); status != statusOK {
		t.Errorf("have: status %d", status)
	}
}
