package base

import (
	"database/sql/driver"
	"encoding/json"
	"time"
)

// argType is the type of an argument that go-sql-driver accepts.
type argType uint8

const (
	anyType argType = iota // not known yet, or any
	nullType
	intType
	uintType
	floatType
	boolType
	textType
	bytesType
	jsonType
	timeType
	otherType // of another driver; its statements aren't cached
)

// typeOf returns an argument's type.
func (h How) typeOf(v driver.Value) argType {
	switch v := v.(type) {
	case int64:
		return intType
	case string:
		return textType
	case time.Time:
		return timeType
	case float64:
		return floatType
	case bool:
		return boolType
	case uint64:
		return uintType
	case json.RawMessage:
		if v != nil {
			return jsonType
		}
	case nil:
	case []byte:
		if v != nil {
			return bytesType
		}
	default:
		return otherType
	}
	if h == SameTypesOrNull {
		return anyType
	}
	return nullType
}

// argTypes are the types of arguments that a statement was executed with.
type argTypes []argType

// admits reports whether the statement may be executed with args.
func (t argTypes) admits(h How, args []driver.NamedValue) bool {
	if h == AnyTypes {
		return true
	}
	if len(t) != len(args) {
		return false
	}
	for i := range args {
		if typ := h.typeOf(args[i].Value); typ != t[i] && typ != anyType && t[i] != anyType || typ == otherType {
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
		case typ == otherType:
			changed = true
		case typ == t[i], typ == anyType:
		case t[i] == anyType:
			t[i] = typ
		default:
			changed = true
		}
	}
	return changed
}
