package driver

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// recentQueries are the last queries that a connection sent, since programs repeat them. They are keyed
// by their text. What was read in it depends on nothing else. Its plan is used while the rule, sql_mode
// and character set are those of its [planKey]. A query leaves when others take its place. The zero value
// is empty.
type recentQueries struct {
	all  [8]recentQuery
	last uint8 // the query that was found last, which is often the next one
	next uint8
	// commented are hashes of the last queries with comments around an INSERT that needs keys.
	commented     [32]uint64
	nextCommented uint8
}

type recentQuery struct {
	sqltoken.Query
	plan *plan // nil for a query that need not be parsed, under any rule
	// commented: comments may surround the query, which has a plan.
	commented bool
	uses      uint8 // the number of executions so far, up to 3
}

// isFree reports whether a query neither reads nor changes the session, under any rule.
func isFree(q *sqltoken.Query) bool {
	return q.Class == sqltoken.ClassPass && !q.ReadsLastInsertID()
}

// use counts an execution, and reports whether it is at least the third.
func (q *recentQuery) use() (repeated bool) {
	const often = 3
	if q.uses < often {
		q.uses++
	}
	return q.uses == often
}

// maxRecent is the maximum length of a query in recentQueries, in bytes.
const maxRecent = 16 << 10

// find returns a query, nil if it isn't a recent one. Its plan may be outdated.
func (recent *recentQueries) find(text string) *recentQuery {
	if q := &recent.all[recent.last%uint8(len(recent.all))]; q.Text == text && len(text) > 0 {
		return q
	}
	for i := range recent.all {
		if q := &recent.all[i]; q.Text == text && len(text) > 0 {
			recent.last = uint8(i)
			return q
		}
	}
	return nil
}

// findCommented returns the statement of a query with comments around it, in which tools put trace IDs.
func (recent *recentQueries) findCommented(query string) (*recentQuery, comments) {
	start, before := sqltoken.CommentsEnd(query)
	for i := range recent.all {
		q := &recent.all[i]
		if !q.commented || !strings.HasPrefix(query[start:], q.Text) {
			continue
		}
		behind := query[start+len(q.Text):]
		if end, after := sqltoken.CommentsEnd(behind); end == len(behind) && (before || after) {
			return q, comments{query[:start], behind}
		}
	}
	return nil, comments{}
}

// add adds a query, or replaces its plan. The result is valid until other queries are added.
func (recent *recentQueries) add(of sqltoken.Query, p *plan) *sqltoken.Query {
	if len(of.Text) == 0 || len(of.Text) > maxRecent {
		long := of
		return &long
	}
	q := recent.find(of.Text)
	if q == nil {
		q = &recent.all[recent.next%uint8(len(recent.all))]
		*q = recentQuery{Query: of, uses: 1}
		recent.next++
	}
	q.plan, q.commented = p, p != nil && p.key.commented
	return &q.Query
}

// isRepeated reports whether a query was sent before with the same comments. It then has its own plan and
// prepared statement, as any other query.
func (recent *recentQueries) isRepeated(query string) bool {
	hash := maphash.String(planSeed, query)
	if slices.Contains(recent.commented[:], hash) {
		return true
	}
	recent.commented[recent.nextCommented%uint8(len(recent.commented))] = hash
	recent.nextCommented++
	return false
}

// comments surround a statement, and aren't in its plan.
type comments struct{ before, after string }

// around adds the comments to a form of the statement.
func (both comments) around(text string) string {
	if both == (comments{}) {
		return text
	}
	return both.before + text + both.after
}
