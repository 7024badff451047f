// Package fill decides which rows of an INSERT need a key, and makes the keys. It reads explicit keys,
// checks rows against their actual table, calls the generator, and searches for keys that belong in a
// table or have certain shard bits. It has no connection; it asks a [Session] for the columns' types.
package fill

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// Session is what keys depend on in the server's session.
type Session interface {
	facts.Charsets
	// Facts returns what is known of a table, and AskFacts asks the server.
	Facts(ctx context.Context, schema, name string) (*facts.Table, error)
	AskFacts(ctx context.Context, schema, name string) (*facts.Table, error)
	Mode(ctx context.Context) (sqltoken.Mode, sqltoken.Charset, error)
	// IsAssumed reports whether there is no server.
	IsAssumed() bool
}

// Filler makes the keys of an INSERT of a plan. How it does that is chosen once. It is safe for
// concurrent use.
type Filler struct {
	Insert *rewrite.Insert
	Table  *Table
	Actual *ActualTable // the actual table that the INSERT names; nil if it names none

	plan *rewrite.Plan
	// bitsAt is the index of the shard bits' column among the columns whose values the plan knows.
	bitsAt int

	// checks decide which rows need a key, and refuse rows that can't be inserted. find returns how the
	// keys are made. If there are neither, each row gets any key.
	checks []func(*rows, context.Context) error
	find   func(*rows, context.Context) (maker, error)
}

// maker makes the keys of rows. If there is one, it may use the array one.
type maker func(ctx context.Context, one *[1]int64) (rewrite.Keys, error)

// New returns the filler of a plan with an INSERT into a table.
func New(p *rewrite.Plan, t *Table) (*Filler, error) {
	in := p.Insert
	a := t.ActualTable(in.Schema, in.Name)
	f := &Filler{Insert: in, Table: t, Actual: a, plan: p}
	if t.shardBits != nil && p.Count() != "" {
		return nil, f.noShardBits(-1, "the values of its query are not known; read the rows, and insert them with VALUES", nil)
	}
	if !in.AllGenerated {
		f.checks = append(f.checks, (*rows).count)
	}
	if a != nil && a.Guards() {
		f.checks = append(f.checks, (*rows).guard)
	}
	switch {
	case t.shardBits != nil:
		_, f.bitsAt = WithBitsColumn(in.Table.Recorded, t.shardBits)
		f.find = (*rows).findBits
	case a != nil && a.HasKey() && (a.belongs == nil || t.ints == nil):
		f.find = (*rows).findByRow
	}
	return f, nil
}

// In returns the filler for a statement that was prepared in a database that isn't the current one. Its
// table is qualified by the database.
func (f *Filler) In(database string) *Filler {
	if f.Insert.Schema != "" {
		return f
	}
	of, in := *f, *f.Insert
	in.Schema = database
	of.Insert = &in
	return &of
}

// Name returns the table's name in the statement.
func (f *Filler) Name() string { return sqltoken.TableName(f.Insert.Schema, f.Insert.Name) }

// rows are the rows of one execution.
type rows struct {
	*Filler
	session Session
	column  *facts.Column // the key column
	args    []driver.NamedValue
	n       int    // how many need a key
	asked   []bool // see [rewrite.Keys]
}

// Fill makes the keys for the rows of values. column is what is known of the key column; Fill returns
// what is known then. Integer keys may use the array one. alone: the caller sees only the first key.
func (f *Filler) Fill(
	ctx context.Context, s Session, column *facts.Column, args []driver.NamedValue, keys *rewrite.Keys, one *[1]int64, alone bool,
) (known *facts.Column, err error) {
	if f.checks == nil && f.find == nil {
		err = f.generate(ctx, len(f.Insert.Rows), keys, one)
	} else {
		r := &rows{Filler: f, session: s, column: column, args: args, n: len(f.Insert.Rows)}
		*keys, err = r.make(ctx, one)
	}
	if err != nil || keys.Len() == 0 {
		return column, err
	}
	return f.accept(ctx, s, column, keys, keys.Len(), alone)
}

// FillQuery makes the keys for the n rows that a query had, and more for rows that it has by now.
func (f *Filler) FillQuery(
	ctx context.Context, s Session, column *facts.Column, n int, keys *rewrite.Keys, alone bool,
) (known *facts.Column, err error) {
	const least, share = 16, 8
	var one [1]int64
	of := max(n, 1) // an aggregate evaluates the key even if HAVING drops its row
	if err = f.generate(ctx, of+least+of/share, keys, &one); err != nil {
		return column, err
	}
	return f.accept(ctx, s, column, keys, n, alone)
}

