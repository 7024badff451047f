package rewrite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
)

// Bind returns the statement to send and its arguments: args and the keys, which have the ordinal −1. If
// literal is set, the keys of [Generated] rows are literals. Otherwise the statement is that of
// [Plan.Query], with a key for each placeholder that it adds. A key replaces each argument that asked for
// one. The arguments are appended to buf, or are args if nothing changes.
//
// Keys for an INSERT … SELECT of several rows are always literals if they don't fit in the statement
// with placeholders.
func (plan *Plan) Bind(
	buf, args []driver.NamedValue, keys *Keys, literal bool,
) (query string, bound []driver.NamedValue, err error) {
	in := plan.Insert
	if in == nil {
		return plan.text, args, nil
	}
	if keys.Unreported && in.ReportsFirstKey {
		plan = plan.withoutReport()
	}
	switch {
	case in.counts():
		return plan.bindCounter(buf, args, keys, literal)
	case literal:
		query = plan.literal(keys)
	default:
		query = plan.Query()
	}
	if (literal || plan.NumKeys == 0) && !slices.Contains(keys.Asked, true) {
		return query, args, nil
	}
	bound = slices.Grow(buf, len(args)+plan.NumKeys)
	copied, next := 0, 0 // numbers of args that are in bound, or replaced, and of keys
	var boxed boxedKeys
	for row := range in.Rows {
		if !in.Generates(row, keys) {
			continue
		}
		key, asked := next, keys.asks(row)
		next++
		if literal && !asked {
			continue
		}
		at := in.Rows[row].Arg
		bound = append(bound, args[copied:at]...)
		if copied = at; asked {
			copied++
		}
		bound = append(bound, driver.NamedValue{Ordinal: isKey, Value: boxed.at(keys, key)})
	}
	return query, append(bound, args[copied:]...), nil
}

// isKey is the ordinal of a key among arguments.
const isKey = -1

// bindCounter is Bind for expressions that count the keys of a query.
func (plan *Plan) bindCounter(
	buf, args []driver.NamedValue, keys *Keys, literal bool,
) (query string, bound []driver.NamedValue, err error) {
	query, values, err := plan.counted(keys, literal)
	if err != nil || values == nil {
		return query, args, err
	}
	bound = slices.Grow(buf, len(args)+plan.NumKeys)
	copied := 0
	for _, c := range plan.Insert.query.changes {
		for range c.made.placeholders() {
			bound = append(bound, args[copied:c.params]...)
			copied = c.params
			bound = append(bound, driver.NamedValue{Ordinal: isKey, Value: values[0]})
			values = values[1:]
		}
	}
	return query, append(bound, args[copied:]...), nil
}

// Rewrite returns the statement and its arguments with keys. If it needs keys, it calls generate with
// their number n. It doesn't change args. A statement with arguments gets its keys as arguments.
// Without arguments it gets them as literals, if they are integers, strings or []byte. A wrong number
// of arguments or keys is an error, and so is a statement with a [Plan.Count].
func (plan *Plan) Rewrite(args []any, generate func(in *Insert, n int) ([]any, error)) (string, []any, error) {
	in := plan.Insert
	switch {
	case in == nil:
		return plan.text, args, nil
	case in.counts():
		return "", nil, errors.New("shardkey: the statement needs the keys of RewriteSelect")
	case len(args) != plan.NumArgs:
		return "", nil, errArgs(plan.NumArgs, len(args))
	}
	mode := plan.mode.String()
	var keys Keys
	var n int
	var err error
	if keys.Asked, n, err = in.Asks(namedArgs(args), &mode, in.Table); err != nil {
		return "", nil, err
	}
	if n > 0 {
		if keys.Values, err = generate(in, n); err != nil {
			return "", nil, err
		}
		if found := len(keys.Values); found != n {
			return "", nil, fmt.Errorf("shardkey: expected %d keys, found %d", n, found)
		}
	}
	return plan.bindValues(args, &keys, len(args) == 0 && keys.haveLiterals())
}

// bindValues is Bind for values.
func (plan *Plan) bindValues(args []any, keys *Keys, literal bool) (string, []any, error) {
	named := namedArgs(args)
	query, bound, err := plan.Bind(nil, named, keys, literal)
	switch {
	case err != nil:
		return "", nil, err
	case len(bound) == 0 || len(named) > 0 && &bound[0] == &named[0]:
		return query, args, nil
	}
	sent := make([]any, len(bound))
	for i, arg := range bound {
		sent[i] = arg.Value
	}
	return query, sent, nil
}

func namedArgs(args []any) []driver.NamedValue {
	named := make([]driver.NamedValue, len(args))
	for i, v := range args {
		named[i].Value = v
	}
	return named
}

func errArgs(want, have int) error {
	return fmt.Errorf("shardkey: expected %d arguments, found %d", want, have)
}

// Asks reports for each row whether the argument that is its key requests a generated one, and returns
// the number n of rows that get a key. asked is nil if no key is an argument.
//
// As with AUTO_INCREMENT, an argument for an integer key requests one if it is nil, or if the server
// stores the value as 0. For a string key it does if it is nil or empty. The result of a
// [database/sql/driver.Valuer] counts. If that is uncertain, the error is a [*StatementError].
//
// sqlMode is the session's, as [Options].SQLMode, or nil if unknown. of has the facts about the key
// column. If a fact that matters is unknown, the error is a [*Needs].
func (in *Insert) Asks(args []driver.NamedValue, sqlMode *string, of *Table) (asked []bool, n int, err error) {
	switch {
	case in.Invalid:
		return nil, 0, nil
	case in.AllGenerated:
		return nil, len(in.Rows), nil
	}
	for row, r := range in.Rows {
		switch {
		case r.Key == Generated:
			n++
		case r.Key == Argument:
			if asked == nil {
				asked = make([]bool, len(in.Rows))
			}
			if in.Table.KeepExplicit {
				continue
			}
			if asked[row], err = in.asks(args[r.Arg].Value, row, sqlMode, of); err != nil {
				return nil, 0, err
			}
			if asked[row] {
				n++
			}
		}
	}
	return asked, n, nil
}
