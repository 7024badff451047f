package rule

import "strings"

// names finds a table by the names that statements have for it. Keys are in
// lower case. The zero names has none.
type names struct {
	first map[string]owner   // the first owner of a name
	more  map[string][]owner // further owners, which differ in their schema
}

// owner is a table that a name stands for, in one schema or (schema "") in all.
type owner struct {
	schema string
	table  int32 // index in the rule's tables; none for a table without key
}

// none is the table of an owner that has no key column.
const none int32 = -1

// add gives a name an owner and tells whether it is a new one. When the name has
// another owner already that a statement could mean as well, it gives that one
// and true for clash.
func (n *names) add(schema, name string, table int32) (other owner, clash, isNew bool) {
	o := owner{strings.ToLower(schema), table}
	name = strings.ToLower(name)
	first, taken := n.first[name]
	if !taken {
		if n.first == nil {
			n.first, n.more = map[string]owner{}, map[string][]owner{}
		}
		n.first[name] = o
		return owner{}, false, true
	}
	known := false
	for _, other := range append([]owner{first}, n.more[name]...) {
		if other.table != table && (other.schema == "" || o.schema == "" || other.schema == o.schema) {
			return other, true, false
		}
		known = known || other == o
	}
	if !known {
		n.more[name] = append(n.more[name], o)
	}
	return owner{}, false, !known
}

// find gives the owners of a name in a schema, or in any when schema is empty.
// There is more than one only without a schema.
func (n *names) find(schema, name string) []owner {
	name = strings.ToLower(name)
	first, ok := n.first[name]
	if !ok {
		return nil
	}
	all := append([]owner{first}, n.more[name]...)
	if schema == "" {
		return all
	}
	schema = strings.ToLower(schema)
	for _, o := range all {
		if o.schema == "" || o.schema == schema {
			return []owner{o}
		}
	}
	return nil
}
