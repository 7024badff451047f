package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/shardkey/shardkey/spi"
)

// ForeignStateError says that a Redis key that should hold our state holds
// something else; it is left as it is. [spi.ErrStore] is in its chain.
type ForeignStateError struct {
	Server string // host:port
	Key    string // the Redis key
	Field  string // what is wrong there: "type" or a field of the hash
	Value  string // its value
}

func (e *ForeignStateError) Error() string {
	if e.Field == "epoch" {
		return fmt.Sprintf("shardkey: REDIS: the state %q at %s belongs to keys of another epoch, %s ms after 1970: keys of two epochs repeat each other; use that epoch, or another namespace and shard-id", e.Key, e.Server, e.Value)
	}
	return fmt.Sprintf("shardkey: REDIS: %q at %s is not what this program has written (%s is %q): use another namespace, or delete it when nobody needs it", e.Key, e.Server, e.Field, e.Value)
}

// Unwrap gives the error that e is a case of.
func (e *ForeignStateError) Unwrap() error { return spi.ErrStore }

// serverError is a failure of the server, with what to do about it.
type serverError struct {
	server string
	advice string
	cause  error
}

func (e *serverError) Error() string {
	msg := fmt.Sprintf("shardkey: REDIS at %s: %v", e.server, e.cause)
	if e.advice != "" {
		msg += "; " + e.advice
	}
	return msg
}

func (e *serverError) Unwrap() []error { return []error{spi.ErrStore, e.cause} }

// wrapError makes the error of a call of the server.
func wrapError(server string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, goredis.ErrClosed):
		return spi.ErrClosed
	}
	return &serverError{server: server, advice: advice(err), cause: err}
}

// advice says the way out of an error of the server, by the word it begins
// with.
func advice(err error) string {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ""
	}
	msg := err.Error()
	for _, a := range []struct{ word, advice string }{
		{"WRONGPASS", "set the properties username and password"},
		{"NOAUTH", "set the properties username and password"},
		{"invalid password", "set the properties username and password"},
		{"NOPERM", "the user needs eval, evalsha, script, time, type, hmget and hset on the keys of the namespace"},
		{"MOVED", "addr names one node of a cluster: name several, with commas"},
		{"READONLY", "addr names a replica: name the master"},
		{"OOM", "the server's maxmemory is reached"},
		{"MISCONF", "the server cannot write its data to disk"},
		{"x509", "set the property tls to the PEM file of the server's authority"},
		{"tls:", "see whether the server speaks TLS, and the property tls"},
		{"DB index", "set the property db to a database that the server has"},
		{"connection refused", "see that the server runs at this address"},
	} {
		if strings.Contains(msg, a.word) {
			return a.advice
		}
	}
	return ""
}
