package base

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Bounds of the statements that a connection caches. The server holds a tree for
// each: a longer query is prepared for each execution.
const (
	maxCached      = 16
	maxCachedBytes = 16 << 10
	// maxTypes is the number of argument type lists for which one query is cached.
	maxTypes = 4
)

// Cacheable reports whether the statement of a query may be cached: it isn't long,
// and mentions no user variable, whose type MySQL fixes when it prepares.
func Cacheable(query string) bool {
	return len(query) <= maxCachedBytes && strings.IndexByte(query, '@') < 0
}

// Cache bounds and counts the statements that the connections of one connector
// cache. Many goroutines use it.
type Cache struct {
	always bool
	// limit is the highest number of statements: unknown at first, 0 after the server had no room.
	limit  atomic.Int64
	wanted atomic.Bool // the limit is needed and unknown
	open   atomic.Int64
	clears atomic.Uint32 // how many times all connections had to clear

	hits, misses, dropped atomic.Int64
}

const (
	unknown = -1
	// maxTotal statements of 16 to 26 kB take some 50 MB of a server's memory.
	maxTotal = 2048
	// share is the part of the server's limit that one connector uses.
	share = 8
	// totalOfUnknown is for servers that don't report their limit.
	totalOfUnknown = 256
)

// NewCache returns a cache. With always, connections prepare a query also if the
// driver would execute it directly.
func NewCache(always bool) *Cache {
	c := &Cache{always: always}
	c.limit.Store(unknown)
	return c
}

// CacheStats are the counts of a cache.
type CacheStats struct {
	Open int64
	// Limit is -1 before it is known, and 0 after the server had no room.
	Limit                 int64
	Hits, Misses, Dropped int64
}

// Stats returns the counts. Connections report their hits 16 at a time.
func (c *Cache) Stats() CacheStats {
	if c == nil {
		return CacheStats{}
	}
	return CacheStats{c.open.Load(), c.limit.Load(), c.hits.Load(), c.misses.Load(), c.dropped.Load()}
}

// SetLimit sets the limit from the server's max_prepared_stmt_count, in digits: an
// eighth of it, at most 2,048. TiDB's -1 means that it has none. What isn't a number
// counts as a server that doesn't report it.
func (c *Cache) SetLimit(server string) {
	limit := int64(totalOfUnknown)
	if n, err := strconv.ParseInt(server, 10, 64); err == nil && n >= 0 {
		limit = min(maxTotal, n/share)
	} else if err == nil {
		limit = maxTotal
	}
	c.limit.CompareAndSwap(unknown, limit)
	c.wanted.Store(false)
}

// statements are the prepared statements that one connection caches, the one used last first.
type statements struct {
	cache  *Cache // nil: none
	all    []*cachedStmt
	clears uint32 // cache.clears, as far as it was followed
	hits   int64  // that cache.hits doesn't have yet
}

type cachedStmt struct {
	Stmt
	query string
	// types are those of the arguments. With the first execution MySQL decides by
	// them how it reads the query: JSON_ARRAY(?) depends on them, and
	// JSON_ARRAY(COALESCE(?, ?)) on which of them are NULL.
	types []argType
}

type argType uint8

const (
	argOther argType = iota // how it is sent is unknown
	argNull
	argInt
	argUint
	argFloat
	argBool
	argString
	argBytes
	argTime
)

func typeOf(v driver.Value) argType {
	switch v := v.(type) {
	case nil:
		return argNull
	case int64:
		return argInt
	case uint64:
		return argUint
	case float64, float32:
		return argFloat
	case bool:
		return argBool
	case string, json.RawMessage:
		return argString
	case []byte:
		if v == nil {
			return argNull
		}
		return argBytes
	case time.Time:
		return argTime
	}
	return argOther
}

// typesOf returns nil if a statement with such arguments isn't cached.
func typesOf(args []driver.NamedValue) []argType {
	types := make([]argType, len(args))
	for i := range args {
		if types[i] = typeOf(args[i].Value); types[i] == argOther {
			return nil
		}
	}
	return types
}

func (s *cachedStmt) takes(args []driver.NamedValue) bool {
	if len(s.types) != len(args) {
		return false
	}
	for i := range args {
		if typeOf(args[i].Value) != s.types[i] {
			return false
		}
	}
	return true
}

// Caches reports whether the connection caches statements.
func (c *Conn) Caches() bool { return c.cached.cache != nil }

// NeedsLimit reports whether Cache.SetLimit is to be called before the next SendCached.
func (c *Conn) NeedsLimit() bool { return c.Caches() && c.cached.cache.wanted.Load() }

// ClearCache closes the cached statements, for when the server may read their
// queries in another way from now on. (It looks at the tables with each execution.)
func (c *Conn) ClearCache() { c.cached.clear() }

// SendCached is Send with a statement that is kept for the next execution of the
// same query. The query is Cacheable, and the connection Caches.
func (c *Conn) SendCached(ctx context.Context, query string, args []driver.NamedValue, added int, want Want) (Reply, error) {
	k := &c.cached
	k.follow()
	s := k.find(query, args)
	if s == nil && !k.cache.always {
		if r, err := c.Direct(ctx, query, args, want); err != driver.ErrSkip {
			return r, err
		}
	}
	r, err := c.sendStatement(ctx, s, query, args, added, want)
	switch {
	case err != driver.ErrSkip:
		return r, err
	case k.cache.always:
		return c.Send(ctx, query, args, added, want)
	}
	return c.SendPrepared(ctx, query, args, added, want)
}

