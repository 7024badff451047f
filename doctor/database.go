package doctor

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/internal/panics"
	"github.com/shardkey/shardkey/internal/policy"
	"github.com/shardkey/shardkey/internal/schema"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

type database struct {
	*examination
	db    *sql.DB
	name  string // of the data source; empty stands for all of the rule's
	found []Finding

	ctx    context.Context
	conn   *sql.Conn // nil when the database is unavailable
	server server
	// host is where generators connect to. Where the DSN is unknown, it gets one that only tells the
	// database from others, and what they keep there is examined through db.
	host spi.Host
	live *rule.Live // nil when the rule cannot be opened

	schema *schema.Database
	// triggers before INSERT, by schema and table in lower case
	triggers map[[2]string][]trigger
}

type trigger struct{ name, body string }

func (d *database) add(f Finding) {
	f.DataSource = d.name
	d.found = append(d.found, f)
}

// guarded runs a part of the examination, unless an earlier one has found that the database
// cannot be examined.
func (d *database) guarded(part func() error) {
	if err := panics.Call("the examination", part); err != nil {
		d.add(unavailable("reachable", err))
		d.release()
	}
}

// connect takes a connection, and asks for what can be known of its server.
func (d *database) connect(ctx context.Context) (err error) {
	d.ctx = ctx
	if d.conn, err = d.db.Conn(ctx); err != nil {
		return err
	}
	if d.host.DSN.Reveal() == "" {
		if err := d.placeholder(); err != nil {
			return err
		}
	}
	d.server, err = askServer(ctx, d.conn, d.now)
	return err
}

// discard closes a connection for good, as its session is changed.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = conn.Close()
}

// placeholder sets a DSN that differs from those of other databases. Nothing can connect to it.
func (d *database) placeholder() error {
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.DBName = ownNetwork, cmp.Or(d.name, "database"), "database"
	row, err := schema.Row(d.ctx, d.conn, "SELECT CONCAT(@@hostname, ':', @@port), DATABASE()", 2)
	if err != nil && !refused(err) {
		return err
	}
	cfg.Addr, cfg.DBName = cmp.Or(row[0], cfg.Addr), cmp.Or(row[1], cfg.DBName)
	d.host.DSN, d.host.Logger = spi.NewSecret(cfg.FormatDSN()), slog.New(slog.DiscardHandler)
	return nil
}

// ownNetwork is the network of a placeholder.
const ownNetwork = "examined"

// refused reports whether the server answered with an error, so that others can be asked.
func refused(err error) bool {
	_, answered := errors.AsType[*mysql.MySQLError](err)
	return answered
}

func (d *database) now() time.Time {
	if d.host.Clock == nil {
		return spi.SystemClock.Now()
	}
	return d.host.Clock.Now()
}

func (d *database) open() {
	if d.conn == nil {
		return
	}
	live, err := d.rule.Open(d.host)
	if err != nil {
		d.add(Finding{Severity: Error, Check: "open", What: trimPrefix(err), Why: "the rule cannot be opened for this database"})
		return
	}
	d.live = live
}

// release gives up the connection, so that it can be used for the state of generators.
func (d *database) release() {
	if d.conn != nil {
		discard(d.conn)
		d.conn = nil
	}
}

// look examines the server, and the tables that the rule puts in this database.
func (d *database) look() (err error) {
	if d.conn == nil {
		return nil
	}
	for _, f := range d.server.findings() {
		d.add(f)
	}
	if d.schema, err = schema.Read(d.ctx, d.conn, d.schemas()...); err != nil {
		return err
	}
	if d.schema.Name == "" && len(d.schema.Tables) == 0 {
		d.add(Finding{Severity: Error, Check: "server", What: "the DSN has no database",
			Why: "statements that name a table without a schema fail",
			Fix: "add the database after the last slash: user:password@tcp(host:3306)/database"})
		return nil
	}
	if n := len(d.schema.Shards); n > 1 {
		d.add(Finding{Severity: Info, Check: "table",
			What: fmt.Sprintf("vtgate shows the tables of one shard; the other %d shards were not examined", n-1),
			Why:  "an INSERT may fail on a shard with different columns, for example after an incomplete schema change",
			Fix: fmt.Sprintf("-- compare SHOW CREATE TABLE on each shard: USE `%s:%s`, and so on",
				d.schema.Name, d.schema.Shards[0])})
	}
	if d.live == nil {
		return nil
	}
	if err := d.readTriggers(); err != nil && !refused(err) {
		return err
	}
	d.mu.Lock()
	d.reached++
	d.mu.Unlock()
	listed := map[string][]*schema.Table{}
	for _, t := range d.rule.Tables() {
		actual, lacking := d.actual(t.Logical)
		listed[t.Logical] = actual
		if err := d.table(&t, actual, lacking); err != nil {
			return err
		}
	}
	d.unlisted(listed)
	d.narrow(listed)
	return nil
}

