package outcome

// LastID is the state of LAST_INSERT_ID() in a session. The function must return the same value as if
// sharded key columns had AUTO_INCREMENT. The server usually has that value, since a statement with
// generated keys contains LAST_INSERT_ID(key). Otherwise it is set before the next statement that may
// read it. The zero value is the state of a new connection: LAST_INSERT_ID() is 0.
//
// [LastID.After] is the only way from one state to another.
type LastID struct {
	state state
	value uint64 // that the function must return, unless the state is ofServer
}

type state uint8

const (
	synced   state = iota // the server returns the value
	behind                // the server may return another value
	ofServer              // only the server knows the value
)

// Value returns the value that LAST_INSERT_ID() must return, 0 if only the server knows it.
func (l LastID) Value() uint64 { return l.value }

// Known reports whether the value is known. Otherwise the server has the right value.
func (l LastID) Known() bool { return l.state != ofServer }

// Synced reports whether the server returns the right value.
func (l LastID) Synced() bool { return l.state != behind }

// Change is what a statement does to LAST_INSERT_ID(). The zero value is a statement that doesn't
// affect it.
type Change struct {
	Must   Effect // on the value that the function must return
	Server Effect // on the value that the server returns
}

// Effect is what happens to a value. The zero value keeps it.
type Effect struct {
	is effect
	id uint64
}

type effect uint8

const (
	keeps effect = iota
	sets
	loses
)

// Sets is the effect of a new value.
func Sets(id uint64) Effect { return Effect{sets, id} }

// Loses is the effect of an unknown new value.
var Loses = Effect{is: loses}

// The usual changes.
var (
	// Lost: only the server knows the new value.
	Lost = Change{Must: Loses}
	// Moved: the server may have another value, although the function must return the same as before.
	Moved = Change{Server: Loses}
)

// Told is the change to a value that the server has.
func Told(id uint64) Change { return Change{Sets(id), Sets(id)} }

// Untold is the change to a value that the server doesn't know.
func Untold(id uint64) Change { return Change{Must: Sets(id)} }

// After returns the state after a change.
func (l LastID) After(c Change) LastID {
	switch c.Must.is {
	case loses:
		return LastID{state: ofServer}
	case sets:
		l = LastID{behind, c.Must.id}
	}
	switch {
	case l.state == ofServer, c.Server.is == keeps:
	case c.Server == Sets(l.value):
		l.state = synced
	default:
		l.state = behind
	}
	return l
}