// SendBinary is SendPrepared with a statement that is kept for the next execution of the
// same query, if the query is Cacheable and the connection Caches.
func (c *Conn) SendBinary(ctx context.Context, query string, args []driver.NamedValue, want Want) (Reply, error) {
	if k := &c.cached; c.Caches() && Cacheable(query) {
		k.follow()
		if r, err := c.sendStatement(ctx, k.find(query, args), query, args, 0, want); err != driver.ErrSkip {
			return r, err
		}
	}
	return c.SendPrepared(ctx, query, args, 0, want)
}

// sendStatement executes the cached statement s, or, if that is nil or of no use to the
// server, one that it prepares. It returns driver.ErrSkip if there is no room for it.
func (c *Conn) sendStatement(
	ctx context.Context, s *cachedStmt, query string, args []driver.NamedValue, added int, want Want,
) (Reply, error) {
	k := &c.cached
	if s != nil {
		if err := s.CheckArgs(args, added); err != nil {
			return Reply{}, err
		}
		k.hit()
		r, err := s.Send(ctx, args, want)
		if err != nil {
			k.drop(s)
		}
		if !isUnprepared(err) {
			return r, err
		}
	}
	s, err := c.prepareCached(ctx, query, args, added)
	switch {
	case err != nil:
		return Reply{}, err
	case s == nil:
		return Reply{}, driver.ErrSkip
	}
	r, err := s.Send(ctx, args, want)
	if err != nil {
		k.drop(s) // parts of long arguments may be at the server
	}
	return r, err
}

// prepareCached prepares a statement to be cached. It returns nil when there is no room for it.
func (c *Conn) prepareCached(ctx context.Context, query string, args []driver.NamedValue, added int) (*cachedStmt, error) {
	k := &c.cached
	types := typesOf(args)
	if types == nil || !k.admit(query) {
		return nil, nil
	}
	prepared, err := c.PrepareFor(ctx, query, args, added)
	full := k.cache.limit.Load() <= 0 // the server had no room
	if err == nil && full {
		_ = prepared.Close()
	}
	if err != nil || full {
		k.cache.open.Add(-1)
		const notInProtocol = 1295
		if k.cache.always && IsServerError(err, notInProtocol) {
			return nil, nil // the server executes it directly only
		}
		return nil, err
	}
	s := &cachedStmt{Stmt: prepared, query: query, types: types}
	k.all = slices.Insert(k.all, 0, s)
	k.cache.misses.Add(1)
	return s, nil
}

// isUnprepared reports whether the server executed nothing because it doesn't have
// the prepared statement any more, or can't adapt it to changed tables.
func isUnprepared(err error) bool {
	const unknownStatement, needReprepare = 1243, 1615
	return IsServerError(err, unknownStatement, needReprepare)
}

// find returns the statement of a query with such arguments, or nil.
func (k *statements) find(query string, args []driver.NamedValue) *cachedStmt {
	for i, s := range k.all {
		if s.query == query && s.takes(args) {
			if i > 0 {
				copy(k.all[1:i+1], k.all[:i])
				k.all[0] = s
			}
			return s
		}
	}
	return nil
}

// hit counts an execution. Adding to a counter that other processors see takes
// longer than everything else that is counted here.
func (k *statements) hit() {
	const most = 16
	if k.hits++; k.hits >= most {
		k.reportHits()
	}
}

func (k *statements) reportHits() {
	k.cache.hits.Add(k.hits)
	k.hits = 0
}

// admit makes room for one more statement of a query, and reports whether there is
// any. A full connection closes its oldest statement, or the query's oldest if there
// are statements of it for many types.
func (k *statements) admit(query string) bool {
	limit := k.cache.limit.Load()
	if limit == unknown {
		k.cache.wanted.Store(true)
	}
	if limit <= 0 {
		return false
	}
	same, oldest := 0, 0
	for i, s := range k.all {
		if s.query == query {
			same, oldest = same+1, i
		}
	}
	switch {
	case same >= maxTypes:
		k.drop(k.all[oldest])
	case len(k.all) >= maxCached:
		k.drop(k.all[len(k.all)-1])
	}
	for k.cache.open.Add(1) > limit {
		k.cache.open.Add(-1)
		if len(k.all) == 0 {
			return false
		}
		k.drop(k.all[len(k.all)-1])
	}
	return true
}

// drop closes a statement.
func (k *statements) drop(s *cachedStmt) {
	if i := slices.Index(k.all, s); i >= 0 {
		k.all = slices.Delete(k.all, i, i+1)
	}
	_ = s.Close() // fails only on a broken connection
	k.reportHits()
	k.cache.open.Add(-1)
	k.cache.dropped.Add(1)
}

// clear closes all.
func (k *statements) clear() {
	for len(k.all) > 0 {
		k.drop(k.all[len(k.all)-1])
	}
}

// follow closes all if the server had no room.
func (k *statements) follow() {
	if clears := k.cache.clears.Load(); clears != k.clears {
		k.clears = clears
		k.clear()
	}
}

// full is called when the server has no room for another statement: all are closed, those of other
// connections before their next SendCached, and none is cached from then on.
func (k *statements) full() {
	k.cache.limit.Store(0)
	k.cache.wanted.Store(false)
	k.clears = k.cache.clears.Add(1)
	k.clear()
}

// SetLimit is Cache.SetLimit of the connection's cache.
func (c *Conn) SetLimit(server string) { c.cached.cache.SetLimit(server) }
