package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// TestMain runs the tests, or in the processes of toolCommand the command shardkey.
func TestMain(m *testing.M) {
	if os.Getenv("SHARDKEY_TEST_RUNS_TOOL") != "" {
		main()
	}
	os.Exit(m.Run())
}

// toolCommand returns a command that runs shardkey in another process, with pipes.
func toolCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self := must.Get(os.Executable())(t)
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), "SHARDKEY_TEST_RUNS_TOOL=1")
	return c
}

// runTool runs a command line and returns what it printed on each output.
func runTool(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	return runWith(t, strings.NewReader(""), args...)
}

// runWith runs a command with a standard input, and with a time limit that a busy machine doesn't
// reach.
func runWith(t *testing.T, stdin io.Reader, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	if len(args) > 0 && slices.Contains([]string{"doctor", "generate", "init", "migrate", "workers"}, args[0]) {
		args = slices.Insert(slices.Clone(args), 1, "--timeout=1h")
	}
	var out, errs bytes.Buffer
	status = newProgram(stdin, &out, &errs, spi.SystemClock).run(t.Context(), args)
	return status, out.String(), errs.String()
}

func write(t *testing.T, text string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "rule.yaml")
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// endless is a reader without an end. It repeats part.
type endless struct{ part string }

func (e endless) Read(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		n += copy(b[n:], e.part)
	}
	return n, nil
}

var garbage = strings.Repeat("\x7fELF\x00\x01\xff\xfe\n\x1b[31m", 500)

// TestRun_wrongInput runs commands with input that golden files can't contain. Each must end
// with the expected status, and print only the reason.
func TestRun_wrongInput(t *testing.T) {
	t.Chdir("testdata")
	t.Setenv(ruleVariable, "")
	bin, dir := write(t, garbage), t.TempDir()
	for _, test := range []struct {
		args   string // | between words
		stdin  io.Reader
		status int
		want   string
	}{
		{"decode|１２", nil, 1, "is not a key"},
		{"decode|1\x1b[31m", nil, 1, `"1\x1b[31m" is not a key`},
		{"decode|" + strings.Repeat("9", 100_000), nil, 1, `999…" is not a key`},
		{"decode|-", strings.NewReader("\n \n"), 2, "standard input is empty"},
		{"decode|-", strings.NewReader(garbage), 1, `"\x1b[31m\x7fELF`},
		{"decode|-", endless{"x"}, 1, "line 1 is longer than 65536 bytes"},
		{"decode|-", brokenPipe{}, 1, "standard input: broken"},
		{"decode|-|-", strings.NewReader("x"), 2, "can be read only once"},
		{"decode|--rule|" + bin + "|1", nil, 1, "invalid YAML"},
		{"check|" + bin, nil, 1, "invalid YAML"},
		{"check|-", strings.NewReader(""), 2, "standard input is empty"},
		{"check|-", strings.NewReader(garbage), 1, "<stdin>"},
		{"check|-", endless{"a: 1\n"}, 1, "standard input: longer than"},
		{"plan|-", endless{"SELECT 1;\n"}, 1, "longer than"},
		{"plan|-", brokenPipe{}, 1, "standard input: broken"},
		{"plan|--rule|-|-", strings.NewReader("SELECT 1"), 2, "can be read only once"},
		{"lint|" + dir, nil, 2, "has no .sql files"},
		{"lint|-", strings.NewReader(" "), 2, "standard input is empty"},
		{"generate|--table|t_order|--dsn|@-", strings.NewReader(""), 2, "standard input is empty"},
	} {
		t.Run(fmt.Sprintf("%.60q", test.args), func(t *testing.T) {
			status, stdout, stderr := runWith(t, test.stdin, strings.Split(test.args, "|")...)
			if status != test.status || stdout != "" || !strings.Contains(stderr, test.want) ||
				strings.Contains(stderr, "\x1b") {
				t.Errorf("have: status %d, %.300s%.600s\nwant: status %d, %s", status, stdout, stderr, test.status, test.want)
			}
		})
	}
}

