package driver

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
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
	watchInterval = time.Second // by WatchRule
	minReload     = 10 * time.Millisecond
	maxReload     = 24 * time.Hour
	// settle is how long a file must stay the same before it is loaded: a program may be
	// writing it.
	settle = 100 * time.Millisecond
)

// WatchRule loads changes of a rule's file into all connectors of this process that use it, also
// those opened later, until ctx ends. It checks the file each second in a goroutine, and returns at
// once. The DSN parameter shardkeyReload does the same until its sql.DB is closed, at its own
// interval. A file has one goroutine, with the shortest interval that was asked for.
//
// A file that was replaced by renaming, or by another target of a symbolic link to it or to its
// directory, has changed as well as one that was written to. All connectors get the new rule, or
// none does: if it doesn't load, if it has warnings and one of them was opened with
// shardkeyRuleWarnings=error, or if a generator can't be opened, they keep the old one, and the
// error is logged once, with its file and line. When the file is fixed, it is loaded. Statements
// that are running finish with the rule that they began with. Generators that are configured in the
// same way stay, with their worker ID and their state ([rule.Live.Replace]); others are closed
// after their last use. Rules given to [RegisterRule] are replaced by newer ones of their file.
//
// WatchRule returns an error if the rule doesn't load now, and watches nothing then.
func WatchRule(ctx context.Context, path string) error {
	r, err := rule.Load(path)
	if err != nil {
		return err
	}
	file, _ := r.Source()
	context.AfterFunc(ctx, openConnectors.watch(file, watchInterval))
	return nil
}

// openConnectors are those of this process, and the files that are watched for them.
var openConnectors = registry{connectors: map[*Connector]func(){}, watchers: map[string]*watcher{}}

type registry struct {
	mu         sync.Mutex
	connectors map[*Connector]func() // ends the connector's own watching
	watchers   map[string]*watcher   // by the file's path
}

// add adds an open connector, and watches its rule's file if interval isn't 0.
func (o *registry) add(c *Connector, interval time.Duration) error {
	leave := func() {}
	if interval > 0 {
		file, _ := c.Rule().Source()
		if file == "" {
			return &DSNError{Param: paramReload,
				Reason: fmt.Sprintf("the rule %s was not loaded from a file: there is nothing to look at", c.Rule().Name())}
		}
		leave = o.watch(file, interval)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.connectors[c] = leave
	return nil
}

// remove removes a closed connector. If its file was watched for it alone, the goroutine has
// ended when remove returns.
func (o *registry) remove(c *Connector) {
	o.mu.Lock()
	leave := o.connectors[c]
	delete(o.connectors, c)
	o.mu.Unlock()
	if leave != nil {
		leave()
	}
}

// using returns the open connectors whose rule is from a file.
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
	interval   time.Duration // as well
	ticker     *time.Ticker
	stop, done chan struct{}

	// These belong to the goroutine.
	info   fs.FileInfo // nil if the file can change and still look the same
	sum    [sha256.Size]byte
	err    error   // the file cannot be read
	failed attempt // the last one, if it failed
	logged string  // the error that was logged last; empty after a success
}

// attempt is a content of the file, or the error of reading it, loaded into so many
// connectors. One that failed is not made again.
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

// changed reports whether the file has another content than at the last call.
func (w *watcher) changed() bool {
	info, err := os.Stat(w.file)
	if err == nil && w.info != nil && os.SameFile(info, w.info) &&
		info.ModTime().Equal(w.info.ModTime()) && info.Size() == w.info.Size() {
		return false
	}
	var text []byte
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New(w.file + " is not a regular file")
	} else if err == nil {
		text, err = os.ReadFile(w.file)
	}
	sum := sha256.Sum256(text)
	changed := sum != w.sum || fmt.Sprint(err) != fmt.Sprint(w.err)
	w.info, w.sum, w.err = nil, sum, err
	if err == nil && time.Since(info.ModTime()) > 2*time.Second { // which may be the resolution of files' times
		w.info = info
	}
	return changed
}

// update loads the file into the connectors whose rule is another one, and logs an error once.
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
	for _, logger := range loggersOf(using) {
		switch {
		case err != nil:
			logger.Error("shardkey: changed rule not loaded, the old one stays in use",
				"file", w.file, "error", err)
		case next != nil:
			logger.Info("shardkey: changed rule loaded", "file", w.file)
			logWarnings(next, logger)
		default:
			logger.Info("shardkey: rule file restored", "file", w.file)
		}
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

// loggersOf returns the connectors' loggers, each once, or the default one if there is no
// connector.
func loggersOf(connectors []*Connector) map[*slog.Logger]*slog.Logger {
	all := map[*slog.Logger]*slog.Logger{} // by the logger as it was given
	for _, c := range connectors {
		all[c.logger] = c.host.Logger
	}
	if len(all) == 0 {
		all[nil] = slog.Default()
	}
	return all
}
