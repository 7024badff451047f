// Package migrate writes a rule for existing tables, and plans how they change from
// AUTO_INCREMENT to generated keys: statements and checks. It only reads the database.
package migrate

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/shardkey/shardkey/internal/nearest"
	"github.com/shardkey/shardkey/internal/schema"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rule"
)

// Plan lists the steps of a migration. Statements have no semicolon at their end.
type Plan struct {
	// Widen are the statements that change keys, and the columns that refer to them, to
	// BIGINT, in their order. Programs that still use AUTO_INCREMENT work before and after.
	Widen []string `json:"widen"`
	// Rule is a rule file for the tables; empty if NewPlan had a rule.
	Rule string `json:"rule,omitempty"`
	// Auto are the statements that remove AUTO_INCREMENT. Run them when every program
	// generates its keys.
	Auto []string `json:"autoIncrement"`
	// Maxima are queries for the greatest key of each table.
	Maxima []string `json:"maxima"`
	// Notes describe the steps that no statement does.
	Notes []string `json:"notes,omitempty"`
	// Keys are the tables with their key columns: app.t_order.order_id.
	Keys []string `json:"keys"`
}

type key struct {
	schema.ColumnOf
	logical string
}

// ErrNoTable is in the chain of the error for a table that is not there, or that has
// no key to migrate.
var ErrNoTable = errors.New("shardkey: no table to migrate")

// NewPlan returns the plan for the named tables. Without names it is for all tables of the rule,
// or without a rule (live is nil) for all tables with AUTO_INCREMENT. A name is an actual or
// a logical table. The source is from [Read] with the same connection. The chain of the
// error has [ErrNoTable] if there is no such table.
func NewPlan(ctx context.Context, conn *sql.Conn, source Source, live *rule.Live,
	names ...string) (*Plan, error) {
	m := &migration{ctx: ctx, q: conn, d: source.schema, live: live, plan: &Plan{}, families: map[*schema.Table]string{}}
	for _, f := range group([]Source{source}) {
		for _, member := range f.members {
			m.families[member.table] = f.logical
		}
	}
	if err := m.choose(names); err != nil {
		return nil, err
	}
	for _, step := range []func() error{m.widen, m.partitions, m.auto, m.notes} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if live == nil {
		var chosen []string
		for _, k := range m.keys {
			chosen = append(chosen, k.Table.Name)
		}
		r := NewRule([]Source{source}, chosen...)
		r.widened = true
		m.plan.Rule = r.YAML()
	}
	return m.plan, nil
}

type migration struct {
	ctx  context.Context
	q    schema.Queryer
	d    *schema.Database
	live *rule.Live
	// families are the logical names of the tables that a new rule may have.
	families map[*schema.Table]string

	keys []key
	wide []schema.Change // the columns that become BIGINT
	plan *Plan
}

func (m *migration) choose(names []string) error {
	found := map[string]bool{}
	var known []string
	for _, t := range m.d.Tables {
		if t.Outside || t.IsView {
			continue
		}
		k := key{logical: m.logical(t)}
		k.Table = t
		known = append(known, t.Name)
		named := len(names) == 0
		for _, name := range names {
			isName := func(n string) bool { return strings.EqualFold(n, name) }
			if slices.ContainsFunc([]string{t.Name, k.logical, t.Schema + "." + t.Name}, isName) {
				named, found[name] = true, true
			}
		}
		if !named {
			continue
		}
		column, why := m.column(t, len(names) > 0)
		if why != "" {
			return fmt.Errorf("%w: %s %s", ErrNoTable, m.d.Shown(t), why)
		}
		if column != nil {
			k.Column = column
			m.keys = append(m.keys, k)
			m.plan.Keys = append(m.plan.Keys, m.d.Shown(t)+"."+column.Shown())
		}
	}
	for _, name := range names {
		if !found[name] {
			err := fmt.Errorf("%w: there is no table %q in %s", ErrNoTable, name, sqltoken.Printable(m.d.Name))
			if near := nearest.Word(name, known); near != "" {
				err = fmt.Errorf("%w; did you mean %s?", err, sqltoken.Printable(near))
			}
			return err
		}
	}
	if len(m.keys) == 0 {
		return fmt.Errorf("%w: no table of %s, or none of the rule, has AUTO_INCREMENT", ErrNoTable, sqltoken.Printable(m.d.Name))
	}
	return nil
}