// TestRule_default checks that each command that needs a rule finds it by --rule, by
// SHARDKEY_RULE, or as rule.yaml.
func TestRule_default(t *testing.T) {
	full := must.Get(filepath.Abs(filepath.Join("testdata", "rule.yaml")))(t)
	content := must.Get(os.ReadFile(full))(t)
	for _, args := range [][]string{
		{"check"}, {"plan", "SELECT 1"}, {"lint", "."}, {"generate", "--table", "t_order"}, {"workers"},
		{"decode", "--generator", "snowflake", "1"},
		{"doctor", "--dsn", "app@tcp(127.0.0.1:1)/app"},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Chdir(t.TempDir())
			must.Do(t, os.WriteFile("schema.sql", nil, 0o600))
			t.Setenv(ruleVariable, "")
			status, stdout, stderr := runTool(t, args...)
			if status != statusUsage || stdout != "" ||
				!strings.Contains(stderr, "$SHARDKEY_RULE") || !strings.Contains(stderr, "./rule.yaml") {
				t.Errorf("no rule\nhave: status %d, %s%s\nwant: both places", status, stdout, stderr)
			}
			loads := func(how string) {
				t.Helper()
				status, stdout, stderr := runTool(t, args...)
				found := args[0] == "doctor" && strings.Contains(stdout, "error: reachable") // no database answers
				if status != 0 && !found {
					t.Errorf("%s\nhave: status %d, %s%s", how, status, stdout, stderr)
				}
			}
			t.Setenv(ruleVariable, full)
			loads("SHARDKEY_RULE")
			t.Setenv(ruleVariable, "")
			must.Do(t, os.WriteFile("rule.yaml", content, 0o600))
			loads("rule.yaml")
			t.Setenv(ruleVariable, "absent.yaml")
			if status, _, _ := runTool(t, args...); status != statusError {
				t.Errorf("SHARDKEY_RULE before rule.yaml\nhave: status %d\nwant: an error of absent.yaml", status)
			}
		})
	}
}

func TestNearestTable_numbers(t *testing.T) {
	r := must.Get(rule.Parse("", []byte("rules: [!SHARDING {tables: {user2: {keyGenerateStrategy: {column: id}}, t_order: {actualDataNodes: 'ds.t_order_${0..1}', keyGenerateStrategy: {column: id}}}}]")))(t)
	for name, want := range map[string]string{"user3": "", "user": "", "t_order_7": "", "usr2": "user2", "t_ordr_1": "t_order_1", "t_ordr": "t_order"} {
		must.Equal(t, nearestTable(r, name), want, name)
	}
}

