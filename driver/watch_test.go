package driver

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/internal/test/fakedb"
	testmust "github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// watched is a rule with two generators: one of a tag, and one that stays.
func watched(tables string, tag int) string {
	return ruleText("t_order "+tables+" - - id:changing\nt_item - - - id:staying", "", fmt.Sprintf(`
  keyGenerators:
    changing: {type: TEST, props: {tag: %d}}
    staying: {type: TEST}
`, tag))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	noError(t, os.WriteFile(path, []byte(text), 0o644))
}

// ruleFile returns the path of a new file with a rule.
func ruleFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rule.yaml")
	write(t, path, text)
	return path
}

// defaultLog takes what is logged by default until the test ends.
func defaultLog(t *testing.T) *logLines {
	old := slog.Default()
	log := new(logLines)
	slog.SetDefault(log.Logger())
	t.Cleanup(func() { slog.SetDefault(old) })
	return log
}

type logLines struct{ testmust.Log }

// count returns the number of lines that contain text.
func (l *logLines) count(text string) (n int) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (l *logLines) want(t *testing.T, when, text string, n int) {
	t.Helper()
	equal(t, l.count(text), n, when, "lines with", text, l)
}

func openWatched(t *testing.T, path, params string) *sql.DB {
	t.Helper()
	return must(sql.Open("shardkey", "u:p@tcp(127.0.0.1:1)/app?shardkeyRule="+path+params))(t)
}

// keyOf generates one key for a table. It returns 0 if that fails.
func keyOf(t *testing.T, db *sql.DB, table string) int64 {
	keys, err := NextKeys(t.Context(), db, table, 1)
	if err != nil {
		return 0
	}
	return keys[0].(int64)
}

func wantKey(t *testing.T, when string, db *sql.DB, table string, want int64) {
	t.Helper()
	equal(t, keyOf(t, db, table), want, when, "key of", table)
}

// Each test runs in a bubble, which fails unless the goroutine of its watcher ends.

func TestWatch_reload(t *testing.T) {
	notOnWindows(t, "the log has the path with quoted backslashes")
	log := defaultLog(t)
	synctest.Test(t, func(t *testing.T) {
		path := ruleFile(t, watched("t_order_${0..1}", 6))
		first := openWatched(t, path, "&shardkeyReload=5s")
		second := openWatched(t, path, "&shardkeyReload=1h") // at the interval of the first
		noError(t, RegisterRule("watched", must(rule.Load(path))(t)))
		defer DeregisterRule("watched")
		third := openWatched(t, "watched", "&shardkeyReload=1h")
		fixed := openWatched(t, path, "")
		defer fixed.Close()
		all := []*sql.DB{first, second, third}
		for i, db := range all {
			wantKey(t, "at first", db, "t_order_1", int64(i+1))
			wantKey(t, "at first", db, "t_item", int64(i+1))
		}
		running := ConnectorOf(first).rules.Load()
		if !running.generators.Acquire() {
			t.Fatal("the rule cannot be used")
		}

		write(t, path, watched("t_order_${0..2}", 7))
		time.Sleep(6 * time.Second)
		for i, db := range all {
			wantKey(t, "changed", db, "t_order_2", int64(i+1)) // from another generator
			wantKey(t, "changed", db, "t_item", int64(i+4))    // from the same generator
		}
		wantKey(t, "without shardkeyReload", fixed, "t_order_2", 0)
		check(t, fixed.Close())
		log.want(t, "changed", "changed rule loaded", 3)
		liveOf(t, "the changed one, in use", 6, 1)
		check(t, running.generators.Release())
		liveOf(t, "the changed one, left", 6, 0)
		late := openWatched(t, "watched", "&shardkeyReload=4s") // by the same goroutine
		wantKey(t, "opened later by name", late, "t_order_2", 4)

		write(t, path, strings.Replace(watched("t_order_${0..3}", 7), "keyGeneratorName: changing", "keyGeneratorName: chnging", 1))
		time.Sleep(time.Minute)
		for i, db := range all {
			wantKey(t, "broken", db, "t_order_2", int64(i+5))
			wantKey(t, "broken", db, "t_order_3", 0)
		}
		log.want(t, "broken", "changed rule not loaded", 4)
		log.want(t, "broken", path+":5:59: key generator", 4)

		write(t, path, watched("t_order_${0..3}", 7))
		time.Sleep(6 * time.Second)
		for i, db := range all {
			wantKey(t, "fixed", db, "t_order_3", int64(i+8))
		}
		log.want(t, "fixed", "changed rule loaded", 7)

		noError(t, os.Remove(path))
		time.Sleep(time.Minute)
		wantKey(t, "removed", second, "t_order_3", 11)
		log.want(t, "removed", "no such file", 4)
		write(t, path, watched("t_order_${0..3}", 7))
		time.Sleep(6 * time.Second)
		log.want(t, "there again", "rule file restored", 4)

		noError(t, errors.Join(first.Close(), late.Close()))
		write(t, path, watched("t_order_${0..9}", 7))
		time.Sleep(6 * time.Second)
		wantKey(t, "watched by the others", second, "t_order_9", 12)
		check(t, errors.Join(second.Close(), third.Close()))
		liveOf(t, "closed", 7, 0)
	})
}

