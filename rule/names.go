package rule

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/shardkey/shardkey/spi"
)

// names maps the table names that statements use to tables. Map keys are in lower case. The zero
// value is empty and read-only.
type names struct {
	first    map[string]owner   // first owner of each name
	more     map[string][]owner // further owners, which have other schemas
	patterns []pattern          // patterns of different tables don't overlap
	shapes   map[string]owner   // shapes of the actual tables' names; see Live.Unlisted
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

// newNames returns empty names with space for this number of tables.
func newNames(tables int) names {
	return names{first: make(map[string]owner, tables), more: map[string][]owner{}, shapes: map[string]owner{}}
}

// add adds an owner of a name, and reports whether it is new. If a statement that uses the name
// could also mean another owner, add returns that owner, and clash is true.
func (n *names) add(schema, name string, table int32) (other owner, clash, isNew bool) {
	o := owner{strings.ToLower(schema), table}
	n.beyondASCII = n.beyondASCII || isBeyondASCII(schema) || isBeyondASCII(name)
	name = strings.ToLower(name)
	first, taken := n.first[name]
	if !taken {
		n.first[name] = o
		return owner{}, false, true
	}
	known := false
	for _, other := range append([]owner{first}, n.more[name]...) {
		if other.table != table && other.schemaMeets(o) {
			return other, true, false
		}
		known = known || other == o
	}
	if !known {
		n.more[name] = append(n.more[name], o)
	}
	return owner{}, false, !known
}

func isBeyondASCII(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

// one returns the owner of a name in a schema. If the schema is empty, it returns any owner.
func (n *names) one(schema, name string) (owner, bool) {
	name = strings.ToLower(name)
	first, ok := n.first[name]
	if ok && (schema == "" || first.in(schema)) {
		return first, true
	}
	for _, o := range n.more[name] {
		if o.in(schema) {
			return o, true
		}
	}
	for _, p := range n.patterns {
		if (schema == "" || p.in(schema)) && p.match(name) {
			return p.owner, true
		}
	}
	return owner{}, false
}

// sibling returns the table that an unlisted name seems to belong to. Either the name is the
// table's logical name followed by numbers, or it differs from an actual table's name only in its
// numbers.
func (n *names) sibling(schema, name string) (owner, bool) {
	name = strings.ToLower(name)
	if _, listed := n.first[name]; listed {
		return owner{}, false // another schema, or a table without a key
	}
	for i := len(name) - 1; i > 0; i-- {
		o, ok := n.first[name[:i]]
		if ok && o.table != none && (schema == "" || o.in(schema)) && trailingNumber.MatchString(name[i:]) {
			return o, true
		}
	}
	o, ok := n.shapes[string(shapeOf(nil, name))]
	return o, ok && (schema == "" || o.in(schema))
}

// matched returns the alphabetically first name that the pattern matches and that belongs to
// another table.
func (n *names) matched(p pattern) (other owner, name string, ok bool) {
	for candidate := range n.first {
		if ok && candidate > name || !p.match(candidate) {
			continue
		}
		for _, o := range n.all(candidate) {
			if o.table != p.table && p.schemaMeets(o) {
				other, name, ok = o, candidate, true
			}
		}
	}
	return other, name, ok
}

// addShape records the shape of an actual table's name.
func (n *names) addShape(schema, name string, table int32) {
	var room [64]byte
	shape := shapeOf(room[:0], name)
	if _, taken := n.shapes[string(shape)]; taken || len(shape) == 0 {
		return
	}
	n.shapes[string(shape)] = owner{strings.ToLower(schema), table}
}

// all returns every owner of a name, which must be in lower case.
func (n *names) all(name string) []owner {
	return append([]owner{n.first[name]}, n.more[name]...)
}

// schemaMeets reports whether a statement could mean either owner, judged by their schemas.
func (o owner) schemaMeets(p owner) bool {
	return o.schema == "" || p.schema == "" || o.schema == p.schema
}

func (o owner) in(schema string) bool {
	return o.schema == "" || o.schema == strings.ToLower(schema)
}

// ambiguous is the generator of a name that could mean several tables. It only returns errors.
type ambiguous string

func (a ambiguous) GenerateKeys(context.Context, spi.Column, int) ([]any, error) {
	return nil, fmt.Errorf("shardkey: table %q is in several schemas of the rule; write schema.%s", string(a), string(a))
}
