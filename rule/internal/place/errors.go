package place

import "fmt"

// NotUnderstoodError is the error for an algorithm of another type, or with properties that are
// wrong or not understood.
type NotUnderstoodError struct {
	Prop   string // the property at fault; empty when it is the type
	Reason string // what is wrong, after the word "it" or the property's name
	Err    error  // the cause, an [*expr.Error]; may be nil
}

func (e *NotUnderstoodError) Error() string { return e.Reason }

func (e *NotUnderstoodError) Unwrap() error { return e.Err }

// ValueError is the error for a value for which an algorithm's result is not known. The row may
// belong to any name.
type ValueError struct {
	Type   string // of the algorithm
	Column string
	Value  string // its text, shortened
	Reason string
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("%s has no place for the value of %s: %s", e.Type, e.Column, e.Reason)
}

// NoTargetError is the error for values that belong to none of the names that the
// strategy has.
type NoTargetError struct {
	Type   string // of the algorithm
	Column string // the column whose value belongs nowhere; empty if Name is computed
	Reason string // why it does
	Name   string // the name that was computed, or how it ends
}

func (e *NoTargetError) Error() string {
	if e.Column != "" {
		return fmt.Sprintf("%s has no table for %s: %s", e.Type, e.Column, e.Reason)
	}
	return fmt.Sprintf("%s gives %q, which is not there", e.Type, e.Name)
}