// narrow reports the columns that may hold a key and are too small for it.
func (d *database) narrow(listed map[string][]*schema.Table) {
	var keys []futureKeys
	known := map[schema.ColumnOf]bool{}
	for _, t := range d.rule.Tables() {
		for _, actual := range listed[t.Logical] {
			known[schema.ColumnOf{Table: actual, Column: actual.Column(t.Column)}] = true
			for _, c := range d.schema.ReferringByName(actual, t.Logical, t.Column) {
				known[c] = true
			}
		}
		if len(listed[t.Logical]) > 0 {
			keys = append(keys, d.futureKeys(&t))
		}
	}
	columns := d.schema.Narrow(func(c schema.ColumnOf) bool {
		return known[c] || !slices.ContainsFunc(keys, func(k futureKeys) bool {
			unfit, _ := k.unfit(c.Column.Holds())
			return k.isInteger && unfit != nil
		})
	})
	if names := d.schema.Names(columns); len(names) > 0 {
		d.add(Finding{Severity: Info, Check: "reference",
			What: fmt.Sprintf("integer columns below BIGINT whose names refer to no key: %s", strings.Join(names, ", ")),
			Why:  "if one of them holds a key of the rule, new keys cannot be stored there, or are truncated",
			Fix:  "-- make those that hold a key BIGINT"})
	}
}

func (d *database) schemas() (names []string) {
	for _, t := range d.rule.Tables() {
		for p := range d.rule.Places(t.Logical) {
			if p.Schema != "" {
				names = appendNew(names, p.Schema)
			}
		}
	}
	return names
}

