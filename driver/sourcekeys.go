package driver

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strconv"

	"github.com/shardkey/shardkey/rewrite"
)

// keysAtOnce is how many keys one statement brings to the server.
const keysAtOnce = 5000

// makeKeys generates a key for each row that needs one.
func (r *sourceRun) makeKeys(ctx context.Context) error {
	n, missing, err := r.countMissing(ctx)
	if err != nil || n == 0 {
		return err
	}
	if r.keys, err = r.table.generate(ctx, n, &r.one); err != nil {
		return err
	}
	if first, ok := r.contiguous(); ok {
		if r.offset, err = r.findOffset(ctx, first); err != nil || r.offset != "" {
			return err
		}
	}
	return r.storeKeys(ctx, missing)
}

// contiguous tells whether the keys are first, first+1, … for all rows.
func (r *sourceRun) contiguous() (first int64, ok bool) {
	ints := r.keys.Ints
	if r.in.Source.KeyIndex >= 0 || len(ints) == 0 || ints[0] < 0 {
		return 0, false
	}
	for i, key := range ints {
		if key != ints[0]+int64(i) {
			return 0, false
		}
	}
	return ints[0], true
}

// findOffset returns what is added to a row's number to give its key, empty
// when the numbers are not contiguous, as with auto_increment_increment.
func (r *sourceRun) findOffset(ctx context.Context, first int64) (string, error) {
	row, err := r.queryRow(ctx, "SELECT MIN("+rowNumber+"), MAX("+rowNumber+") FROM "+r.qualify(rowsTable))
	if err != nil || len(row) != 2 {
		return "", err
	}
	low, err1 := strconv.ParseInt(text(row[0]), 10, 64)
	high, err2 := strconv.ParseInt(text(row[1]), 10, 64)
	if err1 != nil || err2 != nil || high-low != r.rows-1 || first < low {
		return "", nil
	}
	return strconv.FormatInt(first-low, 10), nil
}

// countMissing counts the rows without key, and returns the condition that
// tells them.
func (r *sourceRun) countMissing(ctx context.Context) (n int, missing string, err error) {
	if r.in.Source.KeyIndex < 0 {
		return int(r.rows), "TRUE", nil
	}
	key := r.keyInRows()
	missing = key + " IS NULL"
	if r.table.kind() == rewrite.UnknownKind {
		if err := r.table.learnKind(ctx); err != nil {
			return 0, "", err
		}
	}
	mode, err := r.sqlMode(ctx)
	switch {
	case err != nil:
		return 0, "", err
	case r.table.kind() == rewrite.Text:
		missing += " OR " + key + " = ''"
	case mode&rewrite.NoAutoValueOnZero == 0:
		missing += " OR " + key + " = 0"
	}
	row, err := r.queryRow(ctx, "SELECT COUNT(*) FROM "+r.qualify(rowsTable)+" WHERE "+missing)
	if err != nil || len(row) != 1 {
		return 0, "", err
	}
	n, err = strconv.Atoi(text(row[0]))
	return n, missing, err
}

// storeKeys puts the keys into a table beside the numbers of their rows.
func (r *sourceRun) storeKeys(ctx context.Context, missing string) error {
	key := "`shardkey_target`." + rewrite.QuoteIdentifier(r.in.Table.KeyColumn) + " AS `shardkey_key`"
	if err := r.create(ctx, keysTable, "`shardkey_row` BIGINT UNSIGNED NOT NULL DEFAULT 0 PRIMARY KEY", key); err != nil {
		return err
	}
	last := "0"
	for done, n := 0, r.keys.Len(); done < n; {
		numbers, err := r.numbers(ctx, missing, last)
		if err != nil {
			return err
		}
		if len(numbers) == 0 || len(numbers) > n-done {
			return fmt.Errorf("shardkey: %d rows of a temporary table need a key, and %d were counted", done+len(numbers), n)
		}
		if err := r.insertKeys(ctx, numbers, done); err != nil {
			return err
		}
		done += len(numbers)
		last = numbers[len(numbers)-1]
	}
	return nil
}

func (r *sourceRun) numbers(ctx context.Context, missing, after string) ([]string, error) {
	var numbers []string
	err := r.queryRows(ctx, "SELECT "+rowNumber+" FROM "+r.qualify(rowsTable)+" WHERE "+rowNumber+" > "+after+" AND ("+missing+
		") ORDER BY "+rowNumber+" LIMIT "+strconv.Itoa(keysAtOnce), func(row []driver.Value) {
		numbers = append(numbers, text(row[0]))
	})
	return numbers, err
}

func (r *sourceRun) insertKeys(ctx context.Context, numbers []string, from int) error {
	query := []byte("INSERT INTO " + r.qualify(keysTable) + " (`shardkey_row`, `shardkey_key`) VALUES ")
	for i, number := range numbers {
		if i > 0 {
			query = append(query, ',')
		}
		query = append(append(append(query, '('), number...), ',')
		var ok bool
		if query, ok = rewrite.AppendLiteral(query, r.keys.At(from+i)); !ok {
			return fmt.Errorf("%w: a key of type %T cannot be given to INSERT … SELECT", ErrUnsupportedStatement, r.keys.At(from+i))
		}
		query = append(query, ')')
	}
	return r.run(ctx, string(query))
}
