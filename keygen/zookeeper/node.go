package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/shardkey/shardkey/spi"
	"golang.org/x/sync/errgroup"
)

// node is what a node holds, and the version of that.
type node struct {
	data []byte
	stat *zk.Stat
}

// get reads a node, after all that the ensemble has confirmed.
func (e *ensemble) get(ctx context.Context, path string) (node, error) {
	return do(ctx, e, func(c *zk.Conn) (node, error) {
		if _, err := c.Sync(e.chroot + path); err != nil {
			return node{}, err
		}
		data, stat, err := c.Get(e.chroot + path)
		return node{data, stat}, err
	})
}

// getAll reads nodes of which names were just listed; those that have gone since
// are nil.
func (e *ensemble) getAll(ctx context.Context, path string, names []string) ([]*node, error) {
	nodes := make([]*node, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(32)
	for i, name := range names {
		group.Go(func() error {
			n, err := do(ctx, e, func(c *zk.Conn) (node, error) {
				data, stat, err := c.Get(e.chroot + path + "/" + name)
				return node{data, stat}, err
			})
			if errors.Is(err, zk.ErrNoNode) {
				return nil
			}
			nodes[i] = &n
			return err
		})
	}
	return nodes, group.Wait()
}

func (e *ensemble) children(ctx context.Context, path string) ([]string, error) {
	return do(ctx, e, func(c *zk.Conn) ([]string, error) {
		if _, err := c.Sync(e.chroot + path); err != nil {
			return nil, err
		}
		names, _, err := c.Children(e.chroot + path)
		return names, err
	})
}

// set changes a node that still has the version; it is false when it has not.
func (e *ensemble) set(ctx context.Context, path string, data []byte, version int32) (bool, error) {
	return swapped(do(ctx, e, func(c *zk.Conn) (*zk.Stat, error) {
		return c.Set(e.chroot+path, data, version)
	}))
}

// create makes a node, and those above it; it is false when it is there.
func (e *ensemble) create(ctx context.Context, path string, data []byte, flags int32) (string, bool, error) {
	for {
		made, err := do(ctx, e, func(c *zk.Conn) (string, error) {
			return c.Create(e.chroot+path, data, flags, e.acl())
		})
		if !errors.Is(err, zk.ErrNoNode) {
			ok, err := swapped(made, err)
			return strings.TrimPrefix(made, e.chroot), ok, err
		}
		if err := e.makeParents(ctx, e.chroot+path); err != nil {
			return "", false, err
		}
	}
}

// makeParents makes the nodes above a full path.
func (e *ensemble) makeParents(ctx context.Context, path string) error {
	for i := 1; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		_, err := do(ctx, e, func(c *zk.Conn) (string, error) {
			return c.Create(path[:i], nil, 0, e.acl())
		})
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// now is the ensemble's clock: the time that it records for a write of a node.
func (e *ensemble) now(ctx context.Context, path string) (time.Time, error) {
	if _, _, err := e.create(ctx, path, nil, 0); err != nil {
		return time.Time{}, err
	}
	stat, err := do(ctx, e, func(c *zk.Conn) (*zk.Stat, error) {
		return c.Set(e.chroot+path, nil, -1)
	})
	if err != nil {
		return time.Time{}, err
	}
	return time.UnixMilli(stat.Mtime), nil
}

// swapped turns the answers that say no into false.
func swapped[T any](_ T, err error) (bool, error) {
	if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNodeExists) {
		return false, nil
	}
	return err == nil, err
}

// ended makes the error of a call that a context has ended: the caller's own,
// or our timeout.
func ended(ctx context.Context, e *ensemble, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %v", e.timeout)
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
	w := &spi.StoreError{Store: "ZOOKEEPER at " + e.name(), Cause: err}
	switch {
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed):
		w.Advice = "set the properties username and password of a user that may read, create and write there"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
	default:
		w.Advice = "see that a majority of the members runs and can be reached"
	}
	return w
}

func (e *ensemble) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}
