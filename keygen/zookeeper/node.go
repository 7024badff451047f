package zookeeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/shardkey/shardkey/spi"
)

// node is the data of a node with its version.
type node struct {
	name string // relative to its path, if it was listed
	data []byte
	stat *zk.Stat // nil if the node doesn't exist
}

// get reads a node, after all writes that the ensemble has acknowledged.
func (e *ensemble) get(ctx context.Context, path string) (node, error) {
	return there(do(ctx, e, func(c *zk.Conn) (node, error) {
		if _, err := c.Sync(e.chroot + path); err != nil {
			return node{}, err
		}
		data, stat, err := c.Get(e.chroot + path)
		return node{data: data, stat: stat}, err
	}))
}

// list reads the nodes under a path whose names are wanted, after all writes that the ensemble has
// acknowledged.
func (e *ensemble) list(ctx context.Context, path string, wanted func(name string) bool) ([]node, error) {
	names, err := there(do(ctx, e, func(c *zk.Conn) ([]string, error) {
		if _, err := c.Sync(e.chroot + path); err != nil {
			return nil, err
		}
		names, _, err := c.Children(e.chroot + path)
		return slices.DeleteFunc(names, func(name string) bool { return !wanted(name) }), err
	}))
	if err != nil {
		return nil, err
	}
	nodes := make([]node, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(32)
	for i, name := range names {
		group.Go(func() (err error) {
			nodes[i], err = there(do(ctx, e, func(c *zk.Conn) (node, error) {
				data, stat, err := c.Get(e.chroot + path + "/" + name)
				return node{name, data, stat}, err
			}))
			return err
		})
	}
	err = group.Wait()
	return slices.DeleteFunc(nodes, func(n node) bool { return n.stat == nil }), err
}

// there replaces the error that a node doesn't exist by the zero value.
func there[T any](found T, err error) (T, error) {
	if errors.Is(err, zk.ErrNoNode) {
		return *new(T), nil
	}
	return found, err
}

// set changes a node if it still has the version. It returns false if it doesn't.
func (e *ensemble) set(ctx context.Context, path string, data []byte, version int32) (bool, error) {
	return swapped(do(ctx, e, func(c *zk.Conn) (*zk.Stat, error) {
		return c.Set(e.chroot+path, data, version)
	}))
}

// create creates a node and its parents. It returns false if the node exists.
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

// makeParents creates the parents of a full path.
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

// now returns the time of the ensemble's clock, which is the time that it records for a write of a
// node.
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

// swapped returns false for answers that mean that the comparison failed.
func swapped[T any](_ T, err error) (bool, error) {
	if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNodeExists) {
		return false, nil
	}
	return err == nil, err
}

// wrap returns the error of a call. If ctx has ended, it wraps ctx's error. ZooKeeper's errors
// about nodes aren't changed, because they answer the request.
func (e *ensemble) wrap(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrBadVersion):
		return err
	case errors.Is(err, spi.ErrClosed), errors.Is(err, zk.ErrClosing):
		return spi.ErrClosed
	case errors.Is(err, zk.ErrConnectionClosed) && e.isClosed():
		return spi.ErrClosed
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		err = cmp.Or(ctx.Err(), fmt.Errorf("no answer within %v", e.timeout))
	}
	w := &spi.StoreError{Store: "ZOOKEEPER at " + e.name(), Cause: err}
	switch {
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed):
		w.Advice = "set the properties username and password of a user that may read, create and write there"
	case ctx.Err() == nil:
		w.Advice = "see that a majority of the members runs and can be reached"
	}
	return w
}

func (e *ensemble) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}
