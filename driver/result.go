package driver

import (
	"database/sql/driver"

	"github.com/go-sql-driver/mysql"
)

// result is the result of an execution. The underlying driver's result has the affected rows.
// result adds the insert IDs.
type result struct {
	driver.Result
	id int64
}

var _ mysql.Result = (*result)(nil)

// LastInsertId returns the insert ID.
func (r *result) LastInsertId() (int64, error) { return r.id, nil }

func (r *result) AllLastInsertIds() []int64 {
	return []int64{r.id}
}

// AllRowsAffected returns the affected rows of each statement, as far as the underlying driver
// reports them.
func (r *result) AllRowsAffected() []int64 {
	if all, ok := r.Result.(mysql.Result); ok {
		return all.AllRowsAffected()
	}
	n, err := r.Result.RowsAffected()
	if err != nil {
		return nil
	}
	return []int64{n}
}