// The file is a link to a file below ..data, which is replaced by a rename.
func TestWatch_configMap(t *testing.T) {
	notOnWindows(t, "a ConfigMap needs links that a rename replaces")
	defaultLog(t)
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		put := func(version, text string) {
			must := func(err error) {
				t.Helper()
				noError(t, err)
			}
			must(os.Mkdir(filepath.Join(dir, version), 0o755))
			write(t, filepath.Join(dir, version, "rule.yaml"), text)
			must(os.Symlink(version, filepath.Join(dir, "..data_tmp")))
			must(os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
		}
		put("..2026_1", watched("t_order_${0..1}", 1))
		path := filepath.Join(dir, "rule.yaml")
		noError(t, os.Symlink("..data/rule.yaml", path))
		db := openWatched(t, path, "&shardkeyReload=1s")
		defer db.Close()
		put("..2026_2", watched("t_order_${0..2}", 1))
		time.Sleep(2 * time.Second)
		wantKey(t, "swapped", db, "t_order_2", 1)
		noError(t, os.RemoveAll(filepath.Join(dir, "..2026_1")))
		time.Sleep(2 * time.Second)
		wantKey(t, "the old one removed", db, "t_order_2", 2)
	})
}

// A file that is being written is not loaded before it is complete.
func TestWatch_halfWritten(t *testing.T) {
	log := defaultLog(t)
	synctest.Test(t, func(t *testing.T) {
		path := ruleFile(t, watched("t_order_${0..1}", 1))
		db := openWatched(t, path, "&shardkeyReload=1s")
		defer db.Close()
		text := watched("t_order_${0..2}", 1)
		time.Sleep(settle / 4)
		for i := 0; i < len(text); i += 5 {
			write(t, path, text[:i])
			time.Sleep(settle / 2)
			if keyOf(t, db, "t_order_1") == 0 {
				t.Fatalf("%q was taken", text[:i])
			}
		}
		write(t, path, text)
		time.Sleep(2 * time.Second)
		if keyOf(t, db, "t_order_2") == 0 {
			t.Error("the whole file was not taken")
		}
		log.want(t, "whole", "changed rule not loaded", 0)
	})
}

// All connectors load a rule, or none does. Each logs to its own logger.
func TestWatch_allOrNone(t *testing.T) {
	log := defaultLog(t)
	synctest.Test(t, func(t *testing.T) {
		path := ruleFile(t, watched("t_order_${0..1}", 1))
		factoryCalls.Store(0)
		// The new rule needs a data source name, which one of the connectors doesn't have.
		var own logLines
		logger := WithLogger(slog.New(slog.NewTextHandler(&own, nil)))
		bare := sql.OpenDB(must(NewConnector(&fakedb.Server{}, must(rule.Load(path))(t), Config{Reload: time.Second}, logger))(t))
		easy := openWatched(t, path, "&shardkeyReload=1s")
		defer easy.Close()
		write(t, path, watched("t_order_${0..2}", 2)+"    another: {type: COUNTED}\n")
		time.Sleep(time.Minute)
		for _, db := range []*sql.DB{bare, easy} {
			wantKey(t, "refused by one", db, "t_order_2", 0)
		}
		log.want(t, "refused by one", "changed rule not loaded", 1)
		own.want(t, "refused by one", "changed rule not loaded", 1)
		liveOf(t, "of the refused rule", 2, 0)
		if n := factoryCalls.Load(); n > 3 { // the check of the file, and each connector at most
			t.Errorf("generators were made %d times in a minute\nwant: once for the content", n)
		}
		noError(t, bare.Close())
		time.Sleep(2 * time.Second)
		wantKey(t, "when it was closed", easy, "t_order_2", 1)
	})
}

func TestWatch_refuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rule.yaml")
	noError(t, RegisterRule("parsed", testRule(t)))
	defer DeregisterRule("parsed")
	write(t, path, watched("t_order", 3))
	for params, want := range map[string]string{
		"parsed&shardkeyReload=5s":   "was not loaded from a file",
		path + "&shardkeyReload=5":   `expected off or a duration from 10ms to 24h0m0s such as 5s, found "5"`,
		path + "&shardkeyReload=0s":  `found "0s"`,
		path + "&shardkeyReload=48h": `found "48h0m0s"`,
	} {
		_, err := sql.Open("shardkey", "u:p@tcp(127.0.0.1:1)/app?shardkeyRule="+params)
		dsnErr := (*DSNError)(nil)
		if !errors.As(err, &dsnErr) || dsnErr.Param != paramReload || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nhave: %v\nwant: %s", params, err, want)
		}
	}
	db := openWatched(t, path, "&shardkeyReload=off")
	liveOf(t, "off", 3, 1)
	check(t, db.Close())
	watchers.mu.Lock()
	defer watchers.mu.Unlock()
	if n := len(watchers.byFile); n > 0 {
		t.Errorf("have: %d files are watched\nwant: none", n)
	}
}

