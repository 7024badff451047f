package rule

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/shardkey/shardkey/spi"
)

// Generators are a rule's generators and worker-id assigners, live, for one
// connector. Its methods may be called by many goroutines at once.
type Generators struct {
	rule       *Rule
	tables     []Table
	generators []spi.KeyGenerator // as Rule.generators
	assigners  *assigners
	// shared are the tables for names that several tables have in different
	// schemas, by name in lower case. A statement means the one in the
	// connector's own database; when that is none of them, it gets a table
	// whose generator refuses.
	shared map[string]*Table

	closing sync.Once
	closed  error
}

// Open makes the rule's generators for one connector. No server is asked: a
// generator connects when its first key is wanted. The caller closes what it
// gets.
func (r *Rule) Open(host spi.Host) (*Generators, error) {
	if r == nil || len(r.tables) == 0 {
		return nil, &Error{File: "rule", Reason: "this rule is empty; make one with rule.Load, rule.Parse or rule.New"}
	}
	g := &Generators{rule: r, assigners: newAssigners(r, host)}
	host.WorkerIDAssigner = g.assigners.get
	for _, spec := range r.generators {
		generator, err := r.newGenerator(spec, host)
		if err != nil {
			_ = g.Close()
			return nil, err
		}
		g.generators = append(g.generators, generator)
	}
	for _, t := range r.tables {
		g.tables = append(g.tables, Table{
			Logical: t.name.text, Column: t.column, FillExplicit: t.fill,
			GeneratorName: r.generators[t.generator].name.text,
			Generator:     g.generators[t.generator],
		})
	}
	g.share(databaseOf(host.DSN))
	return g, nil
}

// share settles what the names mean that more than one table has.
func (g *Generators) share(database string) {
	g.shared = map[string]*Table{}
	for name := range g.rule.names.more {
		owners := g.rule.names.all(name)
		if sameTable(owners) {
			continue
		}
		if own, ok := g.rule.names.one(database, name); ok && database != "" {
			g.shared[name] = g.table(own)
			continue
		}
		t := *g.table(slices.MaxFunc(owners, func(a, b owner) int { return int(a.table - b.table) }))
		t.Generator = ambiguous(name)
		g.shared[name] = &t
	}
}

// table gives an owner's table; nil for one without key.
func (g *Generators) table(o owner) *Table {
	if o.table == none {
		return nil
	}
	return &g.tables[o.table]
}

// Lookup finds the table that a statement names, by its logical name or that
// of an actual table, without case. schema is the qualifier in front of the
// name, empty when there is none. It gives nil for a table without rule.
//
// A schema matters only for tables whose data nodes have one
// (dataSource.schema.table): they match no other. Where such tables share a
// name, a statement without schema means the one in the connector's own
// database; when that is none of them, the Table's generator refuses to make
// keys.
func (g *Generators) Lookup(schema, table string) *Table {
	if schema == "" && len(g.shared) > 0 {
		if t, ok := g.shared[strings.ToLower(table)]; ok {
			return t
		}
	}
	o, ok := g.rule.names.one(schema, table)
	if !ok {
		return nil
	}
	return g.table(o)
}

func sameTable(owners []owner) bool {
	for _, o := range owners {
		if o.table != owners[0].table {
			return false
		}
	}
	return true
}

// databaseOf gives the default database of a data source name in
// go-sql-driver/mysql's form: what stands between the last slash and the
// parameters.
func databaseOf(dsn string) string {
	slash := strings.LastIndexByte(dsn, '/')
	if slash < 0 {
		return ""
	}
	database, _, _ := strings.Cut(dsn[slash+1:], "?")
	return database
}

// Generator gives the live generator of that name, without case; nil when the
// rule has none.
func (g *Generators) Generator(name string) spi.KeyGenerator {
	for i, spec := range g.rule.generators {
		if strings.EqualFold(spec.name.text, name) {
			return g.generators[i]
		}
	}
	return nil
}

// Rule is what these generators were opened from.
func (g *Generators) Rule() *Rule { return g.rule }

// Tables lists the tables that have a key column, in the rule's order.
func (g *Generators) Tables() []*Table {
	tables := make([]*Table, len(g.tables))
	for i := range g.tables {
		tables[i] = &g.tables[i]
	}
	return tables
}

// Close closes the generators and then the worker-id assigners that they used,
// and gives their errors together. Generators that were given ready-made
// ([GeneratorConfig]) stay open. Closing again does nothing more and returns
// the same.
func (g *Generators) Close() error {
	g.closing.Do(func() {
		var errs []error
		for i, generator := range g.generators {
			if spec := g.rule.generators[i]; spec.ready == nil {
				errs = append(errs, closeNamed("key generator", spec.name.text, generator))
			}
		}
		g.closed = errors.Join(append(errs, g.assigners.close())...)
	})
	return g.closed
}

func closeNamed(kind, name string, v any) error {
	c, ok := v.(io.Closer)
	if !ok {
		return nil
	}
	if err := c.Close(); err != nil {
		return fmt.Errorf("shardkey: close %s %s: %w", kind, name, err)
	}
	return nil
}
