package migrate

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/internal/policy"
	"github.com/shardkey/shardkey/internal/schema"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// Source is a database that the rule is for.
type Source struct {
	Name string // the data source's name; empty if it is the only one
	DSN  string // without password, for a store of worker IDs in the database

	schema *schema.Database
}

// Read returns a source with the tables of the connection's database and of others on its
// server. It sets variables of the session.
func Read(ctx context.Context, conn *sql.Conn, others ...string) (s Source, err error) {
	if err := schema.PrepareSession(ctx, conn); err != nil {
		return s, err
	}
	s.schema, err = schema.Read(ctx, conn, others...)
	return s, err
}

// LeftOut is a table without a key in the new rule.
type LeftOut struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Rule is a new rule for existing tables.
type Rule struct {
	// LeftOut are the tables without a key in the rule.
	LeftOut []LeftOut

	sources []Source
	tables  []*family
	widened bool // the key columns are made wide enough
}

// NewRule finds the logical tables of the sources and their key columns: families of tables
// whose names differ in their numbers or dates only, and tables with AUTO_INCREMENT. Numbers that
// follow a letter have to count from 0 or 1.
// With names, which are those of tables or of families, it looks at these only.
func NewRule(sources []Source, only ...string) Rule {
	r := Rule{sources: sources}
	wanted := func(names ...string) bool {
		return len(only) == 0 || slices.ContainsFunc(names, func(name string) bool {
			return slices.ContainsFunc(only, func(o string) bool { return strings.EqualFold(o, name) })
		})
	}
	all := group(sources)
	for _, f := range all {
		if !wanted(append(f.names(), f.logical)...) {
			continue
		}
		why := f.chooseKey()
		if !f.isNumbered() && len(only) == 0 && f.first().AutoIncrement() == nil {
			why = "it has no AUTO_INCREMENT, and its name is not one of several with numbers"
		}
		isTaken := slices.ContainsFunc(r.tables, func(o *family) bool { return strings.EqualFold(o.logical, f.logical) })
		switch {
		case isTaken && !f.isNumbered():
			r.leaveOut(f.logical, "its name is the common name of numbered tables, and INSERTs into it get their keys")
		case why != "" && f.isNumbered():
			r.leaveOut(f.logical+"…", why)
		case why != "":
			r.leaveOut(f.logical, why)
		default:
			if isTaken || f.clashes(all) {
				f.logical = f.names()[0]
			}
			r.tables = append(r.tables, f)
		}
	}
	slices.SortFunc(r.tables, func(a, b *family) int { return cmp.Compare(a.logical, b.logical) })
	r.passOthers()
	return r
}

// passOthers finds the tables whose rule would refuse INSERTs into another table of the sources.
func (r *Rule) passOthers() {
	config := rule.Config{Generators: map[string]rule.GeneratorConfig{"keys": {Generator: noKeys{}}}}
	families := map[string]*family{}
	for _, f := range r.tables {
		families[f.logical] = f
		config.Tables = append(config.Tables, rule.TableConfig{Name: f.logical, ActualDataNodes: f.nodes(),
			KeyConfig: rule.KeyConfig{Column: f.column, Generator: "keys"}})
	}
	checked, err := rule.New(config)
	if err != nil {
		return // check reports it
	}
	live, err := checked.Open(spi.Host{})
	if err != nil {
		return
	}
	defer live.Close() // can't fail
	for _, s := range r.sources {
		for _, t := range s.schema.Tables {
			if e := live.Unlisted("", t.Name); e != nil && e.Like.Unlisted == policy.Refuse {
				families[e.Like.Logical].passes = t.Name
			}
		}
	}
}

// noKeys is a generator that isn't used.
type noKeys struct{}

func (noKeys) GenerateKeys(context.Context, spi.Column, int) ([]any, error) {
	return nil, errors.New("shardkey: not used")
}

func (r *Rule) leaveOut(name, why string) { r.LeftOut = append(r.LeftOut, LeftOut{name, why}) }

type member struct {
	source string
	table  *schema.Table
	parts  []part // of its name
}

// family are the actual tables of a logical one.
type family struct {
	common  string // beginning of the names
	logical string // name in the rule
	column  string // the key column
	passes  string // another table, whose name is similar
	members []member
}

var numbered = regexp.MustCompile(`^(.*?[^0-9_-])((?:[_-]?\d+)+)$`)

// isNumbered reports whether the names of the tables differ in numbers.
func (f *family) isNumbered() bool { return f.members[0].parts != nil }

