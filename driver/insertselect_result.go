package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/internal/sqltext"
	"github.com/shardkey/shardkey/rewrite"
)

// settle finds the statement's result, as execution.settle does for rows
// of values.
func (r *sourceRun) settle(ctx context.Context, base driver.Result) (driver.Result, error) {
	defer r.Close()
	affected, err := base.RowsAffected()
	if err != nil {
		return base, nil
	}
	if r.in.Returning {
		affected = unknownCount
	}
	baseID, _ := base.LastInsertId()
	existed := r.in.Guarded && baseID != 0
	var present map[string]bool // nil: all rows were inserted
	switch {
	case r.in.Ignore && affected == 0:
		present = map[string]bool{}
	case r.in.Ignore && affected != r.rows, r.in.OnDuplicate && (existed || !r.in.Guarded), r.in.Replace && affected != r.rows,
		r.plan.keyColumns[0].isTriggered():
		if present, err = r.present(ctx); err != nil {
			present = map[string]bool{}
		}
	}
	id, inserted := r.firstInserted(r.among(present))
	r.keepLastAfter(baseID, id, inserted)
	if !inserted && affected > 0 && present == nil && !existed && r.in.Source.KeyIndex >= 0 && r.table.kind() == rewrite.KindInteger {
		id = r.lastGiven(ctx)
	}
	out := &sourceResult{Result: base, id: id, run: &r.selectRun, inserted: r.among(present)}
	if r.out != nil {
		out.keys = r.values(ctx, present)
		r.out.set(r.plan, out.keys)
	}
	return out, nil
}

// settleRows is settle for a statement that returns rows, once they are closed.
// The temporary tables are dropped then.
func (r *sourceRun) settleRows(_ context.Context, base driver.Rows) (driver.Rows, error) {
	return &settledRows{closingRows: closingRows{Rows: base}, settle: func(err error) {
		defer r.Close()
		ctx := context.Background() // the execution's own may have ended
		if err != nil {
			r.lastID.moved()
			return
		}
		var present map[string]bool
		if r.in.Ignore || r.in.OnDuplicate || r.in.Replace || r.plan.keyColumns[0].isTriggered() {
			if present, err = r.present(ctx); err != nil {
				present = map[string]bool{}
			}
		}
		id, inserted := r.firstInserted(r.among(present))
		r.keepLastAfter(0, id, inserted)
		if r.out != nil {
			r.out.set(r.plan, r.values(ctx, present))
		}
	}}, nil
}

// among tells whether a generated key is among those present; nil: all are.
func (r *sourceRun) among(present map[string]bool) func(i int) bool {
	if present == nil {
		return nil
	}
	return func(i int) bool { return present[text(r.keys.At(i))] }
}

// present asks which of the generated keys are in the table.
func (r *sourceRun) present(ctx context.Context) (map[string]bool, error) {
	present := map[string]bool{}
	if r.keys.Len() == 0 {
		return present, nil
	}
	key := r.targetColumn(r.in.Table.KeyColumn)
	err := r.queryColumns(ctx, 1, "SELECT "+key+" FROM "+r.joined(r.qualify(rowsTable))+" JOIN "+sqltext.QuoteTable(r.in.Schema, r.in.Name)+
		" ON "+key+" = "+r.keyOf()+allRows, func(row []driver.Value) {
		present[text(row[0])] = true
	})
	return present, err
}

func (r *sourceRun) lastGiven(ctx context.Context) int64 {
	row, err := r.queryRow(ctx, "SELECT "+r.keyInRows()+" FROM "+r.qualify(rowsTable)+" ORDER BY "+rowNumber+" DESC LIMIT 1")
	if err != nil || len(row) != 1 {
		return 0
	}
	return toInt64(sqltext.ParseInteger(text(row[0]), 10))
}

