package rewrite

import (
	"errors"
	"fmt"
	"slices"
)

// Bind returns the statement to send and its arguments: args and the keys. If literal is set, the keys
// of [Generated] rows are literals. Otherwise the statement is that of [Plan.Query], with a key for
// each placeholder that it adds. A key replaces each argument that asked for one. The function convert
// makes an argument of a key. The arguments are appended to buf, or are args if nothing changes.
//
// Keys for an INSERT … SELECT of several rows are always literals if they don't fit in the statement
// with placeholders.
func Bind[A any](
	p *Plan, buf, args []A, keys *Keys, literal bool, convert func(key any) (A, error),
) (query string, bound []A, err error) {
	in, b := p.Insert, binder[A]{bound: buf, args: args}
	if in == nil {
		return p.text, args, nil
	}
	if keys.Unreported && in.ReportsFirstKey {
		p = p.withoutReport()
	}
	switch {
	case in.counts():
		return b.counter(p, keys, literal, convert)
	case literal:
		query = p.literal(keys)
	default:
		query = p.Query()
	}
	if (literal || p.NumKeys == 0) && !slices.Contains(keys.Asked, true) {
		return query, args, nil
	}
	b.bound = slices.Grow(buf, len(args)+p.NumKeys)
	err = b.rows(in, keys, literal, convert)
	return query, b.end(), err
}

// binder merges keys into arguments. (As one of its fields, convert would be on the heap.)
type binder[A any] struct {
	bound, args []A
	copied      int // number of args that are in bound, or replaced
}

// rows adds the keys of rows.
func (b *binder[A]) rows(in *Insert, keys *Keys, literal bool, convert func(key any) (A, error)) error {
	next := 0
	var boxed boxedKeys
	for row := range in.Rows {
		r := &in.Rows[row]
		if !in.Generates(row, keys) {
			continue
		}
		if added := r.Key == Generated; !added || !literal {
			key, err := convert(boxed.at(keys, next))
			if err != nil {
				return err
			}
			b.add(key, r.Arg, !added)
		}
		next++
	}
	return nil
}

// counter adds the values for the expressions that count the keys of a query.
func (b *binder[A]) counter(
	p *Plan, keys *Keys, literal bool, convert func(key any) (A, error),
) (query string, bound []A, err error) {
	query, values, err := p.counted(keys, literal)
	if err != nil || values == nil {
		return query, b.args, err
	}
	b.bound = slices.Grow(b.bound, len(b.args)+p.NumKeys)
	for _, c := range p.Insert.query.changes {
		n := c.made.placeholders()
		for _, v := range values[:n] {
			arg, err := convert(v)
			if err != nil {
				return "", nil, err
			}
			b.add(arg, c.params, false)
		}
		values = values[n:]
	}
	return query, b.end(), nil
}

// add adds a key before argument at, or instead of it.
func (b *binder[A]) add(key A, at int, replaces bool) {
	b.bound = append(append(b.bound, b.args[b.copied:at]...), key)
	if b.copied = at; replaces {
		b.copied++
	}
}

// end adds the remaining arguments, and returns all of them.
func (b *binder[A]) end() []A { return append(b.bound, b.args[b.copied:]...) }

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
	return Bind(plan, nil, args, &keys, len(args) == 0 && keys.haveLiterals(), asArgument)
}

// asArgument is the function convert of [Bind] for arguments of any type.
func asArgument(key any) (any, error) { return key, nil }

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
