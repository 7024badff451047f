package rule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/shardkey/shardkey/rule/internal/expr"
	"github.com/shardkey/shardkey/rule/internal/sharding"
	"github.com/shardkey/shardkey/spi"
)

// tableIndex maps the table names that statements use to tables. Map keys are in lower case. The zero
// value is empty and read-only.
type tableIndex struct {
	tables    map[[2]string]int32 // tables by schema and name; an empty schema means every schema
	inSchemas map[string][]owner  // the owners of each name that have a schema
	patterns  patterns            // patterns of different tables don't overlap
	shapes    map[string]owner    // shapes of the actual tables' names; see Live.Unlisted
	families  map[int32]bool      // the tables with several actual tables, or a pattern
	// beyondASCII reports whether a name or schema has characters beyond ASCII.
	beyondASCII bool
}

// owner is the table that a name refers to. An empty schema means every schema.
type owner struct {
	schema string
	table  int32 // index in the rule's tables, or none
}

// none is the index of a table without a key column.
const none int32 = -1

// add adds an owner of a name, and reports whether it is new. If a statement that uses the name
// could also mean another owner, add returns that owner, and clash is true.
func (n *tableIndex) add(schema, name string, table int32) (other owner, clash, isNew bool) {
	n.beyondASCII = n.beyondASCII || isBeyondASCII(schema) || isBeyondASCII(name)
	schema, name = strings.ToLower(schema), strings.ToLower(name)
	for _, in := range slices.Compact([]string{schema, ""}) {
		switch known, ok := n.tables[[2]string{in, name}]; {
		case ok && known != table:
			return owner{in, known}, true, false
		case ok && in == schema:
			return owner{}, false, false
		}
	}
	if schema != "" {
		n.inSchemas[name] = append(n.inSchemas[name], owner{schema, table})
	} else if i := slices.IndexFunc(n.inSchemas[name], func(o owner) bool { return o.table != table }); i >= 0 {
		return n.inSchemas[name][i], true, false
	}
	n.tables[[2]string{schema, name}] = table
	return owner{}, false, true
}

