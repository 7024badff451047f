package place

import "fmt"

// NotUnderstoodError is the error for an algorithm that has an unknown type, or properties that are
// wrong or unknown.
type NotUnderstoodError struct {
	Prop   string // the property at fault; empty if it is the type
	Reason string // what is wrong; it continues an error message
	Err    error  // the cause, an [*expr.Error], or nil
}

func (e *NotUnderstoodError) Error() string { return e.Reason }

func (e *NotUnderstoodError) Unwrap() error { return e.Err }

// ValueError is the error for a value for which the result of an algorithm isn't known. The row may
// belong to any of the names.
type ValueError struct {
	Type   string // type of the algorithm
	Column string
	Value  string // the value, shortened
	Reason string
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("cannot apply %s to the value of %s: %s", e.Type, e.Column, e.Reason)
}

// NoTargetError is the error for values that belong to none of the strategy's names.
type NoTargetError struct {
	Type   string // type of the algorithm
	Column string // the column whose value has no table; empty if Name is set
	Reason string // why the value has no table
	// Name is the computed name that doesn't exist, or its end. It may contain the value, so Error
	// shows it only for algorithms that number the names.
	Name string
}

func (e *NoTargetError) Error() string {
	if e.Column != "" {
		return fmt.Sprintf("%s has no table for the value of %s: %s", e.Type, e.Column, e.Reason)
	}
	if e.Type == "INLINE" || e.Type == "INTERVAL" {
		return e.Type + " selects a name that does not exist"
	}
	return fmt.Sprintf("%s selects %q, which does not exist", e.Type, e.Name)
}
