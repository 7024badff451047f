package driver

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/shardkey/shardkey/rule"
)

// TestUnlisted_looksLikeARuledTable inserts into tables that are not listed in the
// rule.
func TestUnlisted_looksLikeARuledTable(t *testing.T) {
	const four = "INSERT INTO t_order_4 (user_id) VALUES (1)"
	for _, c := range []struct {
		name, more string // of the strategy
		policy     string
		text       string
		refused    bool
		logged     bool
	}{
		{"by default", "", "", four, true, false},
		{"refuse", "", "refuse", "REPLACE INTO app.T_ORDER_4 SELECT 1", true, false},
		{"warn", "", "warn", four, false, true},
		{"pass", "", "pass", four, false, false},
		{"the rule says pass", ", unlisted: pass", "refuse", four, false, false},
		{"the rule says refuse", ", unlisted: refuse", "pass", four, true, false},
		{"another table", "", "", "INSERT INTO t_orders (user_id) VALUES (1)", false, false},
		{"a query", "", "", "UPDATE t_order_4 SET user_id = 1", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			r := must(rule.Parse("order.yaml", []byte(strings.Replace(orderRule, "keyGeneratorName: counter", "keyGeneratorName: counter"+c.more, 1))))(t)
			direct, mock, err := sqlmock.NewWithDSN(t.Name())
			if err != nil {
				t.Fatal(err)
			}
			defer direct.Close()
			wrapped := Wrap(direct.Driver(), r, Config{Server: "other", Unlisted: c.policy},
				WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			connector, err := wrapped.(driver.DriverContext).OpenConnector(t.Name())
			if err != nil {
				t.Fatal(err)
			}
			db := sql.OpenDB(connector)
			defer db.Close()
			if !c.refused {
				mock.ExpectExec(".*").WillReturnResult(sqlmock.NewResult(0, 1))
				mock.ExpectExec(".*").WillReturnResult(sqlmock.NewResult(0, 1))
			}
			for range 2 {
				_, err = db.Exec(c.text)
			}
			var unlisted *rule.UnlistedTableError
			switch {
			case c.refused && (!errors.As(err, &unlisted) || !errors.Is(err, ErrUnsupportedStatement) || unlisted.Like.Logical != "t_order"):
				t.Errorf("have: %v\nwant: a *rule.UnlistedTableError", err)
			case !c.refused && err != nil:
				t.Errorf("have: %v\nwant: nil", err)
			}
			want := 0
			if c.logged {
				want = 1
			}
			if have := strings.Count(log.String(), "looks like one of table"); have != want {
				t.Errorf("have: %s\nwant: %d lines", log.String(), want)
			}
		})
	}
}