// A file is loaded after it stayed the same, and not again until it changes.
func TestLook_next(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rule.yaml")
	put := func(text string, at int64) func() {
		return func() {
			write(t, path, text)
			noError(t, os.Chtimes(path, time.Time{}, time.Unix(at, 0)))
		}
	}
	rule0, rule1, rule2 := watched("t_${0..1}", 1), watched("t_${0..2}", 1), watched("t_${0..3}", 1)
	l := look{}
	for _, step := range []struct {
		name   string
		do     func()
		loaded bool
		want   string // in the rule or the error
	}{
		{"not there", func() {}, false, ""},
		{"still not there", func() {}, true, "no such file"},
		{"written", put(rule0, 1000), false, ""},
		{"the same", func() {}, true, "t_0, t_1\n"},
		{"another content of the same size and time, which isn't read", put(rule1, 1000), true, "t_0, t_1\n"},
		{"another time", put(rule1, 1001), false, ""},
		{"the same", func() {}, true, "t_0, t_1, t_2\n"},
		{"a time that is too recent to tell", put(rule1, time.Now().Add(time.Hour).Unix()), false, ""},
		{"the same", func() {}, true, "t_0, t_1, t_2\n"},
		{"another content of the same size and time, which is read", func() {
			at := must(os.Stat(path))(t).ModTime()
			write(t, path, rule2)
			noError(t, os.Chtimes(path, time.Time{}, at))
		}, true, "t_0, t_1, t_2, t_3\n"},
		{"a directory", func() { noError(t, errors.Join(os.Remove(path), os.Mkdir(path, 0o755))) }, false, ""},
		{"still one", func() {}, true, "directory"},
	} {
		step.do()
		l = l.next(path)
		equal(t, l.loaded, step.loaded, step.name)
		if have := fmt.Sprintln(l.rule, l.failed); step.loaded && !strings.Contains(have, step.want) {
			t.Errorf("%s\nhave: %s\nwant: %s", step.name, have, step.want)
		}
	}
}

// Closing a connector doesn't wait for a file that can't be read.
func TestAwait_stops(t *testing.T) {
	stop := make(chan struct{})
	forever := make(chan struct{})
	defer close(forever)
	go close(stop)
	if _, ok := await(stop, func() int { <-forever; return 1 }); ok {
		t.Error("have: a result of a function that blocks")
	}
	if n, ok := await(nil, func() int { return 1 }); n != 1 || !ok {
		t.Errorf("have: %d, %t\nwant: 1, true", n, ok)
	}
}

// Rules change while keys are generated and databases are opened and closed.
func TestWatch_atOnce(t *testing.T) {
	notOnWindows(t, "Windows doesn't replace a file that is open")
	defaultLog(t)
	path := ruleFile(t, watched("t_order_${0..1}", 4))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 30 {
				db, err := sql.Open("shardkey", fmt.Sprintf("u:p@tcp(127.0.0.1:1)/app%d?shardkeyRule=%s&shardkeyReload=10ms", i, path))
				if err != nil {
					t.Error(err)
					return
				}
				for range 20 {
					if _, err := NextKeys(t.Context(), db, "t_order_1", 2); err != nil {
						t.Error(err)
					}
				}
				check(t, db.Close())
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for n := 2; ; n++ {
		select {
		case <-done:
			liveOf(t, "closed", 4, 0)
			liveOf(t, "closed", 5, 0)
			return
		default:
			write(t, path+".new", watched(fmt.Sprintf("t_order_${0..%d}", n), 4+n%2))
			noError(t, os.Rename(path+".new", path))
		}
	}
}

// factoryCalls counts the calls of the factory of COUNTED, which needs a data source name.
var factoryCalls atomic.Int64

func init() {
	spi.RegisterKeyGenerator("COUNTED", func(p spi.Props) (spi.KeyGenerator, error) {
		factoryCalls.Add(1)
		if p.HostDSN().Reveal() == "" {
			return nil, p.Wrong("dsn", "a data source name")
		}
		return new(testGenerator), nil
	})
}

// A rule that was set in the meantime stays, and a closed connector loads none.
func TestConnector_changeOfAnotherRule(t *testing.T) {
	c := mustConnector(t, &fakedb.Server{}, taggedRule(t, "t", 1))
	old := c.rules.Load()
	next := must(c.open(taggedRule(t, "t", 2)))(t)
	between := taggedRule(t, "t", 3)
	noError(t, c.SetRule(between))
	if c.change(old, next) || c.Rule() != between {
		t.Errorf("have: %v\nwant: the rule that was set", c.Rule())
	}
	current := c.rules.Load()
	check(t, c.Close())
	if c.change(current, next) {
		t.Error("have: a closed connector took a rule")
	}
	check(t, next.generators.Close())
	for tag := 1; tag <= 3; tag++ {
		liveOf(t, "closed", tag, 0)
	}
}

func notOnWindows(t *testing.T, why string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip(why)
	}
}
