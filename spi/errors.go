package spi

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrClosed is returned by a generator or assigner after Close.
	ErrClosed = errors.New("shardkey: closed")

	// ErrClockBack is in the chain of a generator's error when the clock went
	// back further than the generator waits for.
	ErrClockBack = errors.New("shardkey: clock moved backwards")

	// ErrTimeOverflow is in the chain of a generator's error when the layout's
	// time field is full: the clock is past the layout's last time or before
	// its epoch.
	ErrTimeOverflow = errors.New("shardkey: time does not fit the key's layout")

	// ErrNoWorkerID is in the chain of an assigner's error when every worker
	// id is taken.
	ErrNoWorkerID = errors.New("shardkey: no worker ID is free")

	// ErrLeaseLost is in the chain of an error when a worker ID's lease has
	// become another owner's.
	ErrLeaseLost = errors.New("shardkey: worker-ID lease lost")

	// ErrLeaseLimit is in the chain of a generator's error when the reserved
	// interval of its worker ID is used up and could not be renewed.
	ErrLeaseLimit = errors.New("shardkey: worker-ID lease is at its limit")

	// ErrNoFittingKey is in the chain of the error when none of the keys that were
	// drawn belongs to the actual table that an INSERT names.
	ErrNoFittingKey = errors.New("shardkey: no key belongs to this table")

	// ErrStore is in the chain of an error when the server that a generator or
	// assigner depends on could not be reached, or holds what it should not.
	ErrStore = errors.New("shardkey: key store")
)

// PropError is the error for a property that is missing, not understood, out
// of range or unknown.
type PropError struct {
	// Name is the property as it was written; of an unknown one only what can be a name.
	Name  string
	Value string // its value; empty for a secret or a missing property
	Want  string // what would be right, for example "an integer in 0..1023"; it contains no value
	// Unknown reports that the type has no property of this name; Known lists
	// those it has.
	Unknown bool
	Known   []string

	fixed bool // Want is a getter's, and contains no value
}

func (e *PropError) Error() string {
	switch {
	case e.Unknown && e.Want != "":
		return fmt.Sprintf("shardkey: unknown property %q…: want %s; known: %s", e.Name, e.Want, strings.Join(e.Known, ", "))
	case e.Unknown:
		return fmt.Sprintf("shardkey: unknown property %q; known: %s", clip(e.Name), strings.Join(e.Known, ", "))
	case e.Value == "":
		return fmt.Sprintf("shardkey: property %q: want %s", clip(e.Name), e.Want)
	}
	return fmt.Sprintf("shardkey: property %q is %q: want %s", clip(e.Name), clip(e.Value), e.Want)
}

// clip shortens a text for an error.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// factoryError is a factory's error with the type that it belongs to.
type factoryError struct {
	kind, typ string
	err       error
}

func (e *factoryError) Error() string {
	return fmt.Sprintf("shardkey: %s %s: %s", e.kind, e.typ, strings.TrimPrefix(e.err.Error(), "shardkey: "))
}

func (e *factoryError) Unwrap() error { return e.err }

// StoreError is the error for a server or another store that a generator or an assigner could
// not use. Its chain has [ErrStore], Kind and Cause.
type StoreError struct {
	Store  string // type and place, without user and password: "REDIS at 127.0.0.1:6379"
	Detail string // what was attempted, or what is wrong; may be empty
	Kind   error  // an error value to compare with, or nil
	Cause  error  // the client's error, or nil
	Advice string // the remedy; may be empty
}

func (e *StoreError) Error() string {
	text := "shardkey: " + e.Store
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	if e.Advice != "" {
		text += "; " + e.Advice
	}
	return text
}

// Unwrap returns the chain for errors.Is and errors.As.
func (e *StoreError) Unwrap() []error {
	chain := []error{ErrStore}
	for _, err := range []error{e.Kind, e.Cause} {
		if err != nil {
			chain = append(chain, err)
		}
	}
	return chain
}
