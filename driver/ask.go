package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/go-sql-driver/mysql"
)

// queryRow asks the server on this connection, which nothing else uses now, and
// returns the first row, nil when there is none.
func (c *conn) queryRow(ctx context.Context, query string) ([]driver.Value, error) {
	var first []driver.Value
	err := c.queryRows(ctx, query, func(row []driver.Value) {
		if first == nil {
			first = append(first, row...)
		}
	})
	return first, err
}

// queryRows calls each with every row, whose values are valid until it returns.
func (c *conn) queryRows(ctx context.Context, query string, each func([]driver.Value)) (err error) {
	rows, err := c.base.queryOrPrepare(ctx, query, nil, 0)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := rows.Close(); err == nil {
			err = cerr
		}
	}()
	row := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(row); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		for i, v := range row {
			if b, ok := v.([]byte); ok {
				row[i] = string(b) // the base reuses its buffer
			}
		}
		each(row)
	}
}

// askRow is queryRow for questions that a server may not understand: then the
// row is nil. Errors are those after which the statement at hand would fail too.
func (c *conn) askRow(ctx context.Context, query string) ([]driver.Value, error) {
	row, err := c.queryRow(ctx, query)
	if err == nil || !isFatal(ctx, err) {
		return row, nil
	}
	return nil, err
}

// isFatal tells errors of the connection or the context from answers of the
// server (and of mocks).
func isFatal(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn)
}

// text is a value as the text protocol would give it.
func text(v driver.Value) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []byte:
		return string(v)
	}
	return fmt.Sprint(v)
}
