package rule

import (
	"errors"
	"fmt"
	"io"
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
	// database is the connector's default one, which tells apart tables of one
	// name; empty when not known.
	database string

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
	g := &Generators{rule: r, assigners: newAssigners(r, host), database: databaseOf(host.DSN)}
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
	return g, nil
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
	owners := g.rule.names.find(schema, table)
	if len(owners) > 1 {
		if own := g.rule.names.find(g.database, table); g.database != "" && len(own) == 1 {
			owners = own
		} else if !sameTable(owners) {
			t := g.tables[max(owners[0].table, owners[1].table)]
			t.Generator = ambiguous(table)
			return &t
		}
	}
	if len(owners) == 0 || owners[0].table == none {
		return nil
	}
	return &g.tables[owners[0].table]
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
// go-sql-driver/mysql's form.
func databaseOf(dsn string) string {
	path, _, _ := strings.Cut(dsn[strings.LastIndexByte(dsn, '@')+1:], "?")
	return path[strings.LastIndexByte(path, '/')+1:]
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

// ambiguous is the generator of a name that could mean several tables.
type ambiguous string

// AmbiguousTableError is the error for a statement that names a table without
// schema where the rule has tables of that name in several.
type AmbiguousTableError struct {
	Table string // as the statement names it
}

func (e *AmbiguousTableError) Error() string {
	return fmt.Sprintf("shardkey: table %q is in several schemas of the rule: write schema.%s", e.Table, e.Table)
}