func (d *database) readTriggers() error {
	d.triggers = map[[2]string][]trigger{}
	for _, in := range append([]string{d.schema.Name}, d.schemas()...) {
		query := "SELECT EVENT_OBJECT_TABLE, TRIGGER_NAME, ACTION_STATEMENT, EVENT_MANIPULATION, ACTION_TIMING" +
			" FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = " + schema.Literal(in)
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

// actual finds the actual tables of a logical one, and the places that have none.
func (d *database) actual(logical string) (found []*schema.Table, lacking []rule.Place) {
	patterned := false
	for p := range d.rule.Places(logical) {
		elsewhere := d.name != "" && p.DataSource != "" && !strings.EqualFold(d.name, p.DataSource) &&
			!isPattern(p.DataSource)
		t := d.schema.Table(cmp.Or(p.Schema, d.schema.Name), p.Table)
		switch {
		case elsewhere:
		case isPattern(p.Table):
			patterned = true
		case t != nil && !slices.Contains(found, t):
			found = append(found, t)
		case t == nil && p.DataSource == "" && len(d.databases) > 1:
			d.mu.Lock()
			d.absent[p]++
			d.mu.Unlock()
		case t == nil:
			lacking = append(lacking, p)
		}
	}
	if patterned {
		found = append(found, d.patterned(logical, found)...)
	}
	return found, lacking
}

// patterned returns the tables that are a logical table's by a pattern, other than the known ones.
func (d *database) patterned(logical string, known []*schema.Table) (found []*schema.Table) {
	for _, t := range d.schema.Tables {
		of := d.live.Lookup(t.Schema, t.Name)
		belongs := !t.Outside && of != nil && of.Logical == logical && !strings.EqualFold(t.Name, logical)
		if belongs && !slices.Contains(known, t) {
			found = append(found, t)
		}
	}
	if len(found) == 0 {
		d.add(Finding{Severity: Info, Check: "table", Table: logical,
			What: "no table matches the pattern in actualDataNodes yet", Why: "its columns cannot be examined"})
	}
	return found
}

// missing reports a table of the rule that does not exist, or that the user may not see. The fix
// makes it like one of its siblings.
func (d *database) missing(logical string, p rule.Place, siblings []*schema.Table) {
	f := missing(logical, p)
	in := cmp.Or(p.Schema, d.schema.Name)
	var fix []string
	if len(siblings) > 0 {
		fix = append(fix, fmt.Sprintf("CREATE TABLE %s LIKE %s;",
			sqltoken.QuoteTable(p.Schema, p.Table), d.schema.Quoted(siblings[0])))
	}
	if g := d.server.grants; !g.has("SELECT", in, p.Table, "") && !g.has("INSERT", in, p.Table, "") {
		f.What = fmt.Sprintf("the table does not exist, or the user %s has no privileges on it", d.server.user)
		fix = append(fix, d.server.grant("SELECT, INSERT", in, p.Table))
	}
	f.Fix = strings.Join(fix, "\n")
	d.add(f)
}

func missing(logical string, p rule.Place) Finding {
	f := Finding{Severity: Error, Check: "table", Table: logical, Actual: []string{p.Table},
		What: "the table does not exist", Why: "INSERTs into it fail"}
	if p.Schema != "" {
		f.Actual[0] = p.Schema + "." + p.Table
	}
	return f
}

// unlisted reports tables that look like one of a sharded table's, but are not listed.
func (d *database) unlisted(listed map[string][]*schema.Table) {
	for _, t := range d.schema.Tables {
		if t.Outside {
			continue
		}
		f := Finding{Check: "unlisted", Actual: []string{sqltoken.Printable(t.Name)}}
		e, of := d.live.Unlisted(t.Schema, t.Name), d.live.Lookup(t.Schema, t.Name)
		switch {
		case e != nil && e.Like.Unlisted != policy.Pass:
			of = e.Like
			f.Severity, f.What = Warning, "the name is similar to the actual tables, but the rule does not list it"
			f.Why = "INSERTs into it without an explicit key are refused"
			if of.Unlisted == policy.Warn {
				f.Why = "INSERTs into it are sent without a generated key"
			}
			if of.ActualCount == 1 && len(of.Patterns) == 0 {
				f.Severity = Info // it may well be another table
			}
			fix := "add it to actualDataNodes of %s, with ${*} for tables created at run time"
			if len(of.Patterns) > 0 {
				fix = "correct the name, which no pattern of %s matches, or add it to actualDataNodes"
			}
			f.Fix = fmt.Sprintf(fix+"; if it is unrelated, add unlisted: pass next to column", of.Logical)
		case of != nil && !slices.Contains(listed[of.Logical], t):
			f.Severity, f.What = Info, "the rule does not list this table in this database"
			f.Why = "INSERTs into it get keys like the tables of the rule"
		default:
			continue
		}
		f.Table, f.Column = of.Logical, of.Column
		d.add(f)
	}
}

func (d *database) table(t *rule.Table, actual []*schema.Table, lacking []rule.Place) error {
	before, remote := len(d.found), false
	var names []string
	keys := d.futureKeys(t)
	for _, a := range actual {
		x := &tableCheck{database: d, logical: t, actual: a, column: a.Column(t.Column), keys: keys}
		if err := x.look(); err != nil {
			return err
		}
		names, remote = append(names, sqltoken.Printable(a.Name)), remote || a.IsSpider()
	}
	for _, p := range lacking {
		d.missing(t.Logical, p, actual)
	}
	if len(actual) > 0 && !remote && !slices.ContainsFunc(d.found[before:], Finding.isProblem) {
		d.add(Finding{Severity: OK, Check: "table", Table: t.Logical, Column: t.Column, Actual: names,
			What: "it exists, and its key column can hold the keys of " + t.GeneratorName})
	}
	return nil
}