// clashes reports whether a table with other columns has the common name of numbered tables. As
// their logical name, it would make the rule generate keys for that table too.
func (f *family) clashes(all []*family) bool {
	return f.isNumbered() && slices.ContainsFunc(all, func(o *family) bool {
		both := &family{members: append(slices.Clone(f.members), o.members...)}
		return !o.isNumbered() && strings.EqualFold(o.common, f.common) && !both.alike()
	})
}

type families map[string]*family

func (fs families) add(key, common string, m member) {
	if fs[key] == nil {
		fs[key] = &family{common: common, logical: common}
	}
	fs[key].members = append(fs[key].members, m)
}

func (fs families) sorted() (list []*family) {
	for _, key := range slices.Sorted(maps.Keys(fs)) {
		list = append(list, fs[key])
	}
	return list
}

// group makes families of the tables whose names differ in numbers, and then of those with
// the same name in several sources.
func group(sources []Source) (list []*family) {
	numbers, names := families{}, families{}
	for _, s := range sources {
		for _, t := range s.schema.Tables {
			if t.IsView || t.Outside || t.Schema != s.schema.Name || t.IsState() {
				continue
			}
			m := member{source: s.Name, table: t}
			if match := numbered.FindStringSubmatch(t.Name); match != nil {
				for _, p := range partForm.FindAllStringSubmatch(match[2], -1) {
					m.parts = append(m.parts, part{p[1], p[2]})
				}
				numbers.add(strings.ToLower(match[1])+digits.ReplaceAllString(match[2], "#"), match[1], m)
			} else {
				names.add(strings.ToLower(t.Name), t.Name, m)
			}
		}
	}
	for _, f := range numbers.sorted() {
		if len(f.names()) > 1 && f.alike() && f.counts() {
			list = append(list, f)
			continue
		}
		for _, m := range f.members {
			m.parts = nil
			names.add(strings.ToLower(m.table.Name), m.table.Name, m)
		}
	}
	return append(list, names.sorted()...)
}

func (f *family) first() *schema.Table { return f.members[0].table }

// names are those of the family's tables, each once.
func (f *family) names() (list []string) {
	for _, m := range f.members {
		if !slices.Contains(list, m.table.Name) {
			list = append(list, m.table.Name)
		}
	}
	return list
}

// alike reports whether the tables have the same columns and the same key.
func (f *family) alike() bool {
	columns := func(t *schema.Table) (list []string) {
		for _, c := range t.Columns {
			list = append(list, strings.ToLower(c.Name))
		}
		slices.Sort(list)
		return list
	}
	first := f.first()
	want := columns(first)
	return !slices.ContainsFunc(f.members, func(m member) bool {
		return !slices.Equal(columns(m.table), want) || !sameKey(m.table, first)
	})
}

// sameKey reports whether two tables have the same primary key, or keys of the same column: one that
// the server counts, or the only one of a primary key.
func sameKey(a, b *schema.Table) bool {
	key := func(t *schema.Table) []string {
		if auto := t.AutoIncrement(); auto != nil {
			return []string{auto.Name}
		}
		return t.PrimaryKey()
	}
	return slices.EqualFunc(a.PrimaryKey(), b.PrimaryKey(), strings.EqualFold) ||
		slices.EqualFunc(key(a), key(b), strings.EqualFold)
}

// counts reports whether numbers that follow a letter count the tables, from 0 or 1. Otherwise the
// tables of user2 and user3 are versions, and those of uint16 and uint32 have types.
func (f *family) counts() bool {
	var suffixes [][]part
	var numbers []uint64
	for _, m := range f.members {
		n, _ := strconv.ParseUint(m.parts[0].digits, 10, 64)
		suffixes, numbers = append(suffixes, m.parts), append(numbers, n)
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	return suffixes[0][0].before != "" || len(numbers) == 1 || dateOf(suffixes) != "" ||
		numbers[0] <= 1 && numbers[len(numbers)-1]-numbers[0] == uint64(len(numbers)-1)
}

// chooseKey finds the key column, or says why there is none.
func (f *family) chooseKey() (why string) {
	column := keyOf(f.first(), f.logical)
	switch {
	case column == nil:
		return "its key column is unknown: it has no AUTO_INCREMENT and no primary key of one column"
	case !column.IsInteger():
		return fmt.Sprintf("its key %s is %s: to generate keys, use UUID or NANOID", column.Shown(), sqltoken.Printable(column.Type))
	case slices.ContainsFunc(f.members, func(m member) bool { return m.table.Column(column.Name) == nil }):
		return fmt.Sprintf("one of its tables, of several databases or spellings, lacks column %s", column.Shown())
	case wrongName(column.Name):
		return "a rule cannot contain the name of its key " + column.Shown()
	case wrongName(f.logical) || slices.ContainsFunc(f.names(), wrongName):
		return "a rule cannot contain its name"
	}
	f.column = column.Name
	return ""
}

// narrow returns the type of a key column that is too small for keys of SNOWFLAKE, or "".
func (f *family) narrow() string {
	for _, m := range f.members {
		if c := m.table.Column(f.column); c.Holds().High < 1<<62 {
			return c.Type
		}
	}
	return ""
}

// keyOf guesses which column is the key of a table with this logical name: the one with
// AUTO_INCREMENT, the primary key's only one, or of several the one called id or
// order_id; nil when there is none of these.
func keyOf(t *schema.Table, logical string) *schema.Column {
	if auto := t.AutoIncrement(); auto != nil {
		return auto
	}
	primary := t.PrimaryKey()
	if len(primary) == 1 {
		return t.Column(primary[0])
	}
	names := append(schema.Referring(logical, "id"), "id")
	for _, name := range primary {
		if slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
			return t.Column(name)
		}
	}
	return nil
}