// Check returns the error with which all executions are refused, whatever the arguments are. They are
// [UnknownArg].
func (f *Filler) Check(ctx context.Context, s Session, column *facts.Column, args []driver.NamedValue) error {
	r := &rows{Filler: f, session: s, column: column, args: args, n: len(f.Insert.Rows)}
	_, err := r.decide(ctx)
	return err
}

// UnknownArg is an argument whose value is unknown.
type UnknownArg struct{}

// decide decides which rows need a key, and returns how they are made; nil if no row needs one.
func (r *rows) decide(ctx context.Context) (maker, error) {
	for _, check := range r.checks {
		if err := check(r, ctx); err != nil {
			return nil, err
		}
	}
	switch {
	case r.n == 0:
		return nil, nil
	case r.find != nil:
		return r.find(r, ctx)
	}
	return func(ctx context.Context, one *[1]int64) (keys rewrite.Keys, err error) {
		return keys, r.generate(ctx, r.n, &keys, one)
	}, nil
}

func (r *rows) make(ctx context.Context, one *[1]int64) (keys rewrite.Keys, err error) {
	make, err := r.decide(ctx)
	if err == nil && make != nil {
		keys, err = make(ctx, one)
	}
	keys.Asked = r.asked
	return keys, err
}

// count counts the rows that need a key. For bound keys it checks whether the key is missing. The error
// is in the chain of [rewrite.ErrUnsupportedStatement] if that is uncertain.
func (r *rows) count(ctx context.Context) (err error) {
	var mode *string
	of := *r.Insert.Table
	of.KeyColumnUnknown = true
	for {
		r.asked, r.n, err = r.Insert.Asks(r.args, mode, &of)
		needs, ok := err.(*rewrite.Needs)
		switch {
		case !ok:
			if refused, ok := err.(*rewrite.StatementError); ok {
				refused.Table = r.Table.Rule.Logical
			}
			return err
		case needs.SQLMode:
			known, _, err := r.session.Mode(ctx)
			if err != nil {
				return err
			}
			mode = new(known.String())
		default:
			if err := SetKeyColumn(&of, r.column); err != nil {
				return err
			}
		}
	}
}

// SetKeyColumn sets what a table's key column stores.
func SetKeyColumn(t *rewrite.Table, column *facts.Column) error {
	if column.Unanswered {
		return fmt.Errorf("%w: the type of key column %s is needed to read the key, and the server didn't return it; "+
			"pass a positive integer or NULL", rewrite.ErrUnsupportedStatement, t.Key)
	}
	t.InStrings, t.Unsigned = column.Kind()
	t.KeyColumnUnknown = false
	return nil
}

// generate makes n keys, independent of the rows' values. If n is 1, it uses the array one.
func (f *Filler) generate(ctx context.Context, n int, keys *rewrite.Keys, one *[1]int64) (err error) {
	if f.Actual != nil && f.Actual.belongs != nil && f.Table.ints != nil {
		*keys, err = f.Actual.generate(ctx, n, one)
		return err
	}
	return f.Table.generate(ctx, n, keys, one)
}

// accept counts the keys of one statement, of which the first n are for rows, and checks that the table
// can store them.
func (f *Filler) accept(
	ctx context.Context, s Session, column *facts.Column, keys *rewrite.Keys, n int, alone bool,
) (*facts.Column, error) {
	if n > 1 && alone {
		if err := f.Table.checkConsecutive(ctx, keys, n); err != nil {
			f.Table.Counts.notInserted(keys.Len())
			return column, err
		}
	}
	f.Table.Counts.inserted(n, keys.Len()-n)
	if column.Unfit(keys) < 0 {
		return column, nil
	}
	// It may have been altered.
	known, err := s.AskFacts(ctx, f.Insert.Schema, f.Insert.Name)
	if err != nil {
		return column, err
	}
	column = known.Column(f.Insert.Table.Key)
	if i := column.Unfit(keys); i >= 0 {
		err = f.narrow(column, keys.At(i))
	}
	return column, err
}

// narrow returns the error for a key that its column can't store.
func (f *Filler) narrow(column *facts.Column, key any) error {
	table, name := sqltoken.QuoteTable(f.Insert.Schema, f.Insert.Name), f.Insert.Table.Key
	return refuse(narrowColumn, rewrite.StatementError{
		Table: f.Name(), Column: name,
		Message: fmt.Sprintf("column %s of type %s cannot store a key of generator %s; ALTER TABLE %s MODIFY %s %s",
			name, column.Text, f.Table.Rule.GeneratorName, table, sqltoken.QuoteIdentifier(name), typeFor(key)),
	})
}
