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
var errForeignState = errors.New("shardkey: the Redis key has other content")

// foreignState returns the error for a field or a type of the state that this program hasn't
// written.
func (g *generator) foreignState(field, value string) error {
	e := storeError(g.server.addr, nil)
	e.Kind = errForeignState
	if field == "epoch" {
		e.Detail = fmt.Sprintf("the state %q belongs to keys with another epoch, %s ms after 1970, "+
			"and keys of two epochs can be equal", g.stateKey, value)
		e.Advice = "use that epoch, or another namespace and shard-id"
	} else {
		e.Detail = fmt.Sprintf("%q was not written by shardkey (%s is %q)", g.stateKey, field, value)
		e.Advice = "use another namespace, or delete the key if no program needs it"
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
		{"MOVED", "addr is one node of a cluster; set several nodes, separated by commas"},
		{"READONLY", "addr is a replica; set the primary"},
		{"OOM", "the server's maxmemory is reached"},
		{"MISCONF", "the server cannot write its data to disk"},
		{"x509", "set the property tls to the PEM file of the server's authority"},
		{"tls:", "check whether the server uses TLS, and the property tls"},
		{"DB index", "set the property db to a database that the server has"},
		{"connection refused", "check that the server runs at this address"},
	} {
		if strings.Contains(err.Error(), a.word) {
			return a.advice
		}
	}
	return ""
}
