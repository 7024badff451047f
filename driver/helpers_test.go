package driver

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
)

// must returns what a call returned, and ends the test if that is an error: must(db.Conn(ctx))(t).
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		noError(t, err)
		return v
	}
}

// noError ends the test by an error.
func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// check fails the test by an error, and lets it continue.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// equal fails the test unless have is want; what describes both.
func equal[T comparable](t testing.TB, have, want T, what ...any) {
	t.Helper()
	if have != want {
		t.Errorf("%s\nhave: %v\nwant: %v", fmt.Sprint(what...), have, want)
	}
}

// mustExec executes a statement on a *sql.DB, *sql.Conn or *sql.Tx.
func mustExec(t testing.TB, on interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, query string, args ...any,
) sql.Result {
	t.Helper()
	res, err := on.ExecContext(context.Background(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return res
}
