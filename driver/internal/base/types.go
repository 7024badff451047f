package base

import (
	"database/sql/driver"
	"reflect"
)

// null is the type of NULL, where NULL is a type.
type null struct{}

// typeOf returns an argument's type, nil if it has any type.
func (h How) typeOf(v driver.Value) reflect.Type {
	isNull := v == nil
	if b, ok := v.([]byte); ok {
		isNull = b == nil
	}
	switch {
	case h == AnyTypes, isNull && h == SameTypesOrNull:
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
func (t argTypes) admits(h How, args []driver.NamedValue) bool {
	if h == AnyTypes {
		return true
	}
	if len(t) != len(args) {
		return false
	}
	for i := range args {
		if typ := h.typeOf(args[i].Value); typ != t[i] && typ != nil && t[i] != nil {
			return false
		}
	}
	return true
}

// add records an execution. It reports whether an argument has another type than before.
func (t argTypes) add(h How, args []driver.NamedValue) (changed bool) {
	if h == AnyTypes {
		return false
	}
	for i := range t {
		switch typ := h.typeOf(args[i].Value); {
		case typ == t[i], typ == nil:
		case t[i] == nil:
			t[i] = typ
		default:
			changed = true
		}
	}
	return changed
}