func TestVersion(t *testing.T) {
	for _, arg := range []string{"version", "--version"} {
		status, stdout, _ := runTool(t, arg)
		if want := "shardkey " + driver.Version() + " " + runtime.Version() + "\n"; status != 0 || stdout != want {
			t.Errorf("%s\nhave: status %d, %s\nwant: %s", arg, status, stdout, want)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

type brokenPipe struct{}

func (brokenPipe) Read([]byte) (int, error) { return 0, errors.New("broken") }

// Strings and binary keys are random, so golden files can't contain them.
func TestGenerate_strings(t *testing.T) {
	for table, want := range map[string]string{"t_user": `^([0-9a-f]{32}\n){2}$`, "t_blob": `^(x'[0-9a-f]{32}'\n){2}$`} {
		status, have, stderr := runTool(t, "generate", "--rule", "testdata/mixed.yaml", "--table", table, "-n", "2",
			"--dsn", "app@tcp(127.0.0.1:1)/app")
		if status != 0 || !regexp.MustCompile(want).MatchString(have) {
			t.Errorf("have: status %d, %s%s\nwant: %s", status, have, stderr, want)
		}
	}
}

// The next run can lease the worker ID of the last one at once.
func TestGenerate_releasesItsWorkerID(t *testing.T) {
	testserver.NeedsFlock(t)
	file := write(t, `rules:
- !SHARDING
  tables:
    t_order: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id-assigner: disk, layout: 61-0-2, tick: 1ms}}
  workerIdAssigners:
    disk: {type: FILE, props: {path: "`+t.TempDir()+`"}}
`)
	var keys []string
	for range 3 { // there is one worker ID
		status, stdout, stderr := runTool(t, "generate", "-v", "--rule", file, "--table", "t_order")
		if status != 0 || !strings.Contains(stderr, "FILE") {
			t.Fatalf("have: status %d, %s", status, stderr)
		}
		keys = append(keys, stdout)
	}
	if slices.Sort(keys); len(slices.Compact(keys)) != 3 {
		t.Errorf("have: %q\nwant: three keys", keys)
	}
}

// A reader that closes the pipe early, such as head, causes no error.
func TestPipe_readerGoes(t *testing.T) {
	for _, c := range []*exec.Cmd{
		toolCommand(t, "generate", "--rule", "testdata/rule.yaml", "--table", "t_order", "-n", "200000"),
		toolCommand(t, "decode"),
	} {
		t.Run(c.Args[1], func(t *testing.T) {
			c.Stdin = strings.NewReader(strings.Repeat("1095292305367040001\n", 200_000))
			var errs bytes.Buffer
			c.Stderr = &errs
			out := must.Get(c.StdoutPipe())(t)
			must.Do(t, c.Start())
			line, err := bufio.NewReader(out).ReadString('\n')
			_ = out.Close()
			_ = c.Wait() // may return an error of copying to Stdin, since shardkey stops reading it
			if status := c.ProcessState.ExitCode(); err != nil || len(line) < 10 || status != 0 || errs.Len() > 0 {
				t.Errorf("have: %q, %v, status %d, %s\nwant: a line, and status 0", line, err, status, errs.String())
			}
		})
	}
}

// An interrupt ends a command that waits for standard input.
func TestPipe_interrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows sends no interrupts")
	}
	c := toolCommand(t, "doctor", "--rule", "testdata/rule.yaml", "--dsn", "@-")
	in := must.Get(c.StdinPipe())(t)
	must.Do(t, c.Start())
	part := make([]byte, 1<<20) // more than a pipe holds, so the command has begun to read
	must.Get(in.Write(part))(t)
	must.Do(t, c.Process.Signal(os.Interrupt))
	for err := error(nil); err == nil; { // an end that isn't the interrupt's: the input is too long
		_, err = in.Write(part)
	}
	if err := c.Wait(); c.ProcessState.Exited() {
		t.Errorf("have: %v\nwant: the end by a signal", err)
	}
}

// A command without arguments reads a pipe, and prints a result for each line before it
// reads the next. It doesn't read /dev/null.
func TestPipe_isRead(t *testing.T) {
	c := toolCommand(t, "decode")
	in := must.Get(c.StdinPipe())(t)
	out := must.Get(c.StdoutPipe())(t)
	must.Do(t, c.Start())
	lines := bufio.NewScanner(out)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || !strings.Contains(lines.Text(), want) {
			t.Errorf("have: %s\nwant: %q", lines.Text(), want)
		}
	}
	fmt.Fprintln(in, "1095292305367040001")
	next("SEQUENCE")
	next(" 1 ")
	fmt.Fprintln(in, "1095292305367040002") // while the pipe is open
	next(" 2 ")
	_ = in.Close()
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	if out, err := toolCommand(t, "decode").CombinedOutput(); err == nil || !strings.Contains(string(out), "no keys") {
		t.Errorf("/dev/null\nhave: %s, %v\nwant: wrong use", out, err)
	}
}

// Decoding many keys takes little memory, and ends if the output is closed.
func TestPipe_long(t *testing.T) {
	const n = 100_000
	keys := strings.Repeat("1095292305367040001\n", n)
	counter := new(lineCounter)
	var errs bytes.Buffer
	p := newProgram(strings.NewReader(keys), counter, &errs, spi.SystemClock)
	status := p.run(t.Context(), []string{"decode", "-"})
	if status != 0 || counter.lines != n+1 || counter.most > 256<<10 {
		t.Errorf("have: status %d, %d lines, %d bytes at once", status, counter.lines, counter.most)
	}
	p = newProgram(endless{"1095292305367040001\n"}, fullDisk{}, &errs, spi.SystemClock)
	status = p.run(t.Context(), []string{"decode", "-"})
	if status != statusError || !strings.Contains(errs.String(), "no space left") {
		t.Errorf("have: status %d, %s", status, errs.String())
	}
}

type lineCounter struct{ lines, most int }

func (c *lineCounter) Write(b []byte) (int, error) {
	c.lines += bytes.Count(b, []byte("\n"))
	c.most = max(c.most, len(b))
	return len(b), nil
}

