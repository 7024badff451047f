// Package must shortens tests: an unexpected error ends a test, and an unequal value fails it. Don't
// use it in the loop of a benchmark.
package must

import (
	"fmt"
	"testing"
)

// Get returns the value of a call, and ends the test if the call returned an error:
// must.Get(os.ReadFile(name))(t).
func Get[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Do(t, err)
		return v
	}
}

// Do ends the test if a call returned an error: must.Do(t, db.Close()).
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Equal fails the test unless have == want. The test continues. what describes the values.
func Equal[T comparable](t testing.TB, have, want T, what ...any) {
	t.Helper()
	if have != want {
		t.Errorf("%shave: %v\nwant: %v", fmt.Sprintln(what...), have, want)
	}
}