func (m *migration) logical(t *schema.Table) string {
	if m.live != nil {
		if ruled := m.live.Lookup(t.Schema, t.Name); ruled != nil {
			return ruled.Logical
		}
	}
	return cmp.Or(m.families[t], t.Name)
}

// column is the key column of a table; nil for one that is not to be migrated, and why
// where it was asked for.
func (m *migration) column(t *schema.Table, asked bool) (c *schema.Column, why string) {
	if m.live != nil {
		if ruled := m.live.Lookup(t.Schema, t.Name); ruled != nil {
			c = t.Column(ruled.Column)
		} else if !asked {
			return nil, ""
		}
	}
	if c == nil {
		c = t.AutoIncrement()
	}
	if c == nil && asked {
		c = keyOf(t, m.logical(t))
	}
	switch {
	case c == nil:
		why = "has no AUTO_INCREMENT and no primary key of one column"
	case !c.IsInteger():
		why = fmt.Sprintf("has the key %s of type %s, which is not an integer type", c.Shown(), sqltoken.Printable(c.Type))
	default:
		return c, ""
	}
	if !asked {
		why = ""
	}
	return nil, why
}

func (m *migration) widen() (err error) {
	var changes []schema.Change
	add := func(c schema.ColumnOf, typ string) {
		if !slices.ContainsFunc(changes, func(o schema.Change) bool { return o.ColumnOf == c }) {
			changes = append(changes, schema.Change{ColumnOf: c, Type: typ})
		}
	}
	for _, k := range m.keys {
		add(k.ColumnOf, schema.Bigint(k.Column))
	}
	changes = m.d.Connected(changes)
	for _, k := range m.keys {
		for _, c := range m.d.ReferringByName(k.Table, k.logical, k.Column.Name) {
			if c.Column.Holds().High < 1<<62 {
				add(c, schema.Bigint(c.Column))
			}
		}
	}
	for _, c := range slices.Clone(changes) {
		for _, of := range computed(c.Table, c.Column.Name) {
			if of.Holds().High < 1<<62 {
				add(schema.ColumnOf{Table: c.Table, Column: of}, schema.Bigint(of))
			}
		}
	}
	m.wide = changes
	m.plan.Widen, err = m.d.Widen(m.ctx, m.q, changes)
	return err
}

// computed returns the generated columns of integers whose expression names a column.
func computed(t *schema.Table, from string) (list []*schema.Column) {
	name := regexp.MustCompile("(?i)(?:^|[^A-Za-z0-9_$])" + regexp.QuoteMeta(from) + "(?:$|[^A-Za-z0-9_$])")
	for _, c := range t.Columns {
		if c.Generated != "" && c.IsInteger() && name.MatchString(c.Generated) {
			list = append(list, c)
		}
	}
	return list
}

func (m *migration) auto() error {
	linked := false
	for _, k := range m.keys {
		alias := []rune(k.Table.Name + "_" + k.Column.Name) // of at most 64 characters
		maximum := fmt.Sprintf("SELECT MAX(%s) AS %s FROM %s", sqltoken.QuoteIdentifier(k.Column.Name),
			sqltoken.QuoteIdentifier(string(alias[:min(len(alias), 64)])), m.d.Quoted(k.Table))
		m.plan.Maxima = append(m.plan.Maxima, maximum)
		if !k.Column.AutoIncrement {
			continue
		}
		statement, err := m.d.WithoutAuto(m.ctx, m.q, schema.Change{ColumnOf: k.ColumnOf, Type: schema.Bigint(k.Column)})
		if err != nil {
			return err
		}
		m.plan.Auto = append(m.plan.Auto, statement)
		linked = linked || m.d.IsLinked(k.ColumnOf)
	}
	if linked {
		m.plan.Auto = append(slices.Insert(m.plan.Auto, 0, "SET foreign_key_checks = 0"), "SET foreign_key_checks = 1")
	}
	return nil
}

