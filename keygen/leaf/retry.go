package leaf

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	"github.com/go-sql-driver/mysql"
)

// errRaced says that another one changed the row between read and write.
var errRaced = errors.New("shardkey: leaf_alloc's row changed meanwhile")

// retry does a claim again after errors that are over soon: deadlocks, a
// connection that broke. Doing an UPDATE twice only leaves a gap.
func retry(ctx context.Context, s *sqlStore, do func() (int64, error)) (int64, error) {
	const attempts = 5
	for i := 1; ; i++ {
		v, err := do()
		if err == nil {
			return v, nil
		}
		if i == attempts || !passing(err) || s.clock.Sleep(ctx, rand.N(time.Duration(i)*10*time.Millisecond)) != nil {
			return 0, s.explain(ctx, err)
		}
	}
}

func passing(err error) bool {
	var server *mysql.MySQLError
	if errors.As(err, &server) {
		return server.Number == 1213 || server.Number == 1205
	}
	for _, e := range []error{errRaced, mysql.ErrInvalidConn, driver.ErrBadConn, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// integers reads the integers of a query's one column.
func integers(ctx context.Context, q queryer, query string, args ...any) (values []int64, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v int64
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, rows.Err()
}
