package base

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/sqlerr"
)

// Limits of the cached statements. The server keeps a parse tree for each of them. A longer query
// is prepared for each execution.
const (
	maxCached      = 16
	maxCachedBytes = 16 << 10
	// maxTypes limits the lists of argument types for which one query is cached.
	maxTypes = 4
)

// Cacheable reports whether a query's statement may be cached. The query must be short enough and
// have no user variable, since MySQL fixes a variable's type when it prepares the statement.
func Cacheable(query string) bool {
	return len(query) <= maxCachedBytes && strings.IndexByte(query, '@') < 0
}

// Cache limits and counts the cached statements of a connector's connections. It is safe for
// concurrent use.
type Cache struct {
	always bool
	// limit is the maximum number of statements. It is unknown at first, and 0 after the server ran
	// out of statements.
	limit  atomic.Int64
	open   atomic.Int64
	clears atomic.Uint32 // how many times all connections had to clear their statements
	// broken counts connections in a row that broke while they prepared a query that the driver can
	// execute directly.
	broken atomic.Int32

	hits, misses, dropped atomic.Int64
}

const (
	unknown = -1
	// maxTotal statements of 16 to 26 kB take about 50 MB of a server's memory.
	maxTotal = 2048
	// share is the part of the server's limit that one connector uses.
	share = 8
	// totalOfUnknown is the limit if the server doesn't report one.
	totalOfUnknown = 256
)

// NewCache returns a cache. If always is set, connections also prepare queries that the driver
// would execute directly.
func NewCache(always bool) *Cache {
	c := &Cache{always: always}
	c.limit.Store(unknown)
	return c
}

// CacheStats are the statistics of a cache.
type CacheStats struct {
	Open int64
	// Limit is -1 if unknown, and 0 after the server ran out of statements.
	Limit                 int64
	Hits, Misses, Dropped int64
}

// Stats returns the cache's statistics. Connections report their hits 16 at a time.
func (cache *Cache) Stats() CacheStats {
	if cache == nil {
		return CacheStats{}
	}
	return CacheStats{cache.open.Load(), cache.limit.Load(), cache.hits.Load(), cache.misses.Load(), cache.dropped.Load()}
}

// SetLimit sets the limit to an eighth of the server's max_prepared_stmt_count, at most 2,048. The
// parameter server is that variable as a string. In TiDB a negative number means no limit
// (AddPreparedStmt of its session variables). If server isn't a number, the limit is 256.
func (cache *Cache) SetLimit(server string) {
	limit := int64(totalOfUnknown)
	if n, err := strconv.ParseInt(server, 10, 64); err == nil && n >= 0 {
		limit = min(maxTotal, n/share)
	} else if err == nil {
		limit = maxTotal
	}
	cache.limit.CompareAndSwap(unknown, limit)
}

// statements are the cached statements of one connection, most recently used first.
//
// A statement is keyed by its query and, as [How] says, by the types of its arguments. It ends with its
// connection, when the session may have changed (ClearCache), when the server or the limit has no place
// for it, or when others were used more recently.
type statements struct {
	cache   *Cache // nil: none
	all     []*cachedStmt
	clears  uint32 // the value of cache.clears that was applied last
	changes uint32 // counts the calls of ClearCache
	hits    int64  // hits not yet added to cache.hits
	// wanted: a statement needed the unknown limit.
	wanted bool
	// interpolates: the driver has executed a query with arguments directly.
	interpolates bool
	// refused: a query that the driver can execute directly was refused as a prepared statement.
	refused bool
}

// cachedStmt is a statement that waits for its next execution or user.
type cachedStmt struct {
	Stmt
	query string
	types argTypes
}

// NeedsLimit reports whether Cache.SetLimit must be called before the next cached statement.
func (c *Conn) NeedsLimit() bool { return c.cached.wanted && c.cached.cache.limit.Load() == unknown }

// ClearCache closes the cached statements. Call it if the server may interpret their queries in
// another way from now on. Changed tables don't matter, since the server checks them at each
// execution (MySQL manual, "Caching of Prepared Statements and Stored Programs"), but for a temporary
// table that hides a view: the statement still inserts into the view's table.
func (c *Conn) ClearCache() {
	c.cached.changes++
	c.cached.clear()
}

// Take removes a statement of a query from the cache and returns it for a program that prepares the
// query. Call its Fits before each execution. The result is zero if there is none.
func (c *Conn) Take(query string) (s Stmt) {
	k := &c.cached
	k.follow()
	return k.take(slices.IndexFunc(k.all, func(s *cachedStmt) bool { return s.query == query }))
}

