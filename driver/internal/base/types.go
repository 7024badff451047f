package base

import (
	"database/sql/driver"
	"reflect"
)

// Reuse says for which arguments a server interprets a prepared statement as it did for those of
// earlier executions.
//
// MySQL derives the type of a placeholder from an argument and keeps it (since 8.0.22). A string for
// a placeholder that had an integer is then converted to a number, whatever the column's type is.
type Reuse uint8

const (
	// SameTypes: arguments of the same types, where NULL is a type. For example, the result of
	// JSON_ARRAY(COALESCE(?, ?)) depends on which argument was NULL at first.
	SameTypes Reuse = iota
	// SameTypesOrNull: arguments of the same types. NULL has any type, and fixes none.
	SameTypesOrNull
	// AnyTypes: all arguments. MariaDB derives the types for each execution.
	AnyTypes
)

// null is the type of NULL, where NULL is a type.
type null struct{}

// typeOf returns an argument's type, nil if it has any type.
func (r Reuse) typeOf(v driver.Value) reflect.Type {
	isNull := v == nil
	if b, ok := v.([]byte); ok {
		isNull = b == nil
	}
	switch {
	case r == AnyTypes, isNull && r == SameTypesOrNull:
		return nil
	case isNull:
		return reflect.TypeFor[null]()
	}
	return reflect.TypeOf(v)
}

// argTypes are the types of arguments that a statement was executed with, nil for those that had
// none yet.
type argTypes []reflect.Type

// admits reports whether the statement may be executed with args.
func (t argTypes) admits(r Reuse, args []driver.NamedValue) bool {
	if r == AnyTypes {
		return true
	}
	if len(t) != len(args) {
		return false
	}
	for i := range args {
		if typ := r.typeOf(args[i].Value); typ != t[i] && typ != nil && t[i] != nil {
			return false
		}
	}
	return true
}

// add records an execution. It reports whether an argument has another type than before.
func (t argTypes) add(r Reuse, args []driver.NamedValue) (changed bool) {
	if r == AnyTypes {
		return false
	}
	for i := range t {
		switch typ := r.typeOf(args[i].Value); {
		case typ == t[i], typ == nil:
		case t[i] == nil:
			t[i] = typ
		default:
			changed = true
		}
	}
	return changed
}