func isBeyondASCII(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

// one returns the owner of a name in a schema. If the schema is empty, it returns any owner.
func (n *tableIndex) one(schema, name string) (owner, bool) {
	schema, name = strings.ToLower(schema), strings.ToLower(name)
	if table, ok := n.tables[[2]string{schema, name}]; ok {
		return owner{schema, table}, true
	}
	if all := n.all(name); len(all) > 0 && (schema == "" || all[0].schema == "") {
		return all[0], true
	}
	for p := range n.patterns.begin(name) {
		if (schema == "" || p.in(schema)) && p.match(name) {
			return p.owner, true
		}
	}
	return owner{}, false
}

// sibling returns the table that an unlisted name seems to belong to. Either the name is the
// table's logical name followed by numbers, or it differs from an actual table's name only in its
// numbers. If the table has only one actual table, the numbers have to follow _ or -, since user2 and
// user3 are rarely shards.
func (n *tableIndex) sibling(schema, name string) (found owner, ok bool) {
	name = strings.ToLower(name)
	if len(n.all(name)) > 0 {
		return owner{}, false // another schema, or a table without a key
	}
	for i := len(name) - 1; i > 0; i-- {
		all := n.all(name[:i])
		switch {
		case len(all) == 0 || all[0].table == none || schema != "" && !all[0].in(schema) || !trailingNumber.MatchString(name[i:]):
		case n.families[all[0].table]:
			return all[0], true
		case !ok && !isDigit(name[i]):
			found, ok = all[0], true
		}
	}
	shape := string(shapeOf(nil, name))
	o, known := n.shapes[shape]
	switch {
	case !known || schema != "" && !o.in(schema):
	case n.families[o.table], !ok && (strings.Contains(shape, "_#") || strings.Contains(shape, "-#")):
		return o, true
	}
	return found, ok
}

// matched returns a pattern of a table with a key that matches the name of another table: the first
// such pattern, and the alphabetically first name. It returns nil if there is none.
func (n *tableIndex) matched() (p *pattern, other owner, name string) {
	for key, table := range n.tables {
		o, candidate := owner{key[0], table}, key[1]
		for q := range n.patterns.begin(candidate) {
			if q.table == none || q.table == table || !q.schemaMeets(o) || !q.match(candidate) {
				continue
			}
			if p == nil || cmp.Or(q.at-p.at, cmp.Compare(candidate, name), cmp.Compare(o.schema, other.schema)) < 0 {
				p, other, name = q, o, candidate
			}
		}
	}
	return p, other, name
}

// patterns are the patterns of a rule, with an index of their prefixes.
type patterns struct {
	all      []*pattern
	byPrefix map[string][]*pattern
	lengths  []int // the lengths of the prefixes, sorted
	known    map[patternKey]bool
}

type patternKey struct {
	owner
	text string
}

func (ps *patterns) add(p *pattern) bool {
	if ps.byPrefix == nil {
		ps.byPrefix, ps.known = map[string][]*pattern{}, map[patternKey]bool{}
	}
	key := patternKey{p.owner, p.text}
	if ps.known[key] {
		return false // in another data source
	}
	ps.known[key], p.at = true, len(ps.all)
	ps.all = append(ps.all, p)
	ps.byPrefix[p.prefix] = append(ps.byPrefix[p.prefix], p)
	if i, found := slices.BinarySearch(ps.lengths, len(p.prefix)); !found {
		ps.lengths = slices.Insert(ps.lengths, i, len(p.prefix))
	}
	return true
}

// begin returns an iterator over the patterns whose prefix a name begins with.
func (ps *patterns) begin(name string) iter.Seq[*pattern] {
	return func(yield func(*pattern) bool) {
		for _, n := range ps.lengths {
			if n > len(name) {
				return
			}
			for _, p := range ps.byPrefix[name[:n]] {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// addShape records the shape of an actual table's name.
func (n *tableIndex) addShape(schema, name string, table int32) {
	var room [64]byte
	shape := shapeOf(room[:0], name)
	if o, taken := n.shapes[string(shape)]; taken && n.families[o.table] || len(shape) == 0 {
		return
	}
	n.shapes[string(shape)] = owner{strings.ToLower(schema), table}
}

// all returns every owner of a name, which must be in lower case.
func (n *tableIndex) all(name string) []owner {
	owners := n.inSchemas[name]
	if table, ok := n.tables[[2]string{"", name}]; ok {
		return append([]owner{{table: table}}, owners...)
	}
	return owners
}

// schemaMeets reports whether a statement could mean either owner, judged by their schemas.
func (o owner) schemaMeets(p owner) bool {
	return o.schema == "" || p.schema == "" || o.schema == p.schema
}

func (o owner) in(schema string) bool {
	return o.schema == "" || o.schema == strings.ToLower(schema)
}

// ambiguousName is the generator of a name that could mean several tables. It only returns errors.
type ambiguousName string

func (an ambiguousName) GenerateKeys(context.Context, spi.Column, int) ([]any, error) {
	return nil, fmt.Errorf("shardkey: table %q is in several schemas of the rule; write schema.%s", string(an), string(an))
}

// pattern is a data node for tables that may be created at run time. In the node, ${*} matches any
// number. ${yyyyMM} and similar patterns match a date, in the format of the suffix pattern of
// ShardingSphere's INTERVAL algorithm.
type pattern struct {
	owner
	at     int            // index in patterns.all
	text   string         // as written, for example t_order_${*}
	atoms  string         // the names in lower case, with oneDigit and manyDigits
	prefix string         // common prefix of all names
	expr   *regexp.Regexp // matches names in lower case
}

// Atoms of a pattern that stand for digits. Any other atom is a character of the name.
const (
	oneDigit   = "\x01"
	manyDigits = "\x02" // one or more
)

// wildMark encloses a wildcard in the name of a node.
const wildMark = "\x00"

// dateDigits are regular expressions for the parts of a date in a name.
var dateDigits = strings.NewReplacer(
	"yyyy", `\d{4}`, "yy", `\d{2}`, "MM", `(?:0[1-9]|1[0-2])`, "dd", `(?:0[1-9]|[12]\d|3[01])`,
	"HH", `(?:[01]\d|2[0-3])`, "mm", `[0-5]\d`, "ss", `[0-5]\d`,
)

var dateLetter = regexp.MustCompile(`[A-Za-z]`)

// dateExpr translates a date pattern to a regular expression.
func dateExpr(letters string) (expr string, ok bool) {
	_, ok = sharding.DateLayout(letters)
	return dateDigits.Replace(letters), ok && letters != ""
}

func isPattern(name string) bool { return strings.Contains(name, wildMark) }

// shown returns a name with its wildcards as the rule spells them.
func shown(name string) string {
	if !isPattern(name) {
		return name
	}
	var b strings.Builder
	for i, part := range strings.Split(name, wildMark) {
		if i%2 == 1 {
			part = "${" + part + "}"
		}
		b.WriteString(part)
	}
	return b.String()
}

func newPattern(n node, table int32) *pattern {
	p := &pattern{owner: owner{strings.ToLower(n.schema), table}, text: shown(n.table)}
	expr := "^"
	for i, part := range strings.Split(n.table, wildMark) {
		switch date, isDate := dateExpr(part); {
		case i%2 == 0:
			part = strings.ToLower(part)
			expr += regexp.QuoteMeta(part)
			p.atoms += part
		case isDate:
			expr += date
			p.atoms += dateLetter.ReplaceAllString(part, oneDigit)
		default:
			expr += `\d+`
			p.atoms += manyDigits
		}
	}
	p.prefix, _, _ = strings.Cut(strings.ToLower(n.table), wildMark)
	p.expr = regexp.MustCompile(expr + "$")
	return p
}

// example returns a name that has the form of the pattern's names. Dates in it may be invalid.
func (pt *pattern) example() string {
	return strings.NewReplacer(oneDigit, "0", manyDigits, "0").Replace(pt.atoms)
}

// match reports whether the pattern matches a name in lower case.
func (pt *pattern) match(name string) bool {
	return strings.HasPrefix(name, pt.prefix) && pt.expr.MatchString(name)
}

// meet reports whether two atoms could be the same character.
func meet(a, b byte) bool {
	if a > b {
		a, b = b, a
	}
	return a == b || a <= manyDigits[0] && (b <= manyDigits[0] || isDigit(b))
}

// overlaps reports whether some name could match both patterns.
func (pt *pattern) overlaps(q *pattern) bool {
	seen := map[[2]int]bool{}
	var from func(i, j int) bool
	from = func(i, j int) bool {
		if i == len(pt.atoms) || j == len(q.atoms) {
			return i == len(pt.atoms) && j == len(q.atoms)
		}
		if seen[[2]int{i, j}] || !meet(pt.atoms[i], q.atoms[j]) {
			return false
		}
		seen[[2]int{i, j}] = true
		// Both patterns have read a character. Each continues with its next atom, or stays at an
		// atom that may repeat.
		return from(i+1, j+1) ||
			pt.atoms[i] == manyDigits[0] && from(i, j+1) ||
			q.atoms[j] == manyDigits[0] && from(i+1, j)
	}
	return pt.schemaMeets(q.owner) && from(0, 0)
}

// trailingNumber matches the part of an actual table's name that follows the logical name: numbers
// and dates.
var trailingNumber = regexp.MustCompile(`^(?:[_-]?\d+)+$`)

// shapeOf appends the name in lower case to an empty shape, with "#" in place of each number. It
// appends nothing if the name has no number.
func shapeOf(shape []byte, name string) []byte {
	found := false
	for _, c := range []byte(strings.ToLower(name)) {
		if isDigit(c) {
			if c, found = '#', true; len(shape) > 0 && shape[len(shape)-1] == '#' {
				continue
			}
		}
		shape = append(shape, c)
	}
	if !found {
		return shape[:0]
	}
	return shape
}

// intervalNodes calls yield for each node of ShardingSphere's row expression <INTERVAL>. For
// example, P=t_order_;SP=yyyy_MMdd;DIA=1;DIU=Days;DL=2023_1202;DU=2023_1204 stands for
// t_order_2023_1202, t_order_2023_1203 and t_order_2023_1204.
func intervalNodes(text string, yield func(node) error) error {
	props := map[string]string{"DIA": "1", "DIU": "DAYS"}
	for _, item := range strings.Split(text, ";") {
		key, value, ok := strings.Cut(strings.TrimSpace(item), "=")
		if !ok && item != "" || ok && !slices.Contains([]string{"P", "SP", "DIA", "DIU", "DL", "DU", "C"}, key) {
			return fmt.Errorf("<INTERVAL>: expected P=, SP=, DIA=, DIU=, DL=, DU= or C=, found %q", expr.Clip(item))
		}
		props[key] = value
	}
	layout, ok := sharding.DateLayout(props["SP"])
	if !ok || layout == "" {
		return fmt.Errorf("<INTERVAL>: SP: expected a pattern of yyyy, yy, MM, dd, HH, mm, ss, - and _, found %q",
			expr.Clip(props["SP"]))
	}
	lower, errLower := time.Parse(layout, props["DL"])
	upper, errUpper := time.Parse(layout, props["DU"])
	amount, errAmount := strconv.Atoi(props["DIA"])
	next := sharding.Step(props["DIU"])
	switch {
	case errors.Join(errLower, errUpper) != nil:
		return fmt.Errorf("<INTERVAL>: expected DL=%s and DU=%s to be dates in the format SP=%s", expr.Clip(props["DL"]), expr.Clip(props["DU"]),
			props["SP"])
	case errAmount != nil || amount < 1 || amount > 1_000_000:
		return fmt.Errorf("<INTERVAL>: DIA: expected an integer in 1..1000000, found %q", expr.Clip(props["DIA"]))
	case next == nil:
		return fmt.Errorf("<INTERVAL>: DIU: expected YEARS, MONTHS, WEEKS, DAYS, HOURS, MINUTES or SECONDS, found %q",
			expr.Clip(props["DIU"]))
	}
	nodes := 0
	for at := lower; !at.After(upper); at = next(at, amount) {
		if nodes++; nodes > maxNodes {
			return errTooManyNodes
		}
		n, err := parseNode(props["P"] + at.Format(layout))
		if err == nil {
			err = yield(n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