var (
	partitioned = regexp.MustCompile(`(?i)PARTITION BY (RANGE|LIST)\s*(?:COLUMNS)?\s*\(([^)]*)\)`)
	hasHighest  = regexp.MustCompile(`(?i)VALUES LESS THAN \(?MAXVALUE`)
)

// partitions gives tables that are partitioned by ranges of the key one for the keys
// to come.
func (m *migration) partitions() error {
	for _, k := range m.keys {
		if !k.Table.Partitioned {
			continue
		}
		defs, err := m.d.Definitions(m.ctx, m.q, k.Table)
		if err != nil {
			return err
		}
		by := partitioned.FindStringSubmatch(defs.Text)
		switch {
		case by == nil || !strings.Contains(strings.ToLower(by[2]), strings.ToLower(k.Column.Name)):
		case strings.EqualFold(by[1], "LIST"):
			m.note("%s is partitioned by a list of keys, which contains no generated keys", m.d.Shown(k.Table))
		case !hasHighest.MatchString(defs.Text):
			m.plan.Widen = append(m.plan.Widen, "ALTER TABLE "+m.d.Quoted(k.Table)+
				" ADD PARTITION (PARTITION p_generated VALUES LESS THAN (MAXVALUE))")
		}
	}
	return nil
}

func (m *migration) note(format string, args ...any) {
	m.plan.Notes = append(m.plan.Notes, fmt.Sprintf(format, args...))
}

// notes says what no statement does.
func (m *migration) notes() error {
	for _, k := range m.keys {
		backEnds, err := m.d.BackEnds(m.ctx, m.q, k.Table)
		if err != nil {
			return err
		}
		if len(backEnds) > 0 {
			m.note("%s is a Spider table: the tables on its back ends %s were not examined; "+
				"examine them and change their columns too", m.d.Shown(k.Table), sqltoken.Printable(strings.Join(backEnds, ", ")))
		}
		for _, c := range computed(k.Table, k.Column.Name) {
			m.note("%s.%s is generated from the key (%s): check that a BIGINT holds the result for large keys",
				m.d.Shown(k.Table), c.Shown(), sqltoken.Printable(c.Generated))
		}
		if alone, with := k.Table.Uniqueness(k.Column.Name); !alone && with != nil {
			m.note("%s: the key is unique only together with other columns (%s), so the server accepts duplicate keys",
				m.d.Shown(k.Table), sqltoken.Printable(strings.Join(with, ", ")))
		}
	}
	if n := len(m.d.Shards); n > 1 {
		m.note("vtgate shows the tables of one shard; the other %d shards were not examined", n-1)
	}
	isWide := func(c schema.ColumnOf) bool {
		return slices.ContainsFunc(m.wide, func(w schema.Change) bool { return w.ColumnOf == c })
	}
	if names := m.d.Names(m.d.Narrow(isWide)); len(names) > 0 {
		m.note("these integer columns below BIGINT are left as they are; if one of them holds a key, "+
			"make it BIGINT too: %s", strings.Join(names, ", "))
	}
	m.note("also change stored programs and triggers with keys in INT variables, and programs that read keys into 32 bits; " +
		"JavaScript rounds keys above 2^53 (https://github.com/shardkey/shardkey/blob/main/docs/help/faq.md)")
	m.note("foreign keys that the user of --dsn can't see are not included")
	return nil
}

//go:embed plan.sql.tmpl
var planSQL string

var planTemplate = template.Must(template.New("plan.sql").Funcs(template.FuncMap{
	"join": strings.Join, "comment": comment,
}).Parse(planSQL))

func comment(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight("-- "+line, " \n") + "\n")
	}
	return b.String()
}

// SQL returns the plan as an SQL script with comments. The statements that remove AUTO_INCREMENT are
// comments too, unless dropAuto is set, so that the script can run while programs still insert
// without shardkey.
func (p *Plan) SQL(dropAuto bool) string {
	var b strings.Builder
	data := struct {
		*Plan
		DropAuto bool
	}{p, dropAuto}
	if err := planTemplate.Execute(&b, data); err != nil {
		panic(err) // of the template
	}
	return b.String()
}