var plainName = regexp.MustCompile(`^[\p{L}_][\p{L}\p{N}_-]*$`)

// wrongName reports whether a name cannot stand in a rule as it is.
func wrongName(name string) bool { return !plainName.MatchString(name) }

// YAML returns the content of a rule file, or "" if the rule has no tables.
func (r Rule) YAML() string {
	if len(r.tables) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("rules:\n- !SHARDING\n  tables:\n")
	shards := 1
	for _, t := range r.tables {
		fmt.Fprintf(&b, "    %s:\n", quoted(t.logical))
		if nodes := t.nodes(); nodes != t.logical {
			fmt.Fprintf(&b, "      actualDataNodes: %s\n", nodes)
		}
		fmt.Fprintf(&b, "      keyGenerateStrategy: {column: %s, keyGeneratorName: snowflake", quoted(t.column))
		if t.passes != "" {
			b.WriteString(", unlisted: pass")
		}
		b.WriteString("}" + r.comment(t) + "\n")
		shards = max(shards, len(t.members))
	}
	b.WriteString("  keyGenerators:\n    snowflake: {type: SNOWFLAKE, props: {worker-id-assigner: cluster")
	if shards > 1 {
		fmt.Fprintf(&b, ", max-vibration-offset: %d", min(shards, 1<<12)-1)
	}
	b.WriteString("}}\n  workerIdAssigners:\n")
	fmt.Fprintf(&b, "    cluster: {type: SQL, props: {namespace: %s%s}}\n", quoted(r.namespace()), r.store())
	if len(r.LeftOut) > 0 {
		b.WriteString("\n# Left out:\n")
		for _, l := range r.LeftOut {
			fmt.Fprintf(&b, "#   %s: %s\n", sqltoken.Printable(l.Name), l.Why)
		}
	}
	return b.String()
}

// comment returns a comment about a table, or "".
func (r Rule) comment(t *family) string {
	var about []string
	if narrow := t.narrow(); narrow != "" && !r.widened {
		about = append(about, fmt.Sprintf("%s is %s, which is too small for these keys: see shardkey migrate", t.column, narrow))
	}
	if t.passes != "" {
		about = append(about, sqltoken.Printable(t.passes)+" has a similar name, but isn't one of its tables")
	}
	if about == nil {
		return ""
	}
	return "   # " + strings.Join(about, "; ")
}

// store says where the worker IDs are: with one database in it, with several in one
// that the environment names.
func (r Rule) store() string {
	if len(r.sources) < 2 {
		return ""
	}
	reference := "${SHARDKEY_IDS_DSN}"
	if dsn := r.sources[0].DSN; !strings.Contains(dsn, "}") { // which would end the default
		reference = "${SHARDKEY_IDS_DSN::" + dsn + "}"
	}
	return ", dsn: " + strconv.Quote(reference)
}

var notInNamespace = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

func (r Rule) namespace() string {
	name := ""
	if len(r.sources) > 0 {
		name = notInNamespace.ReplaceAllString(r.sources[0].schema.Name, "-")
	}
	name = strings.TrimLeft(name, ".")
	return cmp.Or(name[:min(len(name), 64)], "shardkey")
}

// yamlWords are read as something else than a text.
var yamlWords = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}

var yamlPlain = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func quoted(text string) string {
	if yamlPlain.MatchString(text) && !slices.Contains(yamlWords, strings.ToLower(text)) {
		return text
	}
	return strconv.Quote(text)
}
