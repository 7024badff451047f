package rewrite

import (
	"errors"
	"fmt"
	"slices"
)

// Bind returns the statement to send and its arguments: args and the keys. If literal is set, the keys
// of [Generated] rows are literals. Otherwise the statement is that of [Plan.Query], with a key for
// each placeholder that it adds. A key replaces each argument that asked for one. The function set
// sets a new argument to a key. The arguments are appended to buf, or are args if nothing changes.
//
// Keys for an INSERT … SELECT of several rows are always literals if they don't fit in the statement
// with placeholders.
func Bind[A any](
	p *Plan, buf, args []A, keys *Keys, literal bool, set func(arg *A, key any) error,
) (query string, bound []A, err error) {
	in := p.Insert
	if in == nil {
		return p.text, args, nil
	}
	if keys.Unreported && in.ReportsFirstKey {
		p = p.withoutReport()
	}
	switch {
	case in.counts():
		return bindCounter(p, buf, args, keys, literal, set)
	case literal:
		query = p.literal(keys)
	default:
		query = p.Query()
	}
	if (literal || p.NumKeys == 0) && !slices.Contains(keys.Asked, true) {
		return query, args, nil
	}
	bound = slices.Grow(buf, len(args)+p.NumKeys)
	copied, next := 0, 0 // numbers of args that are in bound, or replaced, and of keys
	var boxed boxedKeys
	for row := range in.Rows {
		r := &in.Rows[row]
		if !in.Generates(row, keys) {
			continue
		}
		key := next
		next++
		if r.Key == Generated && literal {
			continue
		}
		bound = append(bound, args[copied:r.Arg]...)
		if copied = r.Arg; r.Key != Generated {
			copied++
		}
		if bound, err = appendKey(bound, boxed.at(keys, key), set); err != nil {
			return "", nil, err
		}
	}
	return query, append(bound, args[copied:]...), nil
}

// bindCounter is Bind for expressions that count the keys of a query.
func bindCounter[A any](
	p *Plan, buf, args []A, keys *Keys, literal bool, set func(arg *A, key any) error,
) (query string, bound []A, err error) {
	query, values, err := p.counted(keys, literal)
	if err != nil || values == nil {
		return query, args, err
	}
	bound = slices.Grow(buf, len(args)+p.NumKeys)
	copied := 0
	for _, c := range p.Insert.query.changes {
		for range c.made.placeholders() {
			bound = append(bound, args[copied:c.params]...)
			copied = c.params
			if bound, err = appendKey(bound, values[0], set); err != nil {
				return "", nil, err
			}
			values = values[1:]
		}
	}
	return query, append(bound, args[copied:]...), nil
}

func appendKey[A any](bound []A, key any, set func(arg *A, key any) error) ([]A, error) {
	var arg A
	bound = append(bound, arg)
	return bound, set(&bound[len(bound)-1], key)
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
	if keys.Asked, n, err = in.Asks(func(i int) any { return args[i] }, &mode, in.Table); err != nil {
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
	return Bind(plan, nil, args, &keys, len(args) == 0 && keys.haveLiterals(), setAny)
}

// setAny is the function set of [Bind] for arguments of any type.
func setAny(arg *any, key any) error {
	*arg = key
	return nil
}

func errArgs(want, have int) error {
	return fmt.Errorf("shardkey: expected %d arguments, found %d", want, have)
}

// Asks reports for each row whether the argument that is its key requests a generated one, and returns
// the number n of rows that get a key. asked is nil if no key is an argument. The function arg returns
// an argument.
//
// As with AUTO_INCREMENT, an argument for an integer key requests one if it is nil, or if the server
// stores the value as 0. For a string key it does if it is nil or empty. The result of a
// [database/sql/driver.Valuer] counts. If that is uncertain, the error is a [*StatementError].
//
// sqlMode is the session's, as [Options].SQLMode, or nil if unknown. of has the facts about the key
// column. If a fact that matters is unknown, the error is a [*Needs].
func (in *Insert) Asks(arg func(i int) any, sqlMode *string, of *Table) (asked []bool, n int, err error) {
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
			if asked[row], err = in.asks(arg(r.Arg), row, sqlMode, of); err != nil {
				return nil, 0, err
			}
			if asked[row] {
				n++
			}
		}
	}
	return asked, n, nil
}
