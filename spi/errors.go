package spi

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrClosed is returned by a generator or assigner after Close.
	ErrClosed = errors.New("shardkey: closed")

	// ErrClockBack is in the chain of a generator's error if the clock moved backwards further than
	// the generator waits for.
	ErrClockBack = errors.New("shardkey: clock moved backwards")

	// ErrTimeOverflow is in the chain of a generator's error if the time doesn't fit the layout of
	// its keys. The clock is before the layout's epoch or after its last time.
	ErrTimeOverflow = errors.New("shardkey: time does not fit the key's layout")

	// ErrNoWorkerID is in the chain of an assigner's error if no worker ID is free.
	ErrNoWorkerID = errors.New("shardkey: no worker ID is free")

	// ErrLeaseLost is in the chain of an error if another process has taken over the worker ID of a
	// lease.
	ErrLeaseLost = errors.New("shardkey: worker-ID lease lost")

	// ErrLeaseLimit is in the chain of a generator's error if the lease of its worker ID has
	// reached its limit and couldn't be renewed.
	ErrLeaseLimit = errors.New("shardkey: worker-ID lease is at its limit")

	// ErrNoFittingKey is in the chain of the error if none of the generated keys belongs to the
	// actual table that an INSERT names.
	ErrNoFittingKey = errors.New("shardkey: no key belongs to this table")

	// ErrStore is in the chain of an error if the store that a generator or assigner uses is
	// unavailable, or contains invalid data.
	ErrStore = errors.New("shardkey: key store")
)

// PropError is the error for a property that is missing, invalid, out of range or unknown.
type PropError struct {
	// Name is the property as written. If the property is unknown, it is only the part that can be
	// a name.
	Name  string
	Value string // empty for a secret or a missing property
	Want  string // the valid values, and after "; " how to fix it: "an integer in 0..1023"
	// Unknown reports that the type doesn't have the property. Known then lists the properties that
	// it has.
	Unknown bool
	Known   []string

	fixed bool // a getter of Props set Want, so Want contains no value
}

func (e *PropError) Error() string {
	switch {
	case e.Unknown && e.Want != "":
		return fmt.Sprintf("shardkey: unknown property %q…: expected %s; known: %s", e.Name, e.Want, strings.Join(e.Known, ", "))
	case e.Unknown:
		return fmt.Sprintf("shardkey: unknown property %q; known: %s", clip(e.Name), strings.Join(e.Known, ", "))
	case e.Value == "":
		return fmt.Sprintf("shardkey: property %q: expected %s", clip(e.Name), e.Want)
	}
	want, advice, _ := strings.Cut(e.Want, "; ")
	text := fmt.Sprintf("shardkey: property %q: expected %s, found %q", clip(e.Name), want, clip(e.Value))
	if advice != "" {
		text += "; " + advice
	}
	return text
}

func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// factoryError is a factory's error with the type of the generator or assigner.
type factoryError struct {
	kind, typ string
	err       error
}

func (fe *factoryError) Error() string {
	return fmt.Sprintf("shardkey: %s %s: %s", fe.kind, fe.typ, strings.TrimPrefix(fe.err.Error(), "shardkey: "))
}

func (fe *factoryError) Unwrap() error { return fe.err }

// StoreError is the error of a store, such as a server, that a generator or assigner uses. Its
// chain has [ErrStore], Kind and Cause.
type StoreError struct {
	Store  string // type and address, without user and password: "REDIS at 127.0.0.1:6379"
	Detail string // the failed operation, or a description of the error; may be empty
	Kind   error  // an error to compare with errors.Is, or nil
	Cause  error  // the client's error, or nil
	Advice string // how to fix it; may be empty
}

func (se *StoreError) Error() string {
	text := "shardkey: " + se.Store
	if se.Detail != "" {
		text += ": " + se.Detail
	}
	if se.Cause != nil {
		text += ": " + se.Cause.Error()
	}
	if se.Advice != "" {
		text += "; " + se.Advice
	}
	return text
}

// Unwrap returns the chain for errors.Is and errors.As.
func (se *StoreError) Unwrap() []error {
	chain := []error{ErrStore}
	for _, err := range []error{se.Kind, se.Cause} {
		if err != nil {
			chain = append(chain, err)
		}
	}
	return chain
}