// take removes statement i from the cache; none if i is negative.
func (k *statements) take(i int) (s Stmt) {
	if i < 0 {
		return s
	}
	s = k.all[i].Stmt
	s.before, s.own = k.all[i].types, make(argTypes, len(k.all[i].types))
	k.all = slices.Delete(k.all, i, i+1)
	k.cache.open.Add(-1)
	k.hit()
	return s
}

// PrepareShared prepares a query for a program. The statement can be returned to the cache. args is
// the number of its arguments.
func (c *Conn) PrepareShared(ctx context.Context, query string, args int, how How) (Stmt, error) {
	s, err := c.Prepare(ctx, query)
	s.how, s.own = how, make(argTypes, args)
	return s, err
}

// Fits records that a program executes its statement with args. It reports false if earlier users
// have fixed other types of arguments; see Exchange.
func (s *Stmt) Fits(args []driver.NamedValue) bool {
	if s.own == nil {
		return true
	}
	if s.before != nil && !s.before.admits(s.how, args) {
		return false
	}
	s.mixed = s.own.add(s.how, args) || s.mixed
	left := false
	for i := range s.before {
		if s.own[i] != anyType {
			s.before[i] = anyType // the program's own executions decide from now on
		}
		left = left || s.before[i] != anyType
	}
	if !left {
		s.before = nil
	}
	return true
}

// Exchange returns a program's statement to the cache and replaces it by one that fits args, since
// the program has prepared one without types.
func (c *Conn) Exchange(ctx context.Context, s *Stmt, query string, args []driver.NamedValue) (err error) {
	k := &c.cached
	k.follow()
	next := k.take(slices.IndexFunc(k.all, func(s *cachedStmt) bool { return s.query == query && s.admits(args) }))
	if next.IsZero() {
		if next, err = c.PrepareShared(ctx, query, len(s.own), s.how); err != nil {
			return err
		}
	}
	_ = c.Return(*s, query) // fails only on a broken connection
	*s = next
	s.Fits(args)
	return nil
}

// Return adds a statement that a program closes to the cache, or closes it.
func (c *Conn) Return(s Stmt, query string) error {
	k := &c.cached
	k.follow()
	if s.own == nil || s.mixed || s.changes != k.changes || !k.admit(query) {
		return s.Close()
	}
	types := s.own
	for i, t := range s.before {
		types[i] = cmp.Or(types[i], t)
	}
	s.before, s.own = nil, nil
	k.all = slices.Insert(k.all, 0, &cachedStmt{Stmt: s, query: query, types: types})
	return nil
}

// sendCached executes a query by a cached statement.
//
// A driver that interpolates executes the query directly, unless it is repeated. If the arguments
// have the same meaning in both protocols, a cached statement is faster, since the server doesn't
// parse it again. After a refusal of such a statement the connection prepares no more of them.
func (c *Conn) sendCached(ctx context.Context, r *Request) (reply Reply, err error) {
	k := &c.cached
	k.follow()
	s := k.find(r.Text, r.Args)
	direct := s == nil
	if k.interpolates {
		direct = !r.Repeated || k.refused || !areSameInText(r.Args)
	}
	if direct && !k.cache.always {
		if reply, err = c.sendText(ctx, r); err != driver.ErrSkip {
			k.interpolates = true
			return reply, err
		}
	}
	if reply, err = c.sendStatement(ctx, s, r); err != driver.ErrSkip {
		k.refused = k.refused || k.interpolates && sqlerr.Is(err, sqlerr.NotInCharset)
		return reply, err
	}
	once := *r
	if once.How = Prepared; k.cache.always || k.interpolates {
		once.How = AsDriver
	}
	reply, err = c.Do(ctx, &once)
	k.refused = k.refused && err == nil // otherwise the query itself is wrong
	return reply, err
}

