// Package panics converts panics in a program's code (its generator, assigner, store or hook) to
// errors. Otherwise a panic in a goroutine of this module would end the process, and a panic while
// callers wait for each other would block them.
package panics

import "fmt"

// Error is the error for a panic.
type Error struct {
	What  string // the code that panicked, for example "worker-ID assigner SQL"
	Value any    // the panic's value
}

func (e *Error) Error() string { return fmt.Sprintf("shardkey: %s panicked: %v", e.What, e.Value) }

// Unwrap returns the panic's value if it is an error.
func (e *Error) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Recover sets *err if the function panics. Defer it.
func Recover(err *error, what string) {
	if p := recover(); p != nil {
		*err = &Error{what, p}
	}
}

// Call calls f and returns its error, or an Error.
func Call(what string, f func() error) (err error) {
	defer Recover(&err, what)
	return f()
}

// Value returns f's result. If f panics, it returns the result of otherwise.
func Value[T any](f func() T, otherwise func(error) T) (value T) {
	err := Call("it", func() error { value = f(); return nil })
	if err != nil {
		return otherwise(err)
	}
	return value
}
