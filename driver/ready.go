package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/spi"
)

// Ready returns nil when a key can be made now for every table of the rule, and
// else what stands in the way: a [*NotReadyError] for each generator that cannot
// make one, joined where there are several, or [spi.ErrClosed]. It is for a
// readiness probe:
//
//	http.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
//		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
//		defer cancel()
//		if err := errors.Join(connector.Ready(ctx), db.PingContext(ctx)); err != nil {
//			http.Error(w, err.Error(), http.StatusServiceUnavailable)
//		}
//	})
//
// It uses no key, but takes what the first one needs, as a worker id or a segment:
// a program that has been ready once does not wait with its first INSERT. A store
// that is away is no reason while keys can be made without it, nor is a changed
// rule file that could not be taken; [Connector.Stats] has both. It does not ask
// the database that the rows go to. It returns soon after ctx ends. A generator
// that is no [spi.ReadyReporter] is ready while its health has no error.
func (c *Connector) Ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	rules, err := c.use()
	if err != nil {
		return err
	}
	defer func() { _ = rules.generators.Release() }()
	return rules.ready(ctx)
}

// use returns the current rule, with its generators acquired.
func (c *Connector) use() (*ruleSet, error) {
	for {
		rules := c.rules.Load()
		if rules == nil {
			return nil, errZeroConnector
		}
		if rules.generators.Acquire() {
			return rules, nil
		}
		if rules == c.rules.Load() {
			return nil, fmt.Errorf("%w: the database's generators", spi.ErrClosed)
		}
	}
}

// ready asks each generator that tables use, all at once.
func (r *ruleSet) ready(ctx context.Context) error {
	var all []*NotReadyError
	byName := map[string]*NotReadyError{}
	for _, t := range r.rule.Tables() {
		key := strings.ToLower(t.GeneratorName)
		e := byName[key]
		if e == nil {
			e = &NotReadyError{Generator: t.GeneratorName}
			byName[key], all = e, append(all, e)
		}
		e.Tables = append(e.Tables, t.Logical)
	}
	var asked sync.WaitGroup
	for _, e := range all {
		g := r.generators.Generator(e.Generator)
		asked.Go(func() { e.Err = guard.Call("it", func() error { return isReady(ctx, g) }) })
	}
	asked.Wait()
	var errs []error
	for _, e := range all {
		if e.Err != nil {
			errs = append(errs, e)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

func isReady(ctx context.Context, g spi.KeyGenerator) error {
	switch g := g.(type) {
	case spi.ReadyReporter:
		return g.Ready(ctx)
	case spi.HealthReporter:
		return g.Health().Err
	}
	return nil
}

// NotReadyError says that a generator cannot make a key now.
type NotReadyError struct {
	Generator string   // its name in the rule
	Tables    []string // the logical tables that get no keys, in the rule's order
	Err       error    // the generator's error, as an INSERT's
}

func (e *NotReadyError) Error() string {
	const shown = 3
	tables := strings.Join(e.Tables[:min(shown, len(e.Tables))], ", ")
	if more := len(e.Tables) - shown; more > 0 {
		tables += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("shardkey: not ready: generator %s makes no keys for %s: %s", e.Generator, tables, strings.TrimPrefix(fmt.Sprint(e.Err), "shardkey: "))
}

func (e *NotReadyError) Unwrap() error { return e.Err }