// values are the keys of all rows of the query, in its order. Keys that the
// query returned are known where all rows were inserted.
func (r *sourceRun) values(ctx context.Context, present map[string]bool) []any {
	values := r.boxed(r.among(present))
	if int64(len(values)) == r.rows {
		return values
	}
	all, next := make([]any, 0, len(values)), 0
	err := r.queryColumns(ctx, 2, "SELECT "+r.keyOf()+" IS NULL, "+r.keyInRows()+" FROM "+r.joined(r.qualify(rowsTable))+" ORDER BY "+rowNumber+allRows, func(row []driver.Value) {
		switch given := text(row[0]) != "0"; {
		case !given && next < len(values):
			all = append(all, values[next])
			next++
		case present == nil:
			all = append(all, boundKey(r.table.kind(), row[1]))
		default:
			all = append(all, nil)
		}
	})
	if err != nil {
		return make([]any, r.rows)
	}
	return all
}

// sourceResult is the result of an INSERT … SELECT.
type sourceResult struct {
	driver.Result
	id       int64
	run      *selectRun
	inserted func(i int) bool // whether a generated key was; nil: all were
	keys     []any
}

var _ KeysResult = (*sourceResult)(nil)

func (r *sourceResult) LastInsertId() (int64, error) { return r.id, nil }
func (r *sourceResult) AllLastInsertIds() []int64    { return []int64{r.id} }

func (r *sourceResult) AllRowsAffected() []int64 {
	n, err := r.RowsAffected()
	if err != nil {
		return nil
	}
	return []int64{n}
}

// Keys are known for rows whose keys were generated; those that the query
// returned are asked for only by an execution with WithKeys.
func (r *sourceResult) Keys() []any {
	if r.keys != nil || int64(r.run.keys.Len()) != r.run.rows {
		return r.keys
	}
	return r.run.boxed(r.inserted)
}

// explain turns the server's error about a temporary table into one about the
// statement.
func (r *sourceRun) explain(err error) error {
	var my *mysql.MySQLError
	if !errors.As(err, &my) {
		return err
	}
	switch {
	case my.Number == insideXADetach && len(r.tables) == 0:
		return r.noTemporaryTable(err, "SET xa_detach_on_prepare=OFF before XA START")
	case (my.Number == unsafeInTx || my.Number == unsafeForGTID) && len(r.tables) == 0:
		return r.noTemporaryTable(err, "SET binlog_format=ROW or MIXED, or run it outside of a transaction")
	case my.Number == databaseDenied,
		(my.Number == tableDenied || my.Number == columnDenied) && len(r.tables) == 0:
		return r.privilegeError(err)
	case len(r.tables) == 0 && refusesTemporary(err):
		return r.noTemporaryTable(err, "use a server that has them")
	case len(r.tables) > 0 && r.usesQuery(my):
		return r.queryInDuplicate(err)
	}
	return r.plan.failed(r.rename(err, my))
}

// noTemporaryTable is the error where the server refuses temporary tables.
func (r *sourceRun) noTemporaryTable(err error, wayOut string) error {
	return &InsertSelectError{Table: r.quoted(), Err: err,
		Reason: "is filled through a temporary table, which the server refuses here; " + wayOut + ", or set shardkeyInsertSelect=copy"}
}

func (r *sourceRun) privilegeError(err error) error {
	schema, table := "the current database", sqltext.QuoteTable(r.in.Schema, r.in.Name)
	if r.in.Schema != "" {
		schema = sqltext.QuoteIdentifier(r.in.Schema)
	}
	return &PrivilegeError{Table: table, Err: err,
		Grant: "GRANT CREATE TEMPORARY TABLES ON " + schema + ".* and SELECT ON " + table + " to the user"}
}

// rename substitutes the target's name where a message of the server names the
// temporary table, with quotes or, as in one about JSON, without: which column
// and row are wrong is the same.
func (r *sourceRun) rename(err error, my *mysql.MySQLError) error {
	bare := strings.Trim(rowsTable, "`")
	if err != error(my) || !strings.Contains(my.Message, bare) {
		return err
	}
	renamed := *my
	renamed.Message = strings.NewReplacer(rowsTable, sqltext.QuoteIdentifier(r.in.Name), "'"+bare+".", "'"+r.in.Name+".").Replace(my.Message)
	return &renamed
}
