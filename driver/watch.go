package driver

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/shardkey/shardkey/rule"
)

// Intervals at which a rule's file is checked.
const (
	watchInterval = time.Second // for WatchRule
	minReload     = 10 * time.Millisecond
	maxReload     = 24 * time.Hour
	// settle is how long a file must stay unchanged before it is loaded, since a program may still
	// write it.
	settle = 100 * time.Millisecond
)

// WatchRule loads changes of a rule's file into all connectors of this process that use the file,
// also those opened later, until ctx ends. It checks the file each second in a goroutine, and
// returns immediately. The DSN parameter shardkeyReload does the same, at its interval and until
// its sql.DB is closed. A file has one goroutine, with the shortest interval of all callers.
//
// WatchRule detects writes to the file, renames, and new targets of symbolic links to the file or
// its directory. All connectors get the new rule, or none does. They keep the old rule if the new
// one or one of its generators can't be opened. They also keep it if a connector with
// shardkeyRuleWarnings=error finds a warning. WatchRule logs that error once, with file and line,
// and loads the file after it is fixed.
//
// Running statements finish with the old rule. Generators with the same configuration stay open and
// keep their worker ID ([rule.Live.Replace]); others are closed after their last use. Rules given
// to [RegisterRule] are replaced too.
//
// WatchRule returns an error if the rule can't be loaded now, and then watches nothing. It is safe
// for concurrent use.
func WatchRule(ctx context.Context, path string) error {
	r, err := rule.Load(path)
	if err != nil {
		return err
	}
	file, _ := r.Source()
	context.AfterFunc(ctx, openConnectors.watch(file, watchInterval))
	return nil
}

// openConnectors are the open connectors of this process and the files that are watched for them.
var openConnectors = registry{connectors: map[*Connector]func(){}, watchers: map[string]*watcher{}}

type registry struct {
	mu         sync.Mutex
	connectors map[*Connector]func() // the function stops watching for the connector
	watchers   map[string]*watcher   // by the file's path
}

// add adds an open connector, and watches its rule's file if interval isn't 0.
func (o *registry) add(c *Connector, interval time.Duration) error {
	leave := func() {}
	if interval > 0 {
		file, _ := c.Rule().Source()
		if file == "" {
			return &DSNError{Param: paramReload,
				Reason: fmt.Sprintf("the rule %s was not loaded from a file; load it from a file or remove the parameter", c.Rule().Name())}
		}
		leave = o.watch(file, interval)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.connectors[c] = leave
	return nil
}

// remove removes a closed connector. If its file was watched for this connector alone, the
// goroutine has ended when remove returns.
func (o *registry) remove(c *Connector) {
	o.mu.Lock()
	leave := o.connectors[c]
	delete(o.connectors, c)
	o.mu.Unlock()
	if leave != nil {
		leave()
	}
}

// using returns the open connectors whose rule comes from a file.
func (o *registry) using(file string) []*Connector {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := slices.Collect(maps.Keys(o.connectors))
	return slices.DeleteFunc(all, func(c *Connector) bool {
		of, _ := c.Rule().Source()
		return of != file
	})
}

// watch watches a file until leave is called.
func (o *registry) watch(file string, interval time.Duration) (leave func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.watchers[file]
	if w == nil {
		w = &watcher{file: file, interval: interval, ticker: time.NewTicker(interval),
			stop: make(chan struct{}), done: make(chan struct{})}
		o.watchers[file] = w
		w.changed()
		go w.run()
	}
	w.users++
	if interval < w.interval {
		w.interval = interval
		w.ticker.Reset(interval)
	}
	return sync.OnceFunc(func() { o.leave(w) })
}

func (o *registry) leave(w *watcher) {
	o.mu.Lock()
	w.users--
	last := w.users == 0
	if last {
		delete(o.watchers, w.file)
	}
	o.mu.Unlock()
	if last {
		close(w.stop)
		<-w.done
	}
}

// watches reports whether a file is watched.
func (o *registry) watches(file string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.watchers[file] != nil
}

// watcher watches one file for all connectors that use it.
type watcher struct {
	file       string
	users      int           // guarded by registry.mu
	interval   time.Duration // guarded by registry.mu
	ticker     *time.Ticker
	stop, done chan struct{}

	// The goroutine owns these fields.
	sum    [sha256.Size]byte
	err    error   // the error of reading the file
	failed attempt // the last attempt, if it failed
	logged string  // the last logged error; empty after a success
}

// attempt identifies a file's content (or its read error) and the connectors to load it into. A
// failed attempt isn't repeated.
type attempt struct {
	sum        [sha256.Size]byte
	err        string
	connectors int
}

func (w *watcher) run() {
	defer close(w.done)
	defer w.ticker.Stop()
	tick := w.ticker.C
	for {
		select {
		case <-w.stop:
			return
		case <-tick:
		}
		tick = w.ticker.C
		if w.changed() {
			tick = time.After(settle)
		} else {
			w.update()
		}
	}
}

// changed reports whether the file's content has changed since the last call.
func (w *watcher) changed() bool {
	text, err := os.ReadFile(w.file)
	sum := sha256.Sum256(text)
	changed := sum != w.sum || fmt.Sprint(err) != fmt.Sprint(w.err)
	w.sum, w.err = sum, err
	return changed
}

// update loads the file into the connectors with an older content, and logs an error once.
func (w *watcher) update() {
	using := openConnectors.using(w.file)
	behind := slices.DeleteFunc(slices.Clone(using), func(c *Connector) bool {
		_, sum := c.Rule().Source()
		return sum == w.sum
	})
	now := attempt{w.sum, fmt.Sprint(w.err), len(behind)}
	if now == w.failed {
		return
	}
	next, err := w.load(behind)
	w.failed = attempt{}
	text := ""
	if err != nil {
		w.failed, text = now, err.Error()
	}
	if next == nil && text == w.logged {
		return
	}
	w.logged = text
	for _, c := range using {
		c.counts.reloaded(err)
	}
	logger := slog.Default()
	if len(using) > 0 {
		logger = using[0].host.Logger
	}
	switch {
	case err != nil:
		logger.Error("shardkey: changed rule not loaded, the old one stays in use", "file", w.file, "error", err)
	case next != nil:
		logger.Info("shardkey: changed rule loaded", "file", w.file)
		logWarnings(next, logger)
	default:
		logger.Info("shardkey: rule file restored", "file", w.file)
	}
}

// load loads the file into the connectors. It returns a nil rule if there are none.
func (w *watcher) load(behind []*Connector) (*rule.Rule, error) {
	switch {
	case w.err != nil:
		return nil, fmt.Errorf("shardkey: cannot read the rule: %w", w.err)
	case len(behind) == 0:
		return nil, nil
	}
	next, err := rule.Load(w.file)
	if err == nil {
		err = takeRule(behind, next)
	}
	if err != nil {
		return nil, err
	}
	namedRules.renew(w.file, next)
	return next, nil
}
