package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"log/slog"
	"time"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/copyrows"
	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// refuseSource returns the error for an INSERT … SELECT whose rows can't be copied. err may be nil.
func refuseSource(in *rewrite.Insert, message string, err error) error {
	if err != nil {
		message += ": " + plainText(err)
	}
	return refuse(reasonUnsupported, StatementError{Table: nameOf(in), Message: "INSERT … SELECT: " + message, Err: err})
}

// executeSource executes an INSERT … SELECT.
func (p *plan) executeSource(
	ctx context.Context, s *session.Session, prepared bool, out *keysList, args []driver.NamedValue, want base.Want,
) (r base.Reply, next followUp, err error) {
	t := &p.targets[0]
	switch {
	case s.PendingTransaction():
		// The query is sent first, and would use up SET TRANSACTION.
		return r, done, refuseSource(t.in, "SET TRANSACTION precedes it; begin a transaction first, "+
			"or use SET SESSION TRANSACTION", nil)
	case t.in.Rows[0].Key == rewrite.Literal:
		r, err = p.executeKeptSource(ctx, s, args, want)
		return r, done, err
	}
	keys := &sourceKeys{plannedInsert: t, rules: p.rules, session: s, alone: out == nil}
	if err := keys.learn(ctx); err != nil {
		return r, done, err
	}
	copying := copyrows.Statement{
		Session: s, Text: p.key.text, Insert: t.in, Key: keys.column, Args: args, Keys: keys,
		Prepared: prepared, RowsAtOnce: p.rules.rowsAtOnce,
		Done: func(r *copyrows.Result) {
			if out != nil {
				out.set(Keys{r.Keys(), p.targets[0].table.rule.Column})
			}
		},
	}
	start := time.Now()
	r, sent, err := copying.Run(ctx, want)
	if cause, ok := errors.AsType[*copyrows.Refusal](err); ok {
		err = refuseSource(t.in, cause.Reason, cause.Err)
	} else if err != nil {
		err = p.explainColumn(err)
	}
	if p.rules.logger.Enabled(ctx, slog.LevelDebug) {
		logSent(ctx, p, &message{text: sent.Query, args: sent.Args}, sent.Keys, time.Since(start), err)
	}
	return r, next, err
}

// executeKeptSource executes an INSERT … SELECT whose rows all have keys. It sends the statement
// unchanged.
func (p *plan) executeKeptSource(
	ctx context.Context, s *session.Session, args []driver.NamedValue, want base.Want,
) (base.Reply, error) {
	use, err := s.BeforePass(ctx, p.key.text, sqltoken.ClassMayInsert, nil, true)
	if err != nil {
		return base.Reply{}, err
	}
	r, err := s.Base.Send(ctx, p.key.text, args, 0, want)
	s.AfterPass(ctx, use, nil, nil, err)
	return r, err
}

// checkSource returns the error with which every execution of an INSERT … SELECT is refused.
func (p *plan) checkSource(ctx context.Context, s *session.Session) error {
	if p.targets[0].in.Rows[0].Key == rewrite.Literal {
		return nil
	}
	return (&sourceKeys{plannedInsert: &p.targets[0], session: s}).learn(ctx)
}

// sourceKeys generates the keys of an INSERT … SELECT; see [copyrows.Keys].
type sourceKeys struct {
	*plannedInsert
	rules   *ruleVersion
	session *session.Session
	column  *facts.Column // what is known of the key column
	gene    *facts.Column // and of the column of the shard bits, if keys have some
	alone   bool          // the caller sees only the first key

	n     int       // the number of rows that need a key
	shard int       // index of the query's column for shard bits
	drawn *geneRows // rows that need a key with shard bits; nil if keys have none
	one   [1]int64
}

var _ copyrows.Keys = (*sourceKeys)(nil)

// learn queries the facts that depend on the rows' values. The connection can't run other queries
// while rows are read.
func (k *sourceKeys) learn(ctx context.Context) (err error) {
	if k.column, err = k.session.KeyColumn(ctx, k.in); err != nil {
		return err
	}
	if k.in.Source.KeyIndex >= 0 {
		if _, _, err := k.session.Mode(ctx); err != nil {
			return err
		}
	}
	if k.table.gene != nil {
		k.drawn = k.table.newGeneRows(nameOf(k.in), 2)
		k.shard, err = k.geneIndex(ctx)
	}
	return err
}

// Explicit implements copyrows.Keys.
func (k *sourceKeys) Explicit(ctx context.Context, row int, v driver.Value) (key any, missing bool, err error) {
	if missing, err = k.table.isMissing(ctx, k.session, v, k.in, row); missing || err != nil {
		return nil, missing, err
	}
	if key = boundKey(k.keyKind(), k.column, v); !k.column.Keeps(key) {
		key = nil
	}
	return key, false, nil
}

// Add implements copyrows.Keys.
func (k *sourceKeys) Add(ctx context.Context, row []driver.Value) error {
	if k.n++; k.drawn == nil {
		return nil
	}
	return k.addGene(ctx, row[k.shard])
}

// Generate implements copyrows.Keys.
func (k *sourceKeys) Generate(ctx context.Context) (keys rewrite.Keys, err error) {
	if k.drawn != nil {
		keys, err = k.drawn.make(ctx, k.table, &k.one)
	} else {
		keys, err = k.plannedInsert.generate(ctx, k.n, &k.one)
	}
	if err == nil {
		err = k.accept(ctx, k.rules, k.session, &k.column, &keys, false, k.alone)
	}
	return keys, err
}

// Unknown implements copyrows.Keys.
func (k *sourceKeys) Unknown(ctx context.Context, rows int, err error) {
	k.warnUnknownKeys(ctx, k.rules.logger, rows, err)
}

// AreText implements copyrows.Keys.
func (k *sourceKeys) AreText() bool { return k.table.kind() == kindText }
