package differential

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	testmust "github.com/shardkey/shardkey/internal/test/must"
)

// PlainError returns an error with neither the name of the test's database nor a quotation.
func PlainError(err error) string {
	var my *mysql.MySQLError
	switch {
	case err == nil:
		return "no error"
	case errors.As(err, &my):
		return fmt.Sprintf("error %d %s", my.Number, ownDatabase.ReplaceAllString(nearText.ReplaceAllString(my.Message, "near …"), "db"))
	}
	return "error " + err.Error()
}

// ownDatabase matches the name of a side's database.
var ownDatabase = regexp.MustCompile(`shardkey_test_[a-z0-9]+`)

// nearText matches the quotation in a syntax error, which differs by the key.
var nearText = regexp.MustCompile(`(?s)near '.*' at line \d+`)

// ReadAll returns the rows of a query, or its error.
func ReadAll(t *testing.T, run interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, query string, args ...any,
) string {
	t.Helper()
	rows, err := run.QueryContext(context.Background(), query, args...)
	text := ""
	if err == nil {
		text, err = show(t, rows)
	}
	if err != nil {
		return PlainError(err)
	}
	return text
}

// show returns the rows as text.
func show(t *testing.T, rows *sql.Rows) (string, error) {
	t.Helper()
	defer rows.Close()
	return showResult(t, rows)
}

func showResult(t *testing.T, rows *sql.Rows) (string, error) {
	t.Helper()
	columns := testmust.Get(rows.Columns())(t)
	var lines []string
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		dest := make([]any, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		testmust.Do(t, rows.Scan(dest...))
		var cells []string
		for _, v := range values {
			if !v.Valid {
				v.String = "NULL"
			}
			cells = append(cells, v.String)
		}
		lines = append(lines, "["+strings.Join(cells, "|")+"]")
	}
	return strings.Join(lines, " "), rows.Err()
}
