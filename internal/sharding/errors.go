package sharding

import "fmt"

// NotUnderstoodError is the error for an algorithm whose places cannot be
// computed here: one of another type, or with properties that are wrong or say
// more than is understood.
type NotUnderstoodError struct {
	Type   string // of the algorithm
	Prop   string // the property at fault; empty when it is the type
	Reason string // what is wrong, after the word "it" or the property's name
	Err    error  // the cause, as a *groovy.SyntaxError; may be nil
}

func (e *NotUnderstoodError) Error() string { return e.Reason }

func (e *NotUnderstoodError) Unwrap() error { return e.Err }

// ValueError is the error for a value of which an algorithm makes nothing:
// ShardingSphere would refuse the row.
type ValueError struct {
	Type   string // of the algorithm
	Column string
	Value  string // its text, shortened
	Reason string
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("%s makes nothing of %s = %s: %s", e.Type, e.Column, e.Value, e.Reason)
}

// NoTargetError is the error for values that belong to a name which is not among
// those that the strategy has.
type NoTargetError struct {
	Type string // of the algorithm
	Name string // the name that was computed, or how it ends
	// Several are the names that were found, where that is more than one.
	Several []string
}

func (e *NoTargetError) Error() string {
	if len(e.Several) > 1 {
		return fmt.Sprintf("%s cannot tell %q and %q apart, which both end in %q", e.Type, e.Several[0], e.Several[1], e.Name)
	}
	return fmt.Sprintf("%s gives %q, which is not there", e.Type, e.Name)
}
