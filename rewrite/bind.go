package rewrite

import (
	"errors"
	"fmt"
)

// Rewrite returns the statement and its arguments with keys. If it needs keys, it calls generate with
// their number n. It doesn't change args. A statement with arguments gets its
// keys as arguments. Without arguments it gets them as literals, if they are integers, strings or
// []byte. A wrong number of arguments or keys is an error, and so is a statement with a [Plan.Count].
func (p *Plan) Rewrite(args []any, generate func(in *Insert, n int) ([]any, error)) (string, []any, error) {
	in := p.Insert
	if in == nil {
		return p.text, args, nil
	}
	if len(args) != p.NumArgs {
		return "", nil, fmt.Errorf("shardkey: expected %d arguments, found %d", p.NumArgs, len(args))
	}
	asks, n, err := p.asking(in, args)
	if err != nil {
		return "", nil, err
	}
	var keys Keys
	if n > 0 {
		if keys.Values, err = generate(in, n); err != nil {
			return "", nil, err
		}
		if found := len(keys.Values); found != n {
			return "", nil, fmt.Errorf("shardkey: expected %d keys, found %d", n, found)
		}
	}
	if len(args) == 0 {
		if query, ok := p.Literal(keys); ok {
			return query, nil, nil
		}
	}
	out := make([]any, 0, len(args)+p.NumKeys)
	out = merge(p.Insert, out, args, true, asks, func(i int) any { return keys.Values[i] })
	return p.Query(), out, nil
}

// errSelect is the error of Rewrite for an INSERT … SELECT.
var errSelect = errors.New("shardkey: the statement needs the keys of RewriteSelect")

// asking returns the rows that a key is generated for, and their number.
func (p *Plan) asking(in *Insert, args []any) (asks []bool, n int, err error) {
	if in.SelectKey == Generated {
		return nil, 0, errSelect
	}
	if in.Invalid {
		return nil, 0, nil
	}
	mode := func() (string, error) { return p.mode.String(), nil }
	column := func() (strings, unsigned bool, err error) { return false, in.Table.Unsigned, nil }
	asks = make([]bool, len(in.Rows))
	for row, r := range in.Rows {
		asks[row] = r.isAdded()
		if r.Key == Argument && !in.Table.KeepExplicit {
			if asks[row], err = in.AsksForKey(args[r.Arg], row, mode, column); err != nil {
				return nil, 0, err
			}
		}
		if asks[row] {
			n++
		}
	}
	return asks, n, nil
}

// merge appends to out the arguments of a statement with keys: args, in which a key replaces each
// [Argument] for which generated is set. If placeholders is set, it also has a key for each
// placeholder that [Plan.Query] adds. key returns key i, counted in the order of the rows that get
// one.
func merge[A any](in *Insert, out, args []A, placeholders bool, generated []bool, key func(i int) A) []A {
	copied, next := 0, 0
	for row := range in.Rows {
		r := &in.Rows[row]
		added := in.AllGenerated || r.isAdded()
		if in.Invalid || !added && (r.Key != Argument || !generated[row]) {
			continue
		}
		if placeholders || !added {
			out = append(append(out, args[copied:r.Arg]...), key(next))
			copied = r.Arg
		}
		if !added {
			copied++ // the key replaces it
		}
		next++
	}
	return append(out, args[copied:]...)
}
