// Package must shortens tests: an unexpected error ends a test, and an unequal value fails it. Don't
// use it in the loop of a benchmark.
package must

import (
	"fmt"
	"testing"
)

// Get returns the value of a call, and ends the test if the call returned an error:
// must.Get(os.ReadFile(name))(t). what describes the call.
func Get[T any](v T, err error) func(t testing.TB, what ...any) T {
	return func(t testing.TB, what ...any) T {
		t.Helper()
		Do(t, err, what...)
		return v
	}
}

// Do ends the test if a call returned an error: must.Do(t, db.Close()). what describes the call.
func Do(t testing.TB, err error, what ...any) {
	t.Helper()
	if err != nil {
		t.Fatal(append(what, err)...)
	}
}

// Equal fails the test unless have == want. The test continues. what describes the values.
func Equal[T comparable](t testing.TB, have, want T, what ...any) {
	t.Helper()
	if have != want {
		t.Errorf("%shave: %v\nwant: %v", fmt.Sprintln(what...), have, want)
	}
}