// TestComplete_words completes the last word of command lines.
func TestComplete_words(t *testing.T) {
	t.Chdir("testdata")
	t.Setenv(ruleVariable, "")
	for _, test := range []struct{ line, want, lack string }{
		{"de", "decode\tshow", "check"},
		{"decode --la", "\n--layout\t", "--tick"},
		{"decode --layout ", "\njs53\t", ""},
		{"decode --rule mixed.yaml --generator ", "\nring\n", "t_order"},
		{"decode --generator ", "\nsnowflake\n", ""}, // of ./rule.yaml
		{"generate --rule=mixed.yaml --table t_", "\nt_order_1\n", "uuid"},
		{"generate --rule bad.yaml --table ", "\n:4\n", "t_order"},
		{"generate --rule - --table ", "\n:4\n", "t_order"},
		{"generate --type S", "\nSNOWFLAKE\n", ""},
		{"workers --rule workers.yaml ", "\nsmall\n", ""},
		{"check ", "\nyaml\nyml\n:8\n", ""},
		{"plan --server m", "\nmariadb\n", ""},
		{"check -o ", "\njson\n", ""},
		{"completion ", "\nfish\t", ""},
	} {
		_, stdout, _ := runTool(t, append([]string{"__complete"}, strings.Split(test.line, " ")...)...)
		if have := "\n" + stdout; !strings.Contains(have, test.want) || test.lack != "" && strings.Contains(have, test.lack) {
			t.Errorf("%q\nhave: %s\nwant: %q and no %q", test.line, stdout, test.want, test.lack)
		}
	}
	status, stdout, stderr := runTool(t, "completion", "bash")
	if status != 0 || stderr != "" || !strings.Contains(stdout, "__complete") {
		t.Errorf("completion bash\nhave: status %d, %.300s%s", status, stdout, stderr)
	}
}

// A command shows its steps once it has taken two seconds, and nothing after its end.
func TestProgress(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []time.Duration
		want  string
	}{
		{"fast", []time.Duration{time.Second, time.Second / 2}, ""},
		{"slow", []time.Duration{3 * time.Second, time.Second}, "a b"},
		{"a slow second step", []time.Duration{time.Second, 3 * time.Second}, "b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var have []string
				p := &progress{warn: func(step string) { have = append(have, step) }}
				for i, takes := range c.steps {
					p.step(string(rune('a' + i)))
					time.Sleep(takes)
				}
				p.stop()
				time.Sleep(time.Minute)
				must.Equal(t, strings.Join(have, " "), c.want)
			})
		})
	}
}

// TestDSN_forms parses values of --dsn: with names, with references, and with passwords that
// look like these.
func TestDSN_forms(t *testing.T) {
	const plainDSN = "u:p@tcp(h:1)/d"
	t.Setenv("SOME_DSN", " "+plainDSN+"\n")
	file := write(t, plainDSN+"\n")
	for _, c := range cases.Read(t, "testdata/dsns.txt", 5) {
		given := strings.Replace(c[4], "@file", "@"+file, 1)
		d := must.Get(newProgram(nil, io.Discard, io.Discard, spi.SystemClock).database(given))(t, given)
		must.EqualSlices(t, []string{d.dsn, d.name, d.config.User, d.config.Passwd}, c[:4], given)
	}
	for _, wrong := range []string{
		"", "x", canary, "ds_0=", canary + "=x", "ds_0=" + canary, "u:" + canary + "@h:3306", "ds_0=u:" + canary + "@h/d",
		"env:", "env:NOT_SET", "ds_0=env:NOT_SET", "@", "@absent",
		"u:" + canary + "@tcp(h:1)/d?strict=true", "u:" + canary + "@tcp(h:1)/d?parseTime=" + canary,
	} {
		_, err := newProgram(nil, io.Discard, io.Discard, spi.SystemClock).database(wrong)
		if err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%q\nhave: %v\nwant: an error without the password", wrong, err)
		}
	}
}

// TestDSN_standardInput reads a DSN from standard input, for one --dsn.
func TestDSN_standardInput(t *testing.T) {
	p := newProgram(bytes.NewBufferString("u@tcp(h:1)/d\n"), io.Discard, io.Discard, spi.SystemClock)
	p.dsns = []string{"ds_0=@-"}
	list, err := p.databases(1, 1)
	if err != nil || list[0].name != "ds_0" || list[0].config.User != "u" {
		t.Errorf("have: %+v, %v", list, err)
	}
	must.Fail(t, must.Err(p.databases(1, 1)), "standard input was read twice")
}

