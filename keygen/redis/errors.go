package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	goredis "github.com/redis/go-redis/v9"
	"github.com/shardkey/shardkey/spi"
)

// errForeignState is in the chain if the Redis key for the generator's state has other content. The
// content isn't changed.
var errForeignState = errors.New("shardkey: the Redis key holds something else")

// foreignState returns the error for a field or a type of the state that this program hasn't
// written.
func (g *generator) foreignState(field, value string) error {
	e := storeError(g.server.addr, nil)
	e.Kind = errForeignState
	if field == "epoch" {
		e.Detail = fmt.Sprintf("the state %q belongs to keys of another epoch, %s ms after 1970: "+
			"keys of two epochs repeat each other", g.stateKey, value)
		e.Advice = "use that epoch, or another namespace and shard-id"
	} else {
		e.Detail = fmt.Sprintf("%q is not what this program has written (%s is %q)", g.stateKey, field, value)
		e.Advice = "use another namespace, or delete it when nobody needs it"
	}
	return e
}

func storeError(server string, cause error) *spi.StoreError {
	return &spi.StoreError{Store: "REDIS at " + server, Cause: cause}
}

// wrapError returns the error of a call to the server.
func wrapError(server string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, goredis.ErrClosed):
		return spi.ErrClosed
	}
	e := storeError(server, err)
	e.Advice = advice(err)
	return e
}

const credentials = "set the properties username and password"

// advice returns how to fix a server error, judged by its first word.
func advice(err error) string {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ""
	}
	for _, a := range []struct{ word, advice string }{
		{"WRONGPASS", credentials}, {"NOAUTH", credentials}, {"invalid password", credentials},
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
		if strings.Contains(err.Error(), a.word) {
			return a.advice
		}
	}
	return ""
}
