// Package must shortens tests: Get and Do end a test at an unexpected error, and the other functions
// fail it. What describes a call or a value. Don't use the package in the loop of a benchmark.
package must

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// Get returns the value of a call, and ends the test if the call returned an error:
// must.Get(os.ReadFile(name))(t).
func Get[T any](v T, err error) func(t testing.TB, what ...any) T {
	return func(t testing.TB, what ...any) T {
		t.Helper()
		Do(t, err, what...)
		return v
	}
}

// Do ends the test if a call returned an error: must.Do(t, db.Close()).
func Do(t testing.TB, err error, what ...any) {
	t.Helper()
	if err != nil {
		t.Fatal(append(what, err)...)
	}
}

// Race reports whether the tests are built with -race.
func Race() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// Open opens a database until the test ends.
func Open(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	db := Get(sql.Open(driver, dsn))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// ReadJSON returns the value in a JSON file.
func ReadJSON[T any](t testing.TB, file string) (v T) {
	t.Helper()
	Do(t, json.Unmarshal(Get(os.ReadFile(file))(t), &v), file)
	return v
}

// Equal fails the test unless have == want. The test continues.
func Equal[T comparable](t testing.TB, have, want T, what ...any) {
	t.Helper()
	if have != want {
		t.Errorf("%shave: %v\nwant: %v", fmt.Sprintln(what...), have, want)
	}
}

// EqualSlices is Equal for slices.
func EqualSlices[T comparable](t testing.TB, have, want []T, what ...any) {
	t.Helper()
	if !slices.Equal(have, want) {
		t.Errorf("%shave: %v\nwant: %v", fmt.Sprintln(what...), have, want)
	}
}

// Contain fails the test unless a string contains want. The test continues.
func Contain(t testing.TB, have, want string, what ...any) {
	t.Helper()
	if !strings.Contains(have, want) {
		t.Errorf("%shave: %s\nwant: %s", fmt.Sprintln(what...), have, want)
	}
}

// Err returns the error of a call: must.Is(t, must.Err(db.Exec(query)), sql.ErrConnDone).
func Err[T any](_ T, err error) error { return err }

// Is fails the test unless errors.Is(err, target). The test continues.
func Is(t testing.TB, err, target error, what ...any) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%shave: %v\nwant: %v", fmt.Sprintln(what...), err, target)
	}
}

// Fail fails the test if err is nil, which is unexpected. The test continues.
func Fail(t testing.TB, err error, what ...any) {
	t.Helper()
	if err == nil {
		t.Errorf("%shave: no error", fmt.Sprintln(what...))
	}
}

// FailWith fails the test unless there is an error whose text contains want. The test continues.
func FailWith(t testing.TB, err error, want string, what ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%shave: %v\nwant: an error with %s", fmt.Sprintln(what...), err, want)
	}
}
