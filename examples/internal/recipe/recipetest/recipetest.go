// Package recipetest tests the examples of libraries.
package recipetest

import (
	"strings"
	"testing"

	"github.com/shardkey/shardkey/examples/internal/embedded"
	"github.com/shardkey/shardkey/examples/internal/recipe"
	"github.com/shardkey/shardkey/internal/testserver"
)

// Run runs an example against the server within the process and, where there are
// any, on each SQL server. self is the test that calls it.
func Run(t *testing.T, self func(*testing.T), run recipe.Run) {
	t.Helper()
	if !strings.Contains(t.Name(), "/") {
		t.Run("embedded", func(t *testing.T) {
			dsn, stop, err := embedded.Start()
			if err != nil {
				t.Fatal(err)
			}
			do(t, dsn, run)
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
	if testserver.Each(t, self) {
		return
	}
	do(t, testserver.Database(t), run)
}

func do(t *testing.T, dsn string, run recipe.Run) {
	t.Helper()
	var out strings.Builder
	if err := recipe.Do(t.Context(), &out, dsn, run); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
}