// areSameInText reports whether a server stores the arguments of a prepared statement as it stores
// literals in a query, in columns of every type. It doesn't in these cases, which TestProtocols finds:
// []byte into JSON and into text of another character set, a float64 (rounded as DECIMAL in the text), an
// integer above 1<<63 into a time, invalid UTF-8, and some numbers in a string into BIT or YEAR.
func areSameInText(args []driver.NamedValue) bool {
	for i := range args {
		switch v := args[i].Value.(type) {
		case nil, int64, bool, time.Time:
		case uint64:
			if v > math.MaxInt64 {
				return false
			}
		case string:
			if mayBeOtherNumber(v) || !utf8.ValidString(v) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// mayBeOtherNumber reports whether a string may be a number with a sign, a fraction without an integer, an
// exponent, blanks or many digits.
func mayBeOtherNumber(s string) bool {
	const most = 18
	if s == "" || s[0] > '9' {
		return false
	}
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	rest := strings.TrimLeft(strings.TrimPrefix(s[digits:], "."), "0123456789")
	return digits == 0 || digits > most || strings.HasPrefix(rest, "e") || strings.HasPrefix(rest, "E") || s[len(s)-1] <= ' '
}

// sendStatement executes the cached statement s. If s is nil, it prepares a new one. It returns
// driver.ErrSkip if the server has no capacity for a statement. After an error the statement isn't
// cached any more.
func (c *Conn) sendStatement(ctx context.Context, s *cachedStmt, r *Request) (reply Reply, err error) {
	k := &c.cached
	if s != nil {
		if err := s.CheckArgs(r.Args, r.User); err != nil {
			return Reply{}, err
		}
		if slices.Contains(s.types, anyType) { // otherwise find has compared them all
			s.types.add(s.how, r.Args)
		}
		k.hit()
	} else if s, err = c.prepareCached(ctx, r); err != nil {
		return Reply{}, err
	} else if s == nil {
		return Reply{}, driver.ErrSkip
	}
	if reply, err = s.send(ctx, r); err != nil {
		k.drop(s) // the server may have parts of long arguments
	}
	return reply, err
}

// prepareCached prepares a statement for the cache. It returns nil if there is no capacity for it, or if an
// argument is of an unknown type.
func (c *Conn) prepareCached(ctx context.Context, r *Request) (*cachedStmt, error) {
	k := &c.cached
	types := make(argTypes, len(r.Args))
	if others := types.add(r.How, r.Args); others || !k.admit(r.Text) {
		return nil, nil
	}
	prepared, err := c.prepareFor(ctx, r)
	full := k.cache.limit.Load() <= 0 // the server had no capacity
	if err == nil && full {
		_ = prepared.Close()
	}
	if err != nil || full {
		k.cache.open.Add(-1)
		return nil, k.notPrepared(err)
	}
	k.cache.broken.Store(0)
	prepared.how = r.How
	s := &cachedStmt{Stmt: prepared, query: r.Text, types: types}
	k.all = slices.Insert(k.all, 0, s)
	k.cache.misses.Add(1)
	return s, nil
}

// notPrepared returns the error for a query that was not prepared, nil if the driver can execute it
// directly.
func (k *statements) notPrepared(err error) error {
	switch {
	case k.cache.always && sqlerr.Is(err, sqlerr.NotInProtocol):
		return nil // the server supports direct execution only
	case err == nil || !k.interpolates || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case !isBroken(err):
		k.refused = true
		return nil
	}
	// Perhaps a proxy that doesn't know prepared statements. Nothing was executed, so database/sql
	// may use another connection.
	const most = 2
	if k.cache.broken.Add(1) >= most {
		k.cache.limit.Store(0)
	}
	return driver.ErrBadConn
}

// isBroken reports whether an error of go-sql-driver means that the connection can't be used any more.
func isBroken(err error) bool {
	all := []error{driver.ErrBadConn, mysql.ErrInvalidConn, mysql.ErrMalformPkt, mysql.ErrPktSync, mysql.ErrPktSyncMul}
	return slices.ContainsFunc(all, func(broken error) bool { return errors.Is(err, broken) })
}

// admits reports whether the statement may be executed with args.
func (cached *cachedStmt) admits(args []driver.NamedValue) bool {
	return cached.types.admits(cached.how, args)
}

// find returns a statement of a query that admits args, or nil.
func (k *statements) find(query string, args []driver.NamedValue) *cachedStmt {
	for i, s := range k.all {
		if s.query == query && s.admits(args) {
			if i > 0 {
				copy(k.all[1:i+1], k.all[:i])
				k.all[0] = s
			}
			return s
		}
	}
	return nil
}

// hit counts an execution. It updates the shared counter rarely, since that is slower than the
// other work here.
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

// admit reports whether a statement of a query can be added. On a full connection it closes the
// least recently used statement, or the query's if the query has many types of arguments.
func (k *statements) admit(query string) bool {
	limit := k.cache.limit.Load()
	if limit == unknown {
		k.wanted = true
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

// clear closes all statements.
func (k *statements) clear() {
	for len(k.all) > 0 {
		k.drop(k.all[len(k.all)-1])
	}
}

// follow closes all statements if full was called.
func (k *statements) follow() {
	if clears := k.cache.clears.Load(); clears != k.clears {
		k.clears = clears
		k.clear()
	}
}

// full is called if the server can't hold another statement. It closes all statements and turns the
// cache off. Other connections close theirs before their next cached statement.
func (k *statements) full() {
	k.cache.limit.Store(0)
	k.clears = k.cache.clears.Add(1)
	k.clear()
}

// SetLimit calls Cache.SetLimit of the connection's cache.
func (c *Conn) SetLimit(server string) { c.cached.cache.SetLimit(server) }
