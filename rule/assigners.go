package rule

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/shardkey/shardkey/spi"
)

// assigners are the worker-id assigners of one connector, each made when a
// generator first asks for it.
type assigners struct {
	rule *Rule
	host spi.Host

	mu     sync.Mutex
	made   map[int]spi.WorkerIDAssigner // by index in Rule.assigners
	closed bool
}

func newAssigners(r *Rule, host spi.Host) *assigners {
	return &assigners{rule: r, host: host, made: map[int]spi.WorkerIDAssigner{}}
}

// get gives the assigner of that name, the same each time.
func (a *assigners) get(name string) (spi.WorkerIDAssigner, error) {
	for i, spec := range a.rule.assigners {
		if strings.EqualFold(spec.name.text, name) {
			return a.make(i, spec)
		}
	}
	return nil, a.undefined(name)
}

func (a *assigners) make(i int, spec makeSpec) (spi.WorkerIDAssigner, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, fmt.Errorf("%w: worker-id assigner %s", spi.ErrClosed, spec.name.text)
	}
	if made, ok := a.made[i]; ok {
		return made, nil
	}
	made, err := a.rule.newAssigner(spec, a.host)
	if err == nil {
		a.made[i] = made
	}
	return made, err
}

// undefinedAssigner is turned into an [Error] at the property that names it.
type undefinedAssigner struct {
	name    string
	defined []string
}

func (e *undefinedAssigner) Error() string {
	s := fmt.Sprintf("worker-id assigner %q is not defined", e.name)
	if len(e.defined) == 0 {
		return s + "; there are no workerIdAssigners beside the keyGenerators"
	}
	return s + "; defined are " + strings.Join(e.defined, ", ")
}

func (a *assigners) undefined(name string) error {
	e := &undefinedAssigner{name: name}
	for _, spec := range a.rule.assigners {
		e.defined = append(e.defined, spec.name.text)
	}
	return e
}

func (a *assigners) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	var errs []error
	for i, spec := range a.rule.assigners {
		if made, ok := a.made[i]; ok {
			errs = append(errs, closeNamed("worker-id assigner", spec.name.text, made))
		}
	}
	return errors.Join(errs...)
}

// each calls do with each assigner that has been made, in the rule's order.
func (a *assigners) each(do func(makeSpec, spi.WorkerIDAssigner)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, spec := range a.rule.assigners {
		if made, ok := a.made[i]; ok {
			do(spec, made)
		}
	}
}
