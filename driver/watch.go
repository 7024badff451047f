package driver

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/shardkey/shardkey/rule"
)

// Intervals at which a rule's file is looked at.
const (
	watchInterval = time.Second // by WatchRule
	minReload     = 10 * time.Millisecond
	maxReload     = 24 * time.Hour
	// settle is how long a file must stay as it is before it is read: it may be
	// written at this moment.
	settle = 100 * time.Millisecond
)

// WatchRule takes changes of a rule's file into all connectors of this process that
// use it, those opened later included, until ctx ends. It looks at the file each second,
// in a goroutine of its own, and returns at once. The DSN's parameter shardkeyReload
// does the same with an interval of its own, until its sql.DB is closed.
//
// A file that was replaced by renaming, or by another target of a symbolic link
// to it or to its directory, has changed as well as one that was written to. All
// connectors take the new rule, or none: when it does not load, when it has
// warnings and one of them was opened with shardkeyRuleWarnings=error, or when a
// generator cannot be opened, the old one goes on, and the error is logged once, with
// its file and line; a file that is mended is taken. Statements that are
// running finish with the rule that they began with. Generators that are
// configured in the same way stay, with their worker id and their state
// ([rule.Live.Replace]); others are closed once nobody uses them. Rules that were
// given to [RegisterRule] are replaced by newer ones of their file.
//
// The error is that of a rule that does not load now; nothing is watched then.
func WatchRule(ctx context.Context, path string) error {
	r, err := rule.Load(path)
	if err != nil {
		return err
	}
	file, _ := r.Source()
	leave := openConnectors.watch(file, watchInterval)
	context.AfterFunc(ctx, leave)
	return nil
}

// openConnectors are those of this process, and the files that are watched for
// them.
var openConnectors registry

type registry struct {
	mu         sync.Mutex
	connectors map[*Connector]func() // what ends the connector's own watching
	watchers   map[string]*watcher   // by the file's path
}

// add takes an open connector, and watches its rule's file where interval is not 0.
func (o *registry) add(c *Connector, interval time.Duration) error {
	leave := func() {}
	if interval > 0 {
		file, _ := c.Rule().Source()
		if file == "" {
			return &DSNError{Param: paramReload, Reason: fmt.Sprintf("the rule %s was not loaded from a file: there is nothing to look at", c.Rule().Name())}
		}
		leave = o.watch(file, interval)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.connectors == nil {
		o.connectors = map[*Connector]func(){}
	}
	o.connectors[c] = leave
	return nil
}

// remove drops a connector that is closed. The goroutine that watched for it alone
// has ended when remove returns.
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
func (o *registry) using(file string) (all []*Connector) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.connectors {
		if of, _ := c.Rule().Source(); of == file {
			all = append(all, c)
		}
	}
	return all
}

// watch looks at a file at an interval, or more often, until leave is called.
func (o *registry) watch(file string, interval time.Duration) (leave func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.watchers[file]
	if w == nil {
		w = &watcher{file: file, intervals: map[*time.Duration]struct{}{}, stop: make(chan struct{}), done: make(chan struct{}), wake: make(chan struct{}, 1)}
		if o.watchers == nil {
			o.watchers = map[string]*watcher{}
		}
		o.watchers[file] = w
		w.see()
		go w.run()
	}
	mine := &interval
	w.mu.Lock()
	w.intervals[mine] = struct{}{}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}: // it may be the shortest
	default:
	}
	return sync.OnceFunc(func() { o.leave(w, mine) })
}

// watches reports whether a file is looked at.
func (o *registry) watches(file string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.watchers[file] != nil
}

func (o *registry) leave(w *watcher, interval *time.Duration) {
	o.mu.Lock()
	w.mu.Lock()
	delete(w.intervals, interval)
	last := len(w.intervals) == 0
	w.mu.Unlock()
	if last {
		delete(o.watchers, w.file)
		close(w.stop)
	}
	o.mu.Unlock()
	if last {
		<-w.done
	}
}

// watcher looks at one file for all connectors that use it.
type watcher struct {
	file       string
	stop, done chan struct{}
	wake       chan struct{} // intervals have changed

	mu        sync.Mutex // guards intervals
	intervals map[*time.Duration]struct{}

	// What follows belongs to the goroutine.
	seen     seen
	tried    attempt // the last one, which failed
	reported string  // the error that was logged last; empty when all is well
}

// attempt is a text that so many connectors were to take. It is made once.
type attempt struct {
	sum        [sha256.Size]byte
	connectors int
}

// seen is a file as it was looked at.
type seen struct {
	info fs.FileInfo // nil when there is none
	sum  [sha256.Size]byte
	err  string
	// still: the file's time is so far in the past that another write would have
	// given it another one.
	still bool
}

func (w *watcher) run() {
	defer close(w.done)
	next := time.NewTimer(w.interval())
	defer next.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-w.wake:
			next.Reset(w.interval())
		case <-next.C:
			if w.see() {
				next.Reset(min(settle, w.interval()))
				continue
			}
			w.act()
			next.Reset(w.interval())
		}
	}
}

