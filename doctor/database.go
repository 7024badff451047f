package doctor

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/internal/nearest"
	"github.com/shardkey/shardkey/internal/schema"
	"github.com/shardkey/shardkey/internal/sqltext"
	"github.com/shardkey/shardkey/rule"
)

// database is the examination of one database.
type database struct {
	*examination
	Database
	found []Finding

	ctx    context.Context
	conn   *sql.Conn
	server server
	schema *schema.Database
	// triggers before INSERT, by schema and table in lower case
	triggers map[[2]string][]trigger
	// lacking are the places of a logical table that have no table
	lacking map[string][]rule.Place
	// unfit are the tables with an error or a warning
	unfit map[*schema.Table]bool
}

type trigger struct{ name, body string }

func (d *database) readTriggers() error {
	d.triggers = map[[2]string][]trigger{}
	for _, in := range append([]string{d.schema.Name}, d.schemas()...) {
		const columns = "EVENT_OBJECT_TABLE, TRIGGER_NAME, ACTION_STATEMENT, EVENT_MANIPULATION, ACTION_TIMING"
		query := "SELECT " + columns + " FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = " + schema.Literal(in)
		err := schema.Rows(d.ctx, d.conn, query, func(row []string) {
			key := [2]string{strings.ToLower(in), strings.ToLower(row[0])}
			t := trigger{row[1], strings.ToLower(row[2])}
			if row[3] == "INSERT" && row[4] == "BEFORE" && !slices.Contains(d.triggers[key], t) {
				d.triggers[key] = append(d.triggers[key], t)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *database) add(f Finding) {
	f.DataSource = d.Name
	d.found = append(d.found, f)
}

func (d *database) examine(ctx context.Context) {
	if d.Err != nil {
		d.add(Finding{Severity: Error, Check: "open", What: plain(d.Err), Why: "the rule cannot be opened for this database"})
	}
	if d.Connector == nil {
		return
	}
	err := d.connect(ctx)
	if err != nil {
		d.add(away("reachable", "", err))
	}
}

func (d *database) connect(ctx context.Context) (err error) {
	defer guard.Recover(&err, "what the doctor asks")
	conn, closeAll, err := open(ctx, d.Connector)
	if err != nil {
		return err
	}
	defer closeAll()
	d.ctx, d.conn = ctx, conn
	return d.look()
}

func (d *database) look() (err error) {
	if d.server, err = d.examination.server(d.ctx, d.conn); err != nil {
		return err
	}
	for _, f := range d.server.findings("") {
		d.add(f)
	}
	if d.schema, err = schema.Read(d.ctx, d.conn, d.schemas()...); err != nil {
		return err
	}
	if d.schema.Name == "" && len(d.schema.Tables) == 0 {
		d.add(Finding{Severity: Error, Check: "server", What: "the data source name has no database",
			Why: "a statement that names a table without its schema fails", Fix: "write the database after the last slash: user:password@tcp(host:3306)/database"})
		return nil
	}
	if n := len(d.schema.Shards); n > 1 {
		d.add(Finding{Severity: Info, Check: "table",
			What: fmt.Sprintf("vtgate shows the tables of one shard: those of the other %d were not looked at", n-1),
			Why:  "an INSERT may fail on a shard whose columns differ, for example after a schema change that ended halfway",
			Fix: fmt.Sprintf("-- compare SHOW CREATE TABLE on each shard: USE `%s:%s`, and so on",
				d.schema.Name, d.schema.Shards[0])})
	}
	if d.Live == nil {
		return nil
	}
	if err := d.readTriggers(); err != nil {
		return err
	}
	d.mu.Lock()
	d.reached++
	d.mu.Unlock()
	listed := d.listed()
	for _, t := range d.Rule.Tables() {
		if err := d.table(&t, listed[t.Logical]); err != nil {
			return err
		}
	}
	d.unlisted(listed)
	return nil
}

// schemas are those that the rule names.
func (d *database) schemas() (names []string) {
	for _, t := range d.Rule.Tables() {
		for p := range d.Rule.Places(t.Logical) {
			if p.Schema != "" && !slices.Contains(names, p.Schema) {
				names = append(names, p.Schema)
			}
		}
	}
	return names
}

func isPattern(p rule.Place) bool { return strings.Contains(p.Table, "${") }

func (d *database) at(p rule.Place) *schema.Table {
	in := p.Schema
	if in == "" {
		in = d.schema.Name
	}
	return d.schema.Table(in, p.Table)
}

// listed finds the actual tables of each logical one, and which are lacking.
func (d *database) listed() map[string][]*schema.Table {
	listed := map[string][]*schema.Table{}
	d.lacking, d.unfit = map[string][]rule.Place{}, map[*schema.Table]bool{}
	for _, t := range d.Rule.Tables() {
		patterned := false
		for p := range d.Rule.Places(t.Logical) {
			switch {
			case d.Name != "" && p.DataSource != "" && !strings.EqualFold(d.Name, p.DataSource) && !strings.Contains(p.DataSource, "${"):
			case isPattern(p):
				patterned = true
			default:
				if found := d.at(p); found != nil && !slices.Contains(listed[t.Logical], found) {
					listed[t.Logical] = append(listed[t.Logical], found)
				} else if found == nil && p.DataSource == "" && len(d.Databases) > 1 {
					d.mu.Lock()
					d.absent[p]++
					d.mu.Unlock()
				} else if found == nil {
					d.lacking[t.Logical] = append(d.lacking[t.Logical], p)
				}
			}
		}
		if patterned {
			d.patterned(t.Logical, listed)
		}
	}
	return listed
}

// patterned adds the tables that are one of the rule's by a pattern.
func (d *database) patterned(logical string, listed map[string][]*schema.Table) {
	before := len(listed[logical])
	for _, found := range d.schema.Tables {
		t := d.Live.Lookup(found.Schema, found.Name)
		if !found.Outside && t != nil && t.Logical == logical && !strings.EqualFold(found.Name, logical) && !slices.Contains(listed[logical], found) {
			listed[logical] = append(listed[logical], found)
		}
	}
	if len(listed[logical]) == before {
		d.add(Finding{Severity: Info, Check: "table", Table: logical, What: "no table is there yet whose name is as the pattern of its data nodes", Why: "what its columns will be is not known"})
	}
}

func (d *database) missing(logical string, p rule.Place, siblings []*schema.Table) {
	fix, meant := d.like(p, siblings), ""
	var names []string
	for _, t := range d.schema.Tables {
		if !t.Outside && d.Live.Lookup(t.Schema, t.Name) == nil {
			names = append(names, t.Name)
		}
	}
	if near := nearest.Word(p.Table, names); near != "" && nearest.Distance(near, p.Table) <= 2 {
		meant = near
	}
	f := missing(logical, p, fix, meant)
	in := cmp.Or(p.Schema, d.schema.Name)
	if g := d.server.grants; !g.has("SELECT", in, p.Table, "") && !g.has("INSERT", in, p.Table, "") {
		f.What = fmt.Sprintf("the table is not there, or the user %s has no right on it", d.server.user)
		f.Fix = strings.TrimPrefix(f.Fix+fmt.Sprintf("\nGRANT SELECT, INSERT ON %s TO %s;", sqltext.QuoteTable(in, p.Table), d.server.user), "\n")
	}
	d.add(f)
}

// like is the statement that makes a table as one of its siblings: one that is as it
// must be, if there is one.
func (d *database) like(p rule.Place, siblings []*schema.Table) string {
	siblings = slices.DeleteFunc(slices.Clone(siblings), func(t *schema.Table) bool { return t.IsView })
	if len(siblings) == 0 {
		return ""
	}
	sibling, after := siblings[0], ""
	if i := slices.IndexFunc(siblings, func(t *schema.Table) bool { return !d.unfit[t] }); i >= 0 {
		sibling = siblings[i]
	} else {
		after = " -- after " + d.schema.Shown(sibling) + " is changed"
	}
	return "CREATE TABLE " + sqltext.QuoteTable(p.Schema, p.Table) + " LIKE " + d.schema.Quoted(sibling) + ";" + after
}

func missing(logical string, p rule.Place, fix, meant string) Finding {
	f := Finding{Severity: Error, Check: "table", Table: logical, Actual: []string{p.Table}, What: "the table is not there",
		Why: "an INSERT that is sent to it fails", Fix: fix}
	if p.Schema != "" {
		f.Actual[0] = p.Schema + "." + p.Table
	}
	if meant != "" {
		f.What += fmt.Sprintf("; there is %s, which the rule does not list", meant)
	}
	return f
}

// unlisted reports tables that look like one of a ruled table's, but are not listed.
func (d *database) unlisted(listed map[string][]*schema.Table) {
	for _, t := range d.schema.Tables {
		if t.Outside {
			continue
		}
		e := d.Live.Unlisted(t.Schema, t.Name)
		if e == nil || e.Like.Unlisted == "pass" {
			ruled := d.Live.Lookup(t.Schema, t.Name)
			if ruled != nil && !slices.Contains(listed[ruled.Logical], t) {
				d.add(Finding{Severity: Info, Check: "unlisted", Table: ruled.Logical, Actual: []string{t.Name}, Column: ruled.Column,
					What: "the table is here, where the rule has none of that name",
					Why:  "an INSERT into it gets keys as one into the rule's own tables, and its rows are no part of them"})
			}
			continue
		}
		d.add(Finding{Severity: Warning, Check: "unlisted", Table: e.Like.Logical, Actual: []string{t.Name}, Column: e.Like.Column,
			What: "the table looks like one of this table's, but the rule does not list it",
			Why:  "no key is generated for it: an INSERT into it is refused, or with shardkeyUnlisted=pass the server decides, by AUTO_INCREMENT for one",
			Fix:  fmt.Sprintf("actualDataNodes of %s in the rule: list it, or write ${*} for every number, or beside column: unlisted: pass", e.Like.Logical)})
	}
}

// table looks at the actual tables of a logical one.
func (d *database) table(t *rule.Table, actual []*schema.Table) error {
	before, remote := len(d.found), false
	want := d.wanted(t)
	for _, a := range actual {
		x := &tableCheck{database: d, ruled: t, actual: a, column: a.Column(t.Column), want: want}
		if err := x.look(); err != nil {
			return err
		}
		remote = remote || a.IsSpider()
	}
	for _, p := range d.lacking[t.Logical] {
		d.missing(t.Logical, p, actual)
	}
	problem := slices.ContainsFunc(d.found[before:], func(f Finding) bool { return IsProblem(f.Severity) })
	if len(actual) > 0 && !remote && !problem {
		d.add(Finding{Severity: OK, Check: "table", Table: t.Logical, Column: t.Column, Actual: names(actual), What: "there, with a key column that holds the keys of " + t.GeneratorName})
	}
	return nil
}

func names(tables []*schema.Table) (list []string) {
	for _, t := range tables {
		list = append(list, t.Name)
	}
	return list
}
