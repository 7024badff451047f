package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/shardkey/shardkey/driver/internal/fill"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/rewrite"
)

// Plan describes how a statement is handled; see [Connector.Plan]. If it has no Insert, the statement
// is passed through unchanged.
type Plan struct {
	*rewrite.Plan
	// Others are the plans of the other statements, in a string of several that are executed one after
	// the other. It is nil for a string that is passed through whole.
	Others []*Plan
	// KeysInText is set if the statement has no arguments. The keys are then literals instead of
	// placeholders.
	KeysInText bool
	// Detail is what the rule adds to Insert.
	Detail struct {
		Table     string // the logical table
		Generator string // the generator's name in the rule
		// Unlisted reports whether the actual table isn't in the rule, so that rows need explicit keys.
		Unlisted bool
		// Unrouted is set if the INSERT names the logical table, which isn't one of its actual tables.
		// It explains that shardkey doesn't choose an actual table, and has their names.
		Unrouted string
		// Notes describe other steps: checks of the rows' table, shard bits, and the server's reports of
		// keys.
		Notes []string
	}
	// Verified is "agrees" if the second parser agrees, "unknown" if it doesn't support the
	// statement, and empty if it wasn't called.
	Verified string
	// Assumes lists assumptions about the server. If one is wrong, the statement may be handled in
	// another way.
	Assumes []string
}

// Plan returns how a statement is handled under the current rule. If executing the statement would
// be refused, Plan returns that error. It opens no connection, generates no key, and logs and
// counts nothing. It is safe for concurrent use.
//
// Plan uses the code that plans executions, and assumes that arguments are valid. It uses the facts
// that the connector has learned about its server. Otherwise it assumes a new server of MySQL or of
// the kind in [Config].Server; see [Plan].Assumes.
//
// The statements of a string are planned as if they didn't change the session.
//
// The parameter columns lists the columns of the table in order, for an INSERT without a column
// list. Without them the error for such an INSERT has [ErrNoConnection] in its chain.
func (connector *Connector) Plan(statement string, columns ...string) (*Plan, error) {
	live, err := connector.use()
	if err != nil {
		return nil, err
	}
	defer live.generators.Release()
	p, err := connector.planStatement(live, statement, columns)
	if !errors.Is(err, rewrite.ErrSeveralStatements) || connector.known.Client.Single {
		return p, err
	}
	var all []*Plan
	for rest := statement; rest != ""; all = append(all, p) {
		before, one := statement[:len(statement)-len(rest)], ""
		if one, rest, err = rewrite.Split(rest, rewrite.Options{}); err == nil {
			p, err = connector.planStatement(live, one, columns)
		}
		if err != nil {
			return nil, afterOthers(refusal(err), before)
		}
	}
	all[0].Others = all[1:]
	return all[0], nil
}

// planStatement is Plan for one statement.
func (connector *Connector) planStatement(live *ruleVersion, statement string, columns []string) (*Plan, error) {
	if !connector.known.Client.Scan(statement).MustParse() {
		p, err := rewrite.Parse(statement, rewrite.Options{})
		return &Plan{Plan: p}, err
	}
	ctx, rules := context.Background(), live.withoutEffect()
	s, a := connector.assume(columns)
	p, err := rules.plan(ctx, s, statement, false)
	if err == nil && p.fills() {
		err = p.check(ctx, s)
	}
	if err != nil {
		return nil, refusal(err)
	}
	out := p.explain()
	out.Assumes = a.Notes
	switch v := &rules.verifier; {
	case v.agreed.Load() > 0:
		out.Verified = "agrees"
	case v.unknown.Load() > 0:
		out.Verified = "unknown"
	}
	return out, nil
}

// check returns the error with which all executions are refused, whatever the arguments are.
func (p *plan) check(ctx context.Context, s *session.Session) error {
	args := make([]driver.NamedValue, p.NumArgs)
	for i := range args {
		args[i].Value = fill.UnknownArg{}
	}
	if p.Insert.UpdatesFixed {
		if err := p.filler.GuardUpdate(ctx, s, args); err != nil {
			return err
		}
	}
	if p.Insert.SelectKey != "" || p.Insert.Invalid {
		return nil
	}
	column, err := s.KeyColumn(ctx, p.Insert)
	if err != nil {
		return err
	}
	return p.filler.Check(ctx, s, column, args)
}

func (p *plan) explain() *Plan {
	out := &Plan{Plan: p.Plan}
	if p.fills() {
		p.explainInsert(out)
		out.KeysInText = p.NumKeys > 0 && p.NumArgs == 0
	}
	return out
}

// explainInsert sets the Detail of whole.
func (p *plan) explainInsert(whole *Plan) {
	in, t, out := p.Insert, p.table.Rule, &whole.Detail
	out.Table, out.Generator, out.Unlisted = t.Logical, t.GeneratorName, p.table.Unlisted != nil
	out.Unrouted = p.rules.unrouted(t, in.Name)
	if out.Unrouted != "" {
		out.Notes = append(out.Notes, out.Unrouted)
	}
	if out.Unlisted {
		out.Notes = append(out.Notes, "the rule doesn't list the table: a row without an explicit key is refused")
	}
	if in.Invalid {
		return
	}
	out.Notes = append(append(out.Notes, p.explainShardBits()...), p.explainShard()...)
	if in.ReportsFirstKey {
		out.Notes = append(out.Notes, "LAST_INSERT_ID(key) makes the server report the first key")
	}
	if in.ReportsExistingKey {
		out.Notes = append(out.Notes, "ON DUPLICATE KEY UPDATE reports the key of a row that exists already")
	}
}

// explainShard returns notes about the actual table.
func (p *plan) explainShard() (notes []string) {
	x, in := p.filler.Actual, p.Insert
	if x == nil {
		return nil
	}
	columns := strings.Join(x.Columns, ", ")
	if x.HasKey() {
		notes = append(notes, fmt.Sprintf("generated keys belong in %s, by %s", in.Name, columns))
	}
	if !x.Guards() || in.SelectKey != "" {
		return notes
	}
	verb := "refused"
	if p.table.Rule.ShardGuard == "warn" {
		verb = "logged"
	}
	return append(notes, fmt.Sprintf("a row that does not belong in %s, by %s, is %s", in.Name, columns, verb))
}

// explainShardBits returns notes about the shard bits in the keys.
func (p *plan) explainShardBits() []string {
	bits := p.table.ShardBits()
	if bits == nil {
		return nil
	}
	return []string{fmt.Sprintf("the lowest %d bits of a generated key are %s, of its row", bits.Bits, bits)}
}
