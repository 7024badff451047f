package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/shardkey/shardkey/rule"
)

// Intervals at which a rule's file is checked.
const (
	minReload = 10 * time.Millisecond
	maxReload = 24 * time.Hour
	// settle is how long a file must stay unchanged before it is loaded, since a program may still
	// write it.
	settle = 100 * time.Millisecond
	// sameTime is how long a file can change without another modification time. FAT has the
	// longest unit, 2 seconds.
	sameTime = 2 * time.Second
)

// watchers are the watched files of this process.
var watchers = registry{byFile: map[string]*watcher{}}

type registry struct {
	mu     sync.Mutex
	byFile map[string]*watcher
}

// add watches the file of the connector's rule, unless interval is 0. A file has one goroutine,
// with the shortest interval of all connectors.
func (open *registry) add(c *Connector, interval time.Duration) error {
	if interval == 0 {
		return nil
	}
	file, _ := c.Rule().Source()
	if file == "" {
		return &DSNError{Param: paramReload,
			Reason: fmt.Sprintf("the rule %s was not loaded from a file; load it from a file or remove the parameter", c.Rule().Name())}
	}
	open.mu.Lock()
	defer open.mu.Unlock()
	w := open.byFile[file]
	if w == nil {
		w = &watcher{file: file, interval: interval, ticker: time.NewTicker(interval), connectors: map[*Connector]bool{},
			stop: make(chan struct{}), done: make(chan struct{})}
		open.byFile[file] = w
		go w.run()
	}
	w.connectors[c], c.watcher = true, w
	if interval < w.interval {
		w.interval = interval
		w.ticker.Reset(interval)
	}
	return nil
}

// remove removes a closed connector. If its file was watched for this connector alone, the
// goroutine has ended when remove returns.
func (open *registry) remove(c *Connector) {
	open.mu.Lock()
	w := c.watcher
	c.watcher = nil
	last := false
	if w != nil {
		delete(w.connectors, c)
		last = len(w.connectors) == 0
	}
	if last {
		delete(open.byFile, w.file)
	}
	open.mu.Unlock()
	if last {
		close(w.stop)
		<-w.done
	}
}

// using returns the connectors whose rule still comes from the file.
func (open *registry) using(w *watcher) []*Connector {
	open.mu.Lock()
	defer open.mu.Unlock()
	all := slices.Collect(maps.Keys(w.connectors))
	return slices.DeleteFunc(all, func(c *Connector) bool { return c.file() != w.file })
}

// watches reports whether the file of the connector's rule is watched for it.
func (open *registry) watches(c *Connector) bool {
	open.mu.Lock()
	defer open.mu.Unlock()
	return c.watcher != nil && c.watcher.file == c.file()
}

// file returns the path of the current rule's file, or "".
func (connector *Connector) file() string {
	file, _ := connector.Rule().Source()
	return file
}

// watcher watches one file for all connectors that reload it.
type watcher struct {
	file       string
	connectors map[*Connector]bool // guarded by registry.mu
	interval   time.Duration       // guarded by registry.mu
	ticker     *time.Ticker
	stop, done chan struct{}

	// The goroutine owns these fields.
	last   look
	failed attempt // the last attempt, if it failed
	logged string  // the last logged error; empty after a success
}

// attempt identifies a rule (or the error of loading it) and the connectors to load it into. A
// failed attempt isn't repeated.
type attempt struct {
	rule       *rule.Rule
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
		next, ok := await(w.stop, func() look { return w.last.next(w.file) })
		if !ok {
			return
		}
		if w.last, tick = next, w.ticker.C; next.loaded {
			w.update()
		} else {
			tick = time.After(settle)
		}
	}
}

// await returns the result of f. It returns false if stop is closed before: reading a file can
// block, for example on a network file system, and closing a connector must not wait for it.
func await[T any](stop <-chan struct{}, f func() T) (result T, ok bool) {
	results := make(chan T, 1)
	go func() { results <- f() }()
	select {
	case <-stop:
		return result, false
	case result = <-results:
		return result, true
	}
}

// look is what a watcher knows of its file.
type look struct {
	info   fs.FileInfo
	err    error // the error of [os.Stat]
	loaded bool  // the file was loaded since it changed
	again  bool  // the content can change without a change of info
	rule   *rule.Rule
	failed error // the error of [rule.Load]
}

// next looks at the file again. It loads the file if it stayed the same since the last look.
func (last look) next(file string) look {
	info, err := os.Stat(file)
	switch {
	case !last.isSame(info, err):
		return look{info: info, err: err, rule: last.rule}
	case last.loaded && !last.again:
		return last
	}
	last.again = err == nil && time.Since(info.ModTime()) < sameTime
	last.rule, last.failed = rule.Load(file)
	last.loaded = true
	if unread := (*fs.PathError)(nil); err == nil && errors.As(last.failed, &unread) {
		last.again = true
	}
	return last
}

func (last look) isSame(info fs.FileInfo, err error) bool {
	if last.info == nil || info == nil {
		return last.info == info && last.err != nil && err != nil && last.err.Error() == err.Error()
	}
	return os.SameFile(last.info, info) && last.info.Mode() == info.Mode() && last.info.Size() == info.Size() &&
		last.info.ModTime().Equal(info.ModTime())
}

// update loads the rule into the connectors with an older content, and logs an error once.
func (w *watcher) update() {
	using := watchers.using(w)
	behind := slices.Clone(using)
	if next := w.last.rule; next != nil {
		_, sum := next.Source()
		behind = slices.DeleteFunc(behind, func(c *Connector) bool {
			_, has := c.Rule().Source()
			return has == sum
		})
	}
	now := attempt{w.last.rule, fmt.Sprint(w.last.failed), len(behind)}
	if now == w.failed {
		return
	}
	err := w.last.failed
	if err == nil {
		if err = takeRule(behind, w.last.rule); err == nil {
			namedRules.renew(w.file, w.last.rule)
		}
	}
	w.failed = attempt{}
	text := ""
	if err != nil {
		w.failed, text = now, err.Error()
	}
	was := w.logged
	if (err != nil || len(behind) == 0) && text == was {
		return
	}
	w.logged = text
	for _, c := range using {
		c.counts.reloaded(err)
		switch logger := c.logger; {
		case err != nil:
			logger.Error("shardkey: changed rule not loaded, the old one stays in use", "file", w.file, "error", err)
		case slices.Contains(behind, c):
			logger.Info("shardkey: changed rule loaded", c.rules.Load().attrs()...)
			c.rules.Load().logWarnings()
		case was != "":
			logger.Info("shardkey: rule file restored", "file", w.file)
		}
	}
}
