package driver

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/rewrite"
)

// Bounds of what a connection keeps. The server holds the statements' trees: a
// longer text is prepared for each execution.
const (
	maxKept      = 16
	maxKeptBytes = 16 << 10
	// maxKeptTypes is for how many lists of arguments' types one text is kept.
	maxKeptTypes = 4
)

// mayKeep reports whether a text's prepared statement may be kept: MySQL fixes the
// type of a user variable when it prepares.
func mayKeep(text string) bool {
	return len(text) <= maxKeptBytes && strings.IndexByte(text, '@') < 0
}

// keptTotal is what the connections of a connector keep together.
type keptTotal struct {
	mode   string
	always bool // the mode is
	// limit is how many they may keep: unasked at first, 0 once the server had no
	// room.
	limit  atomic.Int64
	wanted atomic.Bool // the limit is to be asked
	n      atomic.Int64
	drops  atomic.Uint32 // how many times all were to be closed

	hits, misses, dropped atomic.Int64
}

const (
	unasked = -1
	// maxKeptTotal is 2,048 of 16 to 26 kB: some 50 MB of a server's memory.
	maxKeptTotal = 2048
	// keptShare is the part of the server's limit that one connector takes: others
	// have statements too.
	keptShare = 8
	// keptUntold is for servers that do not tell their limit.
	keptUntold = 256
)

func (t *keptTotal) set(mode string) {
	t.mode, t.always = mode, mode == statementsAlways
	t.limit.Store(unasked)
}

// describe tells what is kept.
func (t *keptTotal) describe() string {
	text := fmt.Sprintf("prepared statements: %s, %d kept", t.mode, t.n.Load())
	if limit := t.limit.Load(); limit != unasked {
		text += fmt.Sprintf(" of %d", limit)
	}
	return text
}

func (t *keptTotal) stats() KeptStats {
	return KeptStats{Mode: t.mode, Open: t.n.Load(), Limit: t.limit.Load(),
		Hits: t.hits.Load(), Misses: t.misses.Load(), Dropped: t.dropped.Load()}
}

// askKeptLimit asks the server how many statements the connector may keep, once,
// before the INSERT after the one for which that was needed first. An INSERT that
// reads what the statement before it returned goes without.
func (s *session) askKeptLimit(ctx context.Context) error {
	t := s.base.kept.total
	if !s.base.kept.asks() || rewrite.ReadsCounts(s.forInsert, s.mode) {
		return nil
	}
	row, err := s.queryRow(ctx, "SELECT @@max_prepared_stmt_count LIMIT 1")
	if err != nil && isFatal(ctx, err) {
		return err
	}
	limit := int64(keptUntold)
	if err == nil && len(row) == 1 {
		limit = keptLimit(text(row[0]), limit)
	}
	t.limit.CompareAndSwap(unasked, limit)
	t.wanted.Store(false)
	return nil
}

// keptLimit is what a connector may keep of a server's limit; TiDB's is -1 where
// there is none.
func keptLimit(server string, untold int64) int64 {
	n, err := strconv.ParseInt(server, 10, 64)
	switch {
	case err != nil:
		return untold
	case n < 0:
		return maxKeptTotal
	}
	return min(maxKeptTotal, n/keptShare)
}

// keptStatements are the prepared statements that a connection keeps, the one used
// last first.
type keptStatements struct {
	total *keptTotal // the connector's; nil: none are kept
	all   []*keptStatement
	drops uint32 // total.drops, as far as it was followed
	hits  int64  // executions by them that total.hits does not have yet
}

// hit counts an execution. An addition that others see takes longer than all else that
// is counted.
func (k *keptStatements) hit() {
	const most = 16
	if k.hits++; k.hits >= most {
		k.tellHits()
	}
}

func (k *keptStatements) tellHits() {
	k.total.hits.Add(k.hits)
	k.hits = 0
}

type keptStatement struct {
	baseStmt
	text string
	// types are those of the arguments: MySQL decides by them how it reads the text,
	// with its first execution. JSON_ARRAY(?) is one that depends on them; that NULL is
	// one of them matters to JSON_ARRAY(COALESCE(?, ?)).
	types []argType
}

type argType uint8

const (
	argOther argType = iota // one that says nothing of what is sent
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
	case float64:
		return argFloat
	case float32:
		return argFloat
	case bool:
		return argBool
	case string:
		return argString
	case []byte:
		if v == nil {
			return argNull
		}
		return argBytes
	case json.RawMessage:
		return argString
	case time.Time:
		return argTime
	}
	return argOther
}

// takes reports whether arguments are of the types of the statement's.
func (st *keptStatement) takes(args []driver.NamedValue) bool {
	if len(st.types) != len(args) {
		return false
	}
	for i := range args {
		if typeOf(args[i].Value) != st.types[i] {
			return false
		}
	}
	return true
}

// find returns the statement of a text with such arguments, nil when there is
// none.
func (k *keptStatements) find(text string, args []driver.NamedValue) *keptStatement {
	for i, st := range k.all {
		if st.text == text && st.takes(args) {
			if i > 0 {
				copy(k.all[1:i+1], k.all[:i])
				k.all[0] = st
			}
			return st
		}
	}
	return nil
}

// newTypes returns the types of arguments, nil when a statement with them is not
// to be kept.
func newTypes(args []driver.NamedValue) []argType {
	types := make([]argType, len(args))
	for i := range args {
		if types[i] = typeOf(args[i].Value); types[i] == argOther {
			return nil
		}
	}
	return types
}

