package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/spi"
)

// runTool runs a command line and returns what it printed on each output.
func runTool(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = newProgram(strings.NewReader(""), &out, &errs, spi.SystemClock).run(t.Context(), args)
	return status, out.String(), errs.String()
}

func TestRun_outputsAreApart(t *testing.T) {
	status, stdout, stderr := runTool(t, "decode", "1", "x")
	if status != statusError || !strings.Contains(stdout, "2016-11-01") || strings.Contains(stdout, `"x"`) || !strings.Contains(stderr, `"x"`) {
		t.Errorf("have: status %d\n%s--\n%s", status, stdout, stderr)
	}
	for _, args := range [][]string{{}, {"nothing"}, {"decode"}} {
		if status, stdout, stderr := runTool(t, args...); status != statusUsage || stdout != "" || stderr == "" {
			t.Errorf("%q\nhave: status %d, %q, %q\nwant: status 2, on standard error only", args, status, stdout, stderr)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestRun_outputFails(t *testing.T) {
	var errs bytes.Buffer
	p := newProgram(strings.NewReader(""), fullDisk{}, &errs, spi.SystemClock)
	if status := p.run(t.Context(), []string{"decode", "1"}); status != statusError || !strings.Contains(errs.String(), "no space left") {
		t.Errorf("have: status %d, %s", status, errs.String())
	}
}

type brokenPipe struct{ io.Reader }

func (brokenPipe) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestRun_inputFails(t *testing.T) {
	var errs bytes.Buffer
	p := newProgram(brokenPipe{}, io.Discard, &errs, spi.SystemClock)
	if status := p.run(t.Context(), []string{"plan", "-rule", "testdata/rule.yaml", "-"}); status != statusError || !strings.Contains(errs.String(), "broken") {
		t.Errorf("have: status %d, %s", status, errs.String())
	}
}

func TestParse_flagsAmongArguments(t *testing.T) {
	for _, test := range []struct {
		args string
		want []string
	}{
		{"1 -layout js53 2", []string{"1", "2"}},
		{"-layout js53 -7 1", []string{"-7", "1"}},
		{"1 -7 -layout js53", []string{"1", "-7"}},
		{"-layout js53 -- -tick 1", []string{"-tick", "1"}},
	} {
		root := newProgram(nil, io.Discard, io.Discard, nil).rootCommand()
		_, arranged, err := arrange(root, append([]string{"decode"}, strings.Fields(test.args)...))
		if err != nil {
			t.Fatal(err)
		}
		c, rest, err := root.Find(arranged)
		if err == nil {
			err = c.ParseFlags(rest)
		}
		if have := c.Flags().Args(); err != nil || !slices.Equal(have, test.want) || c.Flag("layout").Value.String() != "js53" {
			t.Errorf("%s\nhave: %q, layout %s, %v\nwant: %q, layout js53", test.args, have, c.Flag("layout").Value, err, test.want)
		}
	}
}

func TestVersion_line(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.0", Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}}
	if have, want := versionOf(info).String(), "shardkey (devel) abc modified go1.26.0"; have != want {
		t.Errorf("have: %s\nwant: %s", have, want)
	}
	info = &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v0.1.0"}}
	if have, want := versionOf(info).String(), "shardkey v0.1.0 go1.26.0"; have != want {
		t.Errorf("have: %s\nwant: %s", have, want)
	}
	if status, stdout, _ := runTool(t, "version"); status != 0 || !strings.HasPrefix(stdout, "shardkey ") {
		t.Errorf("have: status %d, %s", status, stdout)
	}
}

func TestPlan_onDuplicate(t *testing.T) {
	_, have, _ := runTool(t, "plan", "-rule", "testdata/rule.yaml", "INSERT INTO t_order (user_id) VALUES (?) ON DUPLICATE KEY UPDATE user_id = 1")
	if !strings.Contains(have, "reports the key of a row that exists already") {
		t.Errorf("have: %s", have)
	}
}

func TestGenerate_text(t *testing.T) {
	rule := write(t, `rules:
- !SHARDING
  tables:
    t_text: {keyGenerateStrategy: {column: id, keyGeneratorName: text}}
    t_blob: {keyGenerateStrategy: {column: id, keyGeneratorName: blob}}
  keyGenerators:
    text: {type: UUID}
    blob: {type: UUID, props: {format: binary}}
`)
	for _, test := range []struct{ table, want string }{
		{"t_text", `^([0-9a-f]{32}\n){2}$`},
		{"t_blob", `^(x'[0-9a-f]{32}'\n){2}$`},
	} {
		status, have, stderr := runTool(t, "generate", "-rule", rule, "-table", test.table, "-n", "2")
		if status != 0 || !regexp.MustCompile(test.want).MatchString(have) {
			t.Errorf("have: status %d, %s%s\nwant: %s", status, have, stderr, test.want)
		}
	}
}

// What a run has leased, the next one gets at once.
func TestGenerate_returnsItsWorkerID(t *testing.T) {
	rule := write(t, `rules:
- !SHARDING
  tables:
    t_order: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id-assigner: disk, layout: 61-0-2, tick: 1ms}}
  workerIdAssigners:
    disk: {type: FILE, props: {path: "`+t.TempDir()+`"}}
`)
	var keys []string
	for range 3 { // of one worker id that there is
		status, stdout, stderr := runTool(t, "generate", "-v", "-rule", rule, "-table", "t_order")
		if status != 0 || !strings.Contains(stderr, "FILE") {
			t.Fatalf("have: status %d, %s", status, stderr)
		}
		keys = append(keys, stdout)
	}
	if status, _, stderr := runTool(t, "generate", "-rule", rule, "-table", "t_order"); status != 0 || stderr != "" {
		t.Errorf("without -v\nhave: status %d, %s\nwant: silence", status, stderr)
	}
	if slices.Sort(keys); len(slices.Compact(keys)) != 3 {
		t.Errorf("have: %q, which repeats", keys)
	}
}

// A store that is away is an error that names the generator, and no secret.
func TestGenerate_withoutStore(t *testing.T) {
	status, stdout, stderr := runTool(t, "generate", "-rule", "testdata/mixed.yaml", "-table", "t_ring", "-timeout", "3s", "-dsn", "app:hunter2@tcp(127.0.0.1:1)/app")
	if status != statusError || stdout != "" || !strings.Contains(stderr, "generator ring for table t_ring") || strings.Contains(stderr, "hunter2") {
		t.Errorf("have: status %d, %s%s", status, stdout, stderr)
	}
}

// A password need not be an argument, which every user of the machine sees.
func TestGenerate_dsnFromFileOrEnvironment(t *testing.T) {
	const dsn = "app:hunter2@tcp(127.0.0.1:1)/app"
	args := []string{"generate", "-rule", "testdata/mixed.yaml", "-table", "t_ring", "-timeout", "3s"}
	try := func(how string, more ...string) {
		t.Helper()
		status, _, stderr := runTool(t, append(args, more...)...)
		if status != statusError || !strings.Contains(stderr, "generator ring") || strings.Contains(stderr, "hunter2") {
			t.Errorf("%s\nhave: status %d, %s\nwant: the generator at work, and no password", how, status, stderr)
		}
	}
	try("a file", "-dsn", "@"+write(t, dsn+"\n"))
	t.Setenv("SHARDKEY_DSN", dsn)
	try("the environment")
	for _, file := range []string{"@no-such-file", "@" + write(t, " \n")} {
		if status, _, stderr := runTool(t, append(args, "-dsn", file)...); status != statusError || strings.Contains(stderr, "generator ring") {
			t.Errorf("%s\nhave: status %d, %s\nwant: an error of the file", file, status, stderr)
		}
	}
}

// No command line that has a password in it, right or wrong, shows it again.
func TestRun_showsNoPassword(t *testing.T) {
	const dsn = "app:hunter2@tcp(127.0.0.1:1)/app"
	for _, args := range [][]string{
		{dsn},
		{"decode", dsn},
		{"decode", "-tick", dsn, "1"},
		{"decode", "-epoch", dsn, "1"},
		{"range", dsn},
		{"workers", "-rule", "testdata/rule.yaml", dsn},
		{"workers", "-rule", "testdata/mixed.yaml", "-dsn", dsn},
		{"workers", "-rule", "testdata/mixed.yaml", "-dsn", dsn, "-o", "json"},
		{"workers", "-rule", "testdata/mixed.yaml", "-dns", dsn},
		{"workers", "-rule", "testdata/mixed.yaml", "-dns=" + dsn},
		{"workers", "-rule", "testdata/mixed.yaml", "-watch=" + dsn},
		{"workers", "-rule", "testdata/mixed.yaml", "-watch", dsn},
		{"generate", "-rule", "testdata/mixed.yaml", "-table", "t_ring", "-v", dsn},
		{"generate", "-rule", "testdata/mixed.yaml", "-table", "t_order", "-dsn", dsn, "-timeout", "1s", "-o", "json"},
		{"generate", "-rule", "testdata/mixed.yaml", "-table", "t_order", "-dsn", "app:hunter2@127.0.0.1/app"},
		{"generate", "-type", "REDIS", "-prop", "addr=127.0.0.1:1", "-prop", "password=hunter2", "-prop", "shard=1"},
		{"generate", "-type", "REDIS", "-prop", "addr=u:hunter2@127.0.0.1:1"},
		{"generate", "-type", "REDIS", "-prop", "password:hunter2"},
		{"generate", "-type", "LEAF_SEGMENT", "-prop", "leaf.key=k", "-prop", "dsn=app:hunter2@127.0.0.1/app"},
	} {
		if status, stdout, stderr := runTool(t, args...); status == 0 || strings.Contains(stdout+stderr, "hunter2") {
			t.Errorf("%q\nhave: status %d, %s%s\nwant: an error without the password", args, status, stdout, stderr)
		}
	}
}

func TestCheck_showsNoSecret(t *testing.T) {
	_, stdout, stderr := runTool(t, "check", "testdata/mixed.yaml")
	if strings.Contains(stdout+stderr, "hunter2") {
		t.Errorf("have: %s%s", stdout, stderr)
	}
}

func write(t *testing.T, text string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "rule.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