// interval is the shortest that is asked for.
func (w *watcher) interval() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	shortest := time.Duration(maxReload)
	for d := range w.intervals {
		shortest = min(shortest, *d)
	}
	return shortest
}

// see looks at the file, and reports whether it was written to since the last time.
func (w *watcher) see() (changed bool) {
	info, err := os.Stat(w.file)
	if last := w.seen; err == nil && last.info != nil && last.still &&
		os.SameFile(info, last.info) && info.ModTime().Equal(last.info.ModTime()) && info.Size() == last.info.Size() {
		return false
	}
	now := seen{info: info}
	if err == nil {
		// Times of files may be as coarse as two seconds.
		now.still = time.Since(info.ModTime()) > 2*time.Second
		now.sum, err = sumOf(w.file, info)
	}
	if err != nil {
		now.info, now.err = nil, err.Error()
	}
	changed = now.sum != w.seen.sum || now.err != w.seen.err ||
		now.info != nil && w.seen.info != nil && !now.info.ModTime().Equal(w.seen.info.ModTime())
	w.seen = now
	return changed
}

func sumOf(file string, info fs.FileInfo) (sum [sha256.Size]byte, err error) {
	if !info.Mode().IsRegular() {
		return sum, errors.New(file + " is not a regular file")
	}
	f, err := os.Open(file)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// act brings the connectors in line with the file as it was seen.
func (w *watcher) act() {
	using := openConnectors.using(w.file)
	if w.seen.err != "" {
		w.report(using, errors.New("shardkey: cannot read the rule: "+w.seen.err))
		return
	}
	var behind []*Connector
	for _, c := range using {
		if _, sum := c.Rule().Source(); sum != w.seen.sum {
			behind = append(behind, c)
		}
	}
	if len(behind) == 0 {
		w.mended(using)
		return
	}
	if w.tried == (attempt{w.seen.sum, len(behind)}) {
		return
	}
	next, err := rule.Load(w.file)
	if err == nil {
		err = takeRule(behind, next)
	}
	if err != nil {
		w.tried = attempt{w.seen.sum, len(behind)}
		w.report(using, err)
		return
	}
	w.recover(using)
	namedRules.renew(w.file, next)
	for _, logger := range loggersOf(behind) {
		logger.Info("shardkey: the rule's file has changed: the new rule holds", "file", w.file)
		logWarnings(next, logger)
	}
}

// report logs that the file cannot be taken, once.
func (w *watcher) report(using []*Connector, err error) {
	if w.reported == err.Error() {
		return
	}
	w.reported = err.Error()
	for _, c := range using {
		c.counts.reloadErrors.Add(1)
		c.counts.reloadError.Store(new(w.reported))
	}
	for _, logger := range loggersOf(using) {
		logger.Error("shardkey: the rule's file has changed, but cannot be taken: the old rule goes on", "file", w.file, "error", err)
	}
}

func (w *watcher) mended(using []*Connector) {
	if w.reported == "" {
		return
	}
	w.recover(using)
	for _, logger := range loggersOf(using) {
		logger.Info("shardkey: the rule's file is right again", "file", w.file)
	}
}

// recover forgets what was wrong with the file.
func (w *watcher) recover(using []*Connector) {
	w.tried, w.reported = attempt{}, ""
	for _, c := range using {
		c.counts.reloadError.Store(nil)
	}
}

// loggersOf returns the connectors' loggers, each once, and the default one when there
// is no connector.
func loggersOf(connectors []*Connector) (all []*slog.Logger) {
	known := map[*slog.Logger]bool{}
	for _, c := range connectors {
		if !known[c.logger] {
			known[c.logger] = true
			all = append(all, c.host.Logger)
		}
	}
	if all == nil {
		all = append(all, slog.Default())
	}
	return all
}

// takeRule makes next the rule of all connectors, or of none.
func takeRule(connectors []*Connector, next *rule.Rule) error {
	old, opened := make([]*ruleSet, len(connectors)), make([]*ruleSet, 0, len(connectors))
	for i, c := range connectors {
		old[i] = c.rules.Load()
		set, err := c.open(next)
		if err != nil {
			for _, set := range opened {
				err = errors.Join(err, set.generators.Close())
			}
			return err
		}
		opened = append(opened, set)
	}
	for i, c := range connectors {
		unused := old[i]
		if !c.change(old[i], opened[i]) {
			unused = opened[i]
		}
		if err := unused.generators.Close(); err != nil {
			c.host.Logger.Warn("shardkey: closing the generators of the old rule", "error", err)
		}
	}
	return nil
}

// renew gives the names of rules of a file the newer one.
func (n *registeredRules) renew(file string, next *rule.Rule) {
	n.Lock()
	defer n.Unlock()
	for name, r := range n.rules {
		if of, _ := r.Source(); of == file {
			n.rules[name] = next
		}
	}
}
