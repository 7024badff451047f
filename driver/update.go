package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
)

// guardsUpdates reports whether UPDATEs of a table are held against its actual
// tables.
func guardsUpdates(t *rule.Table) bool {
	return t.Sharding != nil && t.Sharding.Err == nil && t.ShardGuard != rule.GuardOff
}

// mayUpdate reports whether a text that need not be parsed may change a sharding
// column. Most UPDATEs are of tables that have none.
func (r *ruleSet) mayUpdate(query string, class rewrite.Class) bool {
	if !r.guardsUpdates || !rewrite.MayUpdate(query, class) {
		return false
	}
	if class == rewrite.ClassPass {
		if schema, name, ok := rewrite.UpdateTarget(query); ok {
			return r.updatedTable(schema, name) != nil
		}
	}
	return true
}

// updatedTable is the table that an UPDATE names, nil where it may change all of it.
func (r *ruleSet) updatedTable(schema, name string) *rule.Table {
	if t := r.generators.Lookup(schema, name); t != nil && guardsUpdates(t) {
		return t
	}
	return nil
}

// updatePlan returns the plan of a text for which mayUpdate is true. What the
// session is like is asked only where what it changes depends on that.
func (r *ruleSet) updatePlan(ctx context.Context, s *session, query string) (*plan, error) {
	for {
		key := planKey{text: query}
		if s.modeKnown {
			key.mode, key.charset = s.mode, s.charset
		}
		p := r.plans.get(key)
		if p == nil {
			g := reading{session: s, rules: r}
			var err error
			if p, err = g.read(ctx, key); err != nil {
				return nil, err
			}
			if r.plans.holds(key, p) {
				r.plans.put(key, p)
			}
		}
		if s.modeKnown || len(p.Updates) == 0 || p.Consulted == 0 && !p.ConsultedCharset {
			return p, nil
		}
		if _, _, err := s.readingMode(ctx); err != nil {
			return nil, err
		}
	}
}

// updates is what finds the tables of UPDATEs, nil where they are not looked at.
func (g *reading) updates() func(schema, name string) *rewrite.Table {
	if !g.rules.guardsUpdates {
		return nil
	}
	return g.lookupUpdated
}

// lookupUpdated is lookup for the tables of an UPDATE.
func (g *reading) lookupUpdated(schema, name string) *rewrite.Table {
	r := g.rules.updatedTable(schema, name)
	if r == nil {
		return nil
	}
	fixed := r.Sharding.Columns
	if gene := r.Gene; gene != nil && !slices.ContainsFunc(fixed, func(c string) bool { return strings.EqualFold(c, gene.Column) }) {
		fixed = append(slices.Clip(fixed), gene.Column)
	}
	return g.note(&rewrite.Table{KeyColumn: r.Column, Kind: rewrite.KindInteger, Fixed: fixed}, g.rules.plans.table(r))
}

// updated is the table of an Update, and the actual one that it names; nil for none.
type updated struct {
	table *table
	shard *shard
}

// checkUpdates returns the error for a text that changes a sharding column, so that
// a row would not be where it belongs.
func (p *plan) checkUpdates(ctx context.Context, s *session, args []driver.NamedValue) error {
	for i := range p.Updates {
		if err := p.checkUpdate(ctx, s, i, args); err != nil {
			return err
		}
	}
	return nil
}

// errExpression is why an UPDATE to an expression is refused.
var errExpression = errors.New("it is an expression, and the row stays where it is")

func (p *plan) checkUpdate(ctx context.Context, s *session, i int, args []driver.NamedValue) error {
	u, t, x := &p.Updates[i], p.updated[i].table, p.updated[i].shard
	var columns []string // those that take a value
	var values []any
	for c, column := range u.Table.Fixed {
		kind, param, value := p.Set(u, c)
		switch kind {
		case rewrite.GivenExpression:
			return t.judge(ctx, p.rules.logger, &t.warnedUpdate, &WrongShardError{Columns: []string{column}, Table: tableName(u.Schema, u.Name), Err: errExpression})
		case rewrite.GivenParam:
			if param >= len(args) {
				return nil // the server says so
			}
			var ok bool
			if value, ok = shardValue(args[param].Value); !ok {
				continue
			}
		case rewrite.GivenLiteral:
		default:
			continue
		}
		columns, values = append(columns, column), append(values, value)
	}
	if x == nil {
		return nil // where the rows are is not known
	}
	if err := x.checkGene(ctx, p.rules.logger, columns, values); err != nil {
		return err
	}
	of := make([]any, 0, len(x.Columns))
	for _, column := range x.Columns {
		for k := range columns {
			if columns[k] == column {
				of = append(of, values[k])
			}
		}
	}
	if len(of) < len(x.Columns) {
		return nil // other columns decide too, or do alone
	}
	return t.judge(ctx, p.rules.logger, &x.warned, x.wrong(ctx, s, of))
}

// checkGene returns the error for a row whose keys carry the shard of another column, when
// that is set to a value of another shard: by it the row would be looked for elsewhere.
func (x *shard) checkGene(ctx context.Context, logger shardLogger, columns []string, values []any) error {
	gene := x.table.rule.Gene
	if gene == nil || x.fit == nil || !x.byGene {
		return nil
	}
	at := slices.IndexFunc(columns, func(c string) bool { return strings.EqualFold(c, gene.Column) })
	if at < 0 {
		return nil
	}
	of, err := gene.Of(values[at])
	if err != nil || x.fit.Has(far|of) {
		return nil // a value without gene is not looked for by it
	}
	return x.wrongGene(ctx, logger, -1, rowGene{of, values[at]}, nil)
}