// admit makes room for one more statement of a text, and reports whether there is
// any. A connection that keeps as many as it may closes its oldest, or the text's
// oldest when that is kept for many types.
func (k *keptStatements) admit(text string) bool {
	limit := k.total.limit.Load()
	if limit == unasked {
		k.total.wanted.Store(true)
	}
	if limit <= 0 {
		return false
	}
	same, oldest := 0, 0
	for i, st := range k.all {
		if st.text == text {
			same, oldest = same+1, i
		}
	}
	switch {
	case same >= maxKeptTypes:
		k.drop(k.all[oldest])
	case len(k.all) >= maxKept:
		k.drop(k.all[len(k.all)-1])
	}
	for k.total.n.Add(1) > limit {
		k.total.n.Add(-1)
		if len(k.all) == 0 {
			return false
		}
		k.drop(k.all[len(k.all)-1])
	}
	return true
}

// drop closes a statement.
func (k *keptStatements) drop(st *keptStatement) {
	if i := slices.Index(k.all, st); i >= 0 {
		k.all = slices.Delete(k.all, i, i+1)
	}
	_ = st.Close() // only a broken connection fails
	k.tellHits()
	k.total.n.Add(-1)
	k.total.dropped.Add(1)
}

// clear closes all.
func (k *keptStatements) clear() {
	for len(k.all) > 0 {
		k.drop(k.all[len(k.all)-1])
	}
}

// follow closes all when the server had no room.
func (k *keptStatements) follow() {
	if drops := k.total.drops.Load(); drops != k.drops {
		k.drops = drops
		k.clear()
	}
}

// noRoom is called when the server has no room for another prepared statement: all
// are closed, the other connections' before what these do next, and none is kept
// from then on.
func (k *keptStatements) noRoom() {
	k.total.limit.Store(0)
	k.total.wanted.Store(false)
	k.drops = k.total.drops.Add(1)
	k.clear()
}

// asks reports whether the limit is to be asked.
func (k *keptStatements) asks() bool { return k.total != nil && k.total.wanted.Load() }

// forget closes the statements when a text of a class may change how the server
// reads texts. Tables may change: the server looks at them with each execution.
func (k *keptStatements) forget(query string, class rewrite.Class) {
	if len(k.all) == 0 {
		return
	}
	changes := rewrite.ChangesOf(query, class)
	changes.Columns = false
	if changes == (rewrite.Changes{}) {
		return
	}
	k.clear()
}

// way is a way to execute: for a result or for rows.
type way[T any] struct {
	text     func(*baseConn, context.Context, string, []driver.NamedValue) (T, error)
	prepared func(*baseStmt, context.Context, []driver.NamedValue) (T, error)
	// once is text for a statement that is prepared for one execution.
	once func(*baseConn, context.Context, string, []driver.NamedValue, int) (T, error)
}

var (
	execWay  = way[driver.Result]{(*baseConn).execContext, (*baseStmt).execContext, (*baseConn).execOnce}
	queryWay = way[driver.Rows]{(*baseConn).queryContext, (*baseStmt).queryContext, (*baseConn).queryOnce}
)

// execKept is execOrPrepare by a statement that is kept for the next execution.
// The text is one for which mayKeep is true.
func (b *baseConn) execKept(ctx context.Context, query string, args []driver.NamedValue, added int) (driver.Result, error) {
	return sendKept(ctx, b, query, args, added, execWay)
}

// queryKept is execKept for rows.
func (b *baseConn) queryKept(ctx context.Context, query string, args []driver.NamedValue, added int) (driver.Rows, error) {
	return sendKept(ctx, b, query, args, added, queryWay)
}

func sendKept[T any](ctx context.Context, b *baseConn, query string, args []driver.NamedValue, added int, by way[T]) (none T, err error) {
	k := &b.kept
	k.follow()
	if st := k.find(query, args); st != nil {
		if err := st.checkArgs(b, args, added); err != nil {
			return none, err
		}
		k.hit()
		res, err := by.prepared(&st.baseStmt, ctx, args)
		if err != nil {
			k.drop(st)
		}
		if !isUnprepared(err) {
			return res, err
		}
	} else if !k.total.always {
		if res, err := by.text(b, ctx, query, args); err != driver.ErrSkip {
			return res, err
		}
	}
	st, err := b.prepareKept(ctx, query, args, added)
	switch {
	case err != nil:
		return none, err
	case st == nil && k.total.always:
		if res, err := by.text(b, ctx, query, args); err != driver.ErrSkip {
			return res, err
		}
		fallthrough
	case st == nil:
		return by.once(b, ctx, query, args, added)
	}
	res, err := by.prepared(&st.baseStmt, ctx, args)
	if err != nil {
		k.drop(st) // parts of long arguments may be at the server
	}
	return res, err
}

// prepareKept prepares a statement that is kept, nil when there is no room for it.
func (b *baseConn) prepareKept(ctx context.Context, query string, args []driver.NamedValue, added int) (*keptStatement, error) {
	k := &b.kept
	types := newTypes(args)
	if types == nil || !k.admit(query) {
		return nil, nil
	}
	const notInProtocol = 1295
	prepared, err := b.prepareFor(ctx, query, args, added)
	if err == nil && k.total.limit.Load() <= 0 { // the server had no room, and has for this one now
		_ = prepared.Close()
	}
	if err != nil || k.total.limit.Load() <= 0 {
		k.total.n.Add(-1)
		if k.total.always && isServerError(err, notInProtocol) {
			return nil, nil // it cannot be prepared, and the base need not
		}
		return nil, err
	}
	st := &keptStatement{baseStmt: *prepared, text: query, types: types}
	k.all = slices.Insert(k.all, 0, st)
	k.total.misses.Add(1)
	return st, nil
}

// isUnprepared reports whether the server executed nothing because it has the
// prepared statement no longer, or cannot make it fit what has changed.
func isUnprepared(err error) bool {
	const unknownStatement, needReprepare = 1243, 1615
	return err != nil && isServerError(err, unknownStatement, needReprepare)
}