// TestRun_showsNoPassword runs valid and invalid command lines that contain a password.
func TestRun_showsNoPassword(t *testing.T) {
	const dsn = "app:" + canary + "@tcp(127.0.0.1:1)/app"
	args := func(line string) []string { return strings.Fields(strings.ReplaceAll(line, "$DSN", dsn)) }
	t.Setenv(ruleVariable, filepath.Join("testdata", "mixed.yaml"))
	for _, line := range []string{
		"$DSN", "decode $DSN", "decode --tick $DSN 1", "decode --epoch $DSN 1", "decode --epoch=$DSN 1", "decode --tz=$DSN 1",
		"decode -o $DSN 1", "range $DSN", "version $DSN", "check $DSN", "check $DSN -o json",
		"plan --rule $DSN x", "lint $DSN", "workers $DSN", "workers --dsn $DSN", "workers --dsn $DSN -o json", "workers --dns $DSN", "workers --dns=$DSN",
		"workers --timeout=$DSN", "workers --timeout $DSN", "generate --type $DSN", "generate --table t_ring -v $DSN",
		"generate --table $DSN --dsn $DSN", "generate --table t_order --dsn $DSN --timeout 1s -o json",
		"generate --table t_ring --timeout 1s --dsn $DSN", "doctor --dsn $DSN", "doctor --dsn ds_0=$DSN -o json",
		"init --dsn $DSN", "migrate --dsn $DSN", "migrate --dsn $DSN --dsn $DSN", "--dsn=$DSN doctor",
		"generate --type REDIS --prop addr=127.0.0.1:1 --prop password=" + canary + " --prop shard=1",
		"generate --type REDIS --prop addr=u:" + canary + "@127.0.0.1:1", "generate --type REDIS --prop password:" + canary,
		"generate --type LEAF_SEGMENT --prop leaf.key=k --prop dsn=app:" + canary + "@127.0.0.1/app",
	} {
		t.Run(line, func(t *testing.T) {
			if status, stdout, stderr := runTool(t, args(line)...); status == 0 || strings.Contains(stdout+stderr, canary) {
				t.Errorf("have: status %d, %s%s\nwant: an error without the password", status, stdout, stderr)
			}
		})
	}
	t.Setenv(dsnVariable, dsn)
	for _, line := range []string{
		"doctor --help", "generate --help", "check testdata/mixed.yaml", "__complete doctor --dsn ",
		"generate --table t_ring --timeout 1s",
	} {
		if _, stdout, stderr := runTool(t, args(line)...); strings.Contains(stdout+stderr, canary) || stdout+stderr == "" {
			t.Errorf("%s\nhave: %s%s\nwant: output without the password", line, stdout, stderr)
		}
	}
}

// TestDSN_wrongUse runs the commands that connect, with invalid values of --dsn.
func TestDSN_wrongUse(t *testing.T) {
	t.Setenv(dsnVariable, "")
	t.Setenv(ruleVariable, filepath.Join("testdata", "rule.yaml"))
	dsn := "app:" + canary + "@tcp(127.0.0.1:1)/shop" // no server listens there
	for _, c := range cases.Read(t, "testdata/wronguse.txt", 3) {
		wantStatus, want, args := c[0], c[1], c[2]
		status, stdout, stderr := runTool(t, strings.Fields(strings.ReplaceAll(args, "$DSN", dsn))...)
		if fmt.Sprint(status) != wantStatus || stdout != "" || !strings.Contains(stderr, want) || strings.Contains(stderr, canary) {
			t.Errorf("%s\nhave: status %d\n%s%s\nwant: status %s, %s", args, status, stdout, stderr, wantStatus, want)
		}
	}
}

// A file or standard input may begin with a byte order mark. UTF-16, in which no statement would be
// found, is an error.
func TestRun_textOfOtherSystems(t *testing.T) {
	const statement = "INSERT INTO t_order_0 (user_id) VALUES (1);\r\n"
	wide := strings.Join(strings.Split(statement, ""), "\x00") + "\x00"
	const found = "1:1: filled: `t_order_0`: a key is generated\n"
	for _, tt := range []struct {
		name, text, want string
	}{
		{"UTF-8", statement, found},
		{"byte order mark", "\ufeff" + statement, found},
		{"UTF-16", "\xff\xfe" + wide, "UTF-16"},
		{"UTF-16, big end first", "\xfe\xff\x00" + wide, "UTF-16"},
		{"UTF-16 without a byte order mark", wide, "UTF-16"},
	} {
		file := filepath.Join(t.TempDir(), "a.sql")
		must.Do(t, os.WriteFile(file, []byte(tt.text), 0o600))
		_, lint, errs := runTool(t, "lint", "--rule", "testdata/rule.yaml", file)
		must.Contain(t, lint+errs, tt.want, "lint of", tt.name)
		_, lint, errs = runWith(t, strings.NewReader(tt.text), "lint", "--rule", "testdata/rule.yaml", "-")
		must.Contain(t, lint+errs, tt.want, "lint of standard input,", tt.name)
		want := strings.Replace(tt.want, found, "INSERT into `t_order_0`", 1)
		_, plan, errs := runWith(t, strings.NewReader(tt.text), "plan", "--rule", "testdata/rule.yaml", "-")
		must.Contain(t, plan+errs, want, "plan of", tt.name)
	}
}
