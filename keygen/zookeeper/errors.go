package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/shardkey/shardkey/spi"
)

// ensembleError is a failure of the ensemble, with what to do about it.
type ensembleError struct {
	ensemble, advice string
	cause            error
}

func (e *ensembleError) Error() string {
	msg := fmt.Sprintf("shardkey: ZOOKEEPER at %s: %v", e.ensemble, e.cause)
	if e.advice != "" {
		msg += "; " + e.advice
	}
	return msg
}

func (e *ensembleError) Unwrap() []error { return []error{spi.ErrStore, e.cause} }

// ended makes the error of a call that a context has ended: the caller's own,
// or our timeout.
func ended(ctx context.Context, e *ensemble, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %v", e.Timeout)
	}
	return err
}

// wrap makes the error of a call. What ZooKeeper says about nodes stays as it
// is: it is the answer to the question.
func (e *ensemble) wrap(err error) error {
	switch {
	case err == nil, errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrBadVersion):
		return err
	case errors.Is(err, spi.ErrClosed), errors.Is(err, zk.ErrClosing):
		return spi.ErrClosed
	case errors.Is(err, zk.ErrConnectionClosed) && e.isClosed():
		return spi.ErrClosed
	}
	w := &ensembleError{ensemble: e.name(), cause: err}
	switch {
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed):
		w.advice = "set the properties username and password of a user that may read, create and write there"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
	default:
		w.advice = "see that a majority of the members runs and can be reached"
	}
	return w
}

func (e *ensemble) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}
