package driver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/internal/rewrite"
	"github.com/shardkey/shardkey/spi"
)

// check counts the rows that need a key, and refuses the rows that can't be inserted. genes are
// the rows that need a key, if keys have one.
func (e *execution) check(ctx context.Context, k *insertion) (n int, genes *geneRows, err error) {
	if n = k.in.Rows(); !k.in.AllFilled() {
		if n, err = e.decide(ctx, k); err != nil {
			return n, nil, err
		}
	}
	if k.shard != nil {
		if err := e.guard(ctx, k, k.shard); err != nil {
			return n, nil, err
		}
	}
	if n > 0 && k.geneColumn != nil {
		genes, err = e.geneRows(ctx, k, n)
	}
	return n, genes, err
}

// generate makes the keys of an insert's rows, and checks that the rows may have them.
func (e *execution) generate(ctx context.Context, k *insertion) error {
	var genes *geneRows
	var err error
	n, x := k.in.Rows(), k.shard
	if x != nil || k.geneColumn != nil || !k.in.AllFilled() { // else there is nothing to check
		if n, genes, err = e.check(ctx, k); err != nil {
			return err
		}
	}
	if n == 0 {
		_, err := k.column.Learn(ctx, e.session)
		return err
	}
	switch {
	case k.geneColumn != nil:
		k.keys, err = genes.make(ctx, k.table, k.one)
	case x != nil && x.key >= 0:
		k.keys, err = e.fitting(ctx, k, x, n)
	default:
		k.keys, err = k.table.generate(ctx, n, k.one)
	}
	if err != nil {
		return err
	}
	err = k.accept(ctx, e.plan.rules, e.session, &k.keys, e.out == nil)
	k.plain = k.isPlain(&k.keys)
	return err
}

// accept counts the keys of one statement, and checks that the table can have them. alone says
// that the caller sees only the first.
func (t *target) accept(ctx context.Context, rules *ruleSet, s *session.Session, keys *rewrite.Keys, alone bool) error {
	n := keys.Len()
	if n > 1 && alone {
		if err := rules.checkConsecutive(ctx, t.table, keys); err != nil {
			return err
		}
	}
	t.table.counts.filled(n)
	if !t.isPlain(keys) {
		if err := t.table.checkKeys(ctx, s, t.column, keys); err != nil {
			return err
		}
	}
	if rules.filled == nil {
		return nil
	}
	return rules.tellFilled(ctx, t.table, n, keys)
}

// isPlain reports whether there is one row with a generated key that the column holds, and
// neither the statement nor the table makes anything else of it.
func (t *target) isPlain(keys *rewrite.Keys) bool {
	facts := t.column.Known()
	return t.single && facts != nil && facts.Plain && len(keys.Ints) == 1 && keys.Ints[0] >= 0
}

// decide counts the rows that need a key, and for those whose key is bound
// finds out whether it is missing.
func (e *execution) decide(ctx context.Context, k *insertion) (n int, err error) {
	for i := range k.in.Rows() {
		kind, param := k.in.Slot(i)
		switch kind {
		case rewrite.SlotFill, rewrite.SlotExpression:
			n++
		case rewrite.SlotParam:
			if k.filled == nil {
				k.filled = make([]bool, k.in.Rows())
			}
			if k.in.Table.KeepExplicit {
				continue
			}
			if k.filled[i], err = k.table.isMissing(ctx, e.session, e.user[param].Value, k.in, i); err != nil {
				return 0, err
			}
			if k.filled[i] {
				n++
			}
		}
	}
	return n, nil
}

// isGenerated reports whether row i's key was generated.
func (k *insertion) isGenerated(i int) bool {
	switch kind, _ := k.in.Slot(i); kind {
	case rewrite.SlotFill, rewrite.SlotExpression:
		return true
	case rewrite.SlotParam:
		return k.filled[i]
	}
	return false
}

// generate makes n keys in one call, and counts them. One key goes into one, which
// spares an allocation.
func (t *table) generate(ctx context.Context, n int, one *[1]int64) (keys rewrite.Keys, err error) {
	start := t.counts.start()
	defer t.generated(start, n, &err)
	if t.ints == nil {
		keys.Values, err = t.makeValues(ctx, n)
		return keys, err
	}
	if keys.Ints = one[:]; n > 1 {
		keys.Ints = make([]int64, n)
	}
	return keys, t.ints.GenerateInt64Keys(ctx, t.column(), keys.Ints)
}

// makeValues makes n keys of another type than int64.
func (t *table) makeValues(ctx context.Context, n int) ([]any, error) {
	values, err := t.rule.Generator.GenerateKeys(ctx, t.column(), n)
	switch {
	case err != nil:
		return nil, err
	case len(values) != n:
		return nil, fmt.Errorf("it made %d keys where %d were asked for", len(values), n)
	}
	for i, v := range values {
		if values[i] = plainKey(v); values[i] == nil {
			return nil, fmt.Errorf("key %d of %d is nil", i+1, n)
		}
	}
	if t.kind() == rewrite.KindUnknown {
		t.setKind(kindOf(values[0]))
	}
	return values, nil
}

// generated is deferred by what calls the generator for n keys.
func (t *table) generated(start time.Time, n int, err *error) {
	if p := recover(); p != nil {
		*err = &guard.PanicError{What: "it", Value: p}
	}
	if *err != nil {
		*err = t.noKey(hideBadConn(*err))
	}
	t.counts.made(start, n, *err)
}

// noKey returns the error for keys that the generator could not make.
func (t *table) noKey(err error) error {
	reason := reasonNoKey
	if errors.Is(err, spi.ErrNoFittingKey) {
		reason = reasonNoFittingKey
	}
	return &StatementError{
		Reason: reason, Table: t.rule.Logical, Column: t.rule.Column,
		Err: &GeneratorError{t.rule.GeneratorName, t.rule.Logical, t.rule.Column, err},
	}
}
