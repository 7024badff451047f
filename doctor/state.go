package doctor

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shardkey/shardkey/internal/panics"
	"github.com/shardkey/shardkey/internal/schema"
	"github.com/shardkey/shardkey/internal/sqlstate"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// states examines the tables that generators and assigners keep their state in, each once.
func (e *examination) states(ctx context.Context) []Finding {
	checks := e.stateChecks(ctx)
	each(checks, (*stateCheck).examine)
	var all []Finding
	for _, s := range checks {
		all = append(all, merged(s.found)...)
	}
	all = append(all, e.apart(checks)...)
	return append(all, e.workerIDs(ctx)...)
}

func (e *examination) stateChecks(ctx context.Context) (checks []*stateCheck) {
	for _, d := range e.databases {
		if d.live == nil {
			continue
		}
		add := func(v any, keeper, of string) {
			k, ok := v.(sqlstate.Keeper)
			if !ok {
				return
			}
			for _, t := range k.SQLState() {
				known := slices.ContainsFunc(checks, func(o *stateCheck) bool {
					return o.Kind == t.Kind && o.Server == t.Server && o.Name == t.Name && o.Key == t.Key && o.of == of
				})
				if !known {
					checks = append(checks, &stateCheck{Table: t, database: d, ctx: ctx, keeper: keeper, of: of})
				}
			}
		}
		for _, s := range d.live.Status() {
			if s.Assigner {
				add(s.WorkerIDs, s.Name, "")
			}
		}
		for _, t := range e.rule.Tables() {
			add(d.live.Generator(t.GeneratorName), t.GeneratorName, strings.ToLower(t.GeneratorName))
		}
	}
	return checks
}

// apart reports keepers with a state in each of several databases.
func (e *examination) apart(checks []*stateCheck) (found []Finding) {
	servers := map[string]int{}
	for _, s := range checks {
		if s.Kind != sqlstate.Tickets {
			servers[s.keeper]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		if n := servers[name]; n > 1 {
			found = append(found, Finding{Severity: Info, Check: "store",
				What: fmt.Sprintf("%s keeps its state in each of %d databases (own-database: yes)", name, n),
				Why:  "the databases generate the same keys: never merge their rows",
				Fix:  fmt.Sprintf("set dsn in the props of %s to one database for all", name)})
		}
	}
	return found
}

// stateCheck is the examination of a table with the state of a generator or an assigner.
type stateCheck struct {
	sqlstate.Table
	database *database // for which the rule was opened
	keeper   string    // its name in the rule
	of       string    // for a generator: its name in lower case

	ctx    context.Context
	conn   *sql.Conn
	server server
	schema *schema.Database
	found  []Finding
}

func (s *stateCheck) add(severity Severity, what, why, fix string) {
	check := [...]string{sqlstate.Leases: "leases", sqlstate.Segments: "segments", sqlstate.Tickets: "tickets"}[s.Kind]
	place := fmt.Sprintf("%s, table %s", s.keeper, s.Name)
	if !s.isOwn() {
		place += " at " + s.Server
	}
	s.found = append(s.found, Finding{Severity: severity, Check: check, What: place + ": " + what, Why: why, Fix: fix})
}

// isOwn reports whether the table is in the database itself, whose DSN is unknown.
func (s *stateCheck) isOwn() bool { return strings.HasPrefix(s.Server, ownNetwork+"(") }

func (s *stateCheck) examine() {
	if err := panics.Call("the examination", s.connect); err != nil {
		f := unavailable("", err)
		s.add(f.Severity, f.What, "no keys can be generated when those in memory are used up", "")
	}
}

func (s *stateCheck) connect() error {
	db := s.database.db
	if !s.isOwn() {
		db = sql.OpenDB(sharedConnector{s.Connector})
		defer db.Close()
	}
	var err error
	if s.conn, err = db.Conn(s.ctx); err != nil {
		return err
	}
	defer discard(s.conn)
	return s.look()
}

// sharedConnector hides a connector's Close, which a sql.DB would call.
type sharedConnector struct{ driver.Connector }

func (s *stateCheck) look() (err error) {
	if s.server, err = askServer(s.ctx, s.conn, s.database.now); err != nil {
		return err
	}
	server := slices.DeleteFunc(s.server.findings(), func(f Finding) bool { return !f.isProblem() })
	for _, f := range append(server, s.server.durability()...) {
		s.add(f.Severity, f.What, f.Why, f.Fix)
	}
	in, name, qualified := strings.Cut(s.Name, ".")
	if !qualified {
		in, name = "", s.Name
	}
	if s.schema, err = schema.Read(s.ctx, s.conn, in); err != nil {
		return err
	}
	in = cmp.Or(in, s.schema.Name)
	t := s.schema.Table(in, name)
	if t == nil {
		s.missing(in, name)
		return nil
	}
	s.rights(t)
	if !strings.EqualFold(t.Engine, "InnoDB") && t.Engine != "" {
		s.add(Error, "its engine is "+t.Engine,
			"it has no transactions: committed writes may be lost, and two processes may change a row at the same time",
			fmt.Sprintf("ALTER TABLE %s ENGINE=InnoDB;", s.schema.Quoted(t)))
	}
	if !s.server.grants.has("SELECT", t.Schema, t.Name, "") {
		return nil
	}
	content := map[sqlstate.Kind]func(*schema.Table) error{
		sqlstate.Leases: s.leases, sqlstate.Segments: s.segments, sqlstate.Tickets: s.tickets,
	}
	err = content[s.Kind](t)
	if err == nil && !slices.ContainsFunc(s.found, func(f Finding) bool { return f.Severity != OK }) {
		s.add(OK, "no problems", "", "")
	}
	return err
}

// needs are the rights that generators need on a table of state.
var needs = map[sqlstate.Kind][]string{
	sqlstate.Leases:   {"SELECT", "INSERT", "UPDATE"},
	sqlstate.Segments: {"SELECT", "UPDATE"},
	sqlstate.Tickets:  {"SELECT", "INSERT", "DELETE"},
}

func (s *stateCheck) rights(t *schema.Table) {
	grant := func(rights string) string { return s.server.grant(rights, t.Schema, t.Name) }
	if s.Kind == sqlstate.Segments && !s.server.grants.has("INSERT", t.Schema, t.Name, "") {
		s.add(Info, s.server.lacks("INSERT"), "shardkey can't record the server, and doesn't detect a failover that loses the last claims", grant("INSERT"))
	}
	lacking := slices.DeleteFunc(slices.Clone(needs[s.Kind]), func(right string) bool {
		return s.server.grants.has(right, t.Schema, t.Name, "")
	})
	if len(lacking) > 0 {
		rights := strings.Join(lacking, ", ")
		s.add(Error, s.server.lacks(rights), noKey, grant(rights))
	}
}

const noKey = "no key can be generated"

func (s *stateCheck) missing(in, name string) {
	switch {
	case s.Kind != sqlstate.Leases:
		s.add(Error, "the table does not exist", noKey, s.DDL+";"+s.firstRow())
	case s.server.grants.has("CREATE", in, name, ""):
		s.add(Info, "the table does not exist yet; the first key creates it", "the user may create it", s.DDL+";")
	default:
		s.add(Error, fmt.Sprintf("the table does not exist, and the user %s may not create it", s.server.user),
			"no worker IDs can be leased, so no keys can be generated",
			s.DDL+";\n"+s.server.grant("SELECT, INSERT, UPDATE", in, name))
	}
}

// leases examines the worker IDs.
func (s *stateCheck) leases(t *schema.Table) error {
	keyed := slices.ContainsFunc(t.Indexes, func(i *schema.Index) bool {
		other := func(c string) bool { return !slices.Contains([]string{"namespace", "worker_id"}, strings.ToLower(c)) }
		return i.Unique && !slices.ContainsFunc(i.Columns, other)
	})
	table := s.schema.Quoted(t)
	if !keyed {
		s.add(Error, "it has no primary key (namespace, worker_id)",
			"several processes can hold the same worker ID, and generate the same keys",
			fmt.Sprintf("ALTER TABLE %s ADD PRIMARY KEY (namespace, worker_id);", table))
	}
	if err := cmp.Or(s.layouts(table), s.otherNamespaces(table)); err != nil {
		return err
	}
	tomorrow := s.database.now().Add(24 * time.Hour)
	query := "SELECT worker_id, IF(free_from > 0, free_from, reserved_until) FROM " + table +
		" WHERE worker_id >= 0 AND namespace = " + schema.Literal(s.Key) + " ORDER BY worker_id" // one below notes the server
	return schema.Rows(s.ctx, s.conn, query, func(row []string) {
		ms, _ := strconv.ParseInt(row[1], 10, 64)
		start := time.UnixMilli(ms)
		if !start.After(tomorrow) {
			return
		}
		s.add(Warning, fmt.Sprintf("worker ID %s is reserved until %s", row[0], start.UTC().Format(time.RFC3339)), aheadWhy,
			fmt.Sprintf("DELETE FROM %s WHERE namespace = %s AND worker_id = %s; "+
				"-- if no table has a key with such a time",
				table, schema.Literal(s.Key), row[0]))
	})
}

// layouts compares the layouts of the rule's generators with those that processes used.
func (s *stateCheck) layouts(table string) error {
	query := fmt.Sprintf("SELECT holder FROM %s WHERE namespace = %s AND worker_id = %d", table, schema.Literal(s.NoteKey), s.NoteID)
	return schema.Rows(s.ctx, s.conn, query, func(row []string) {
		if warning := s.OtherLayouts(row[0]); warning != "" {
			s.add(Warning, warning, "processes log the same when they start", "")
		}
	})
}

// otherNamespaces reports the other namespaces of the table that have held worker IDs.
func (s *stateCheck) otherNamespaces(table string) error {
	const most = 5
	var others []string
	count := 0
	query := fmt.Sprintf("SELECT namespace, COUNT(*) FROM %s WHERE namespace <> %s AND namespace NOT LIKE '#%%' AND worker_id >= 0 "+
		"AND free_from = 0 AND reserved_until > %d GROUP BY namespace ORDER BY namespace",
		table, schema.Literal(s.Key), s.database.now().UnixMilli())
	err := schema.Rows(s.ctx, s.conn, query, func(row []string) {
		if count++; count <= most {
			others = append(others, fmt.Sprintf("%s (%s)", row[0], row[1]))
		}
	})
	if count > most {
		others = append(others, fmt.Sprintf("and %d more", count-most))
	}
	if len(others) > 0 {
		s.add(Info, "other namespaces have held worker IDs: "+strings.Join(others, ", "),
			"processes of two namespaces can have the same worker ID; their keys can repeat in a table that both write",
			"-- use one namespace for all processes that write the same tables")
	}
	return err
}

const aheadWhy = "a wrong clock reserved it; no process can use the worker ID before then"

// above returns the greatest key in the generator's tables.
func (s *stateCheck) above() (newestKey, bool) {
	n, ok := s.database.newest[s.of]
	return n, ok && n.key < math.MaxInt64
}

// firstRow returns the statement that makes the row of a LEAF_SEGMENT.
func (s *stateCheck) firstRow() string {
	if s.Kind != sqlstate.Segments {
		return ""
	}
	first := uint64(1)
	if n, ok := s.above(); ok {
		first = n.key + 1
	}
	return fmt.Sprintf("\nINSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES (%s, %d, 1000);",
		schema.Literal(s.Key), first)
}

// segments examines the row of a LEAF_SEGMENT.
func (s *stateCheck) segments(t *schema.Table) error {
	var rows, maxID uint64
	var step int64
	table, tag := s.schema.Quoted(t), schema.Literal(s.Key)
	query := "SELECT GREATEST(max_id, 0), step FROM " + table + " WHERE biz_tag = " + tag
	err := schema.Rows(s.ctx, s.conn, query, func(row []string) {
		maxID, _ = strconv.ParseUint(row[0], 10, 64)
		step, _ = strconv.ParseInt(row[1], 10, 64)
		rows++
	})
	switch {
	case err != nil:
		return err
	case rows == 0:
		s.add(Error, fmt.Sprintf("it has no row %q", s.Key), noKey, strings.TrimPrefix(s.firstRow(), "\n"))
		return nil
	case rows > 1:
		s.add(Error, fmt.Sprintf("it has %d rows %q", rows, s.Key), "each row hands out the same numbers",
			"ALTER TABLE "+table+" ADD PRIMARY KEY (biz_tag); -- after you delete all rows but the one with the greatest max_id")
		return nil
	case step < 1:
		s.add(Error, fmt.Sprintf("the step of row %q is %d", s.Key, step), "no segment can be claimed",
			fmt.Sprintf("UPDATE %s SET step = 1000 WHERE biz_tag = %s;", table, tag))
	}
	s.counter(maxID, fmt.Sprintf("max_id of %q is %d", s.Key, maxID), func(next uint64) string {
		return fmt.Sprintf("UPDATE %s SET max_id = %d WHERE biz_tag = %s AND max_id < %[2]d;", table, next, tag)
	})
	return nil
}

// counter compares the next number of a counter with the existing keys and with the column.
func (s *stateCheck) counter(next uint64, what string, raise func(next uint64) string) {
	n, ok := s.above()
	if !ok {
		return
	}
	where := strings.TrimSpace(n.source + " " + n.table)
	if n.key >= next {
		s.add(Error, fmt.Sprintf("%s, but the greatest key is %d (%s)", what, n.key, where),
			"existing keys are generated again", raise(n.key+1))
	}
	if limit := n.columnHoldsUpTo; limit > 0 && limit < math.MaxInt64 && max(next, n.key) > limit/10*8 {
		s.add(Warning, fmt.Sprintf("%s, and the key column of %s holds keys up to %d", what, where, limit),
			"INSERTs are then refused",
			"-- shardkey migrate prints the statements that change it, and the columns that refer to it, to BIGINT")
	}
}

var autoIncrementOption = regexp.MustCompile(`(?m)^\).* AUTO_INCREMENT=(\d+)`)

func (s *stateCheck) tickets(t *schema.Table) error {
	column := t.AutoIncrement()
	if column == nil {
		s.add(Error, "it has no AUTO_INCREMENT column", noKey, s.DDL+"; -- replaces the existing table")
		return nil
	}
	defs, err := s.schema.Definitions(s.ctx, s.conn, t)
	if err != nil {
		return err
	}
	next, table := uint64(1), s.schema.Quoted(t)
	if m := autoIncrementOption.FindStringSubmatch(defs.Text); m != nil {
		next, _ = strconv.ParseUint(m[1], 10, 64)
	}
	s.counter(next, fmt.Sprintf("its next number is %d", next), func(next uint64) string {
		return fmt.Sprintf("ALTER TABLE %s AUTO_INCREMENT = %d;", table, next)
	})
	if limit := column.Holds().High; next > limit/10*8 {
		s.add(Warning, fmt.Sprintf("its next number is %d, and its column holds numbers up to %d", next, limit),
			"no keys can be generated from then on",
			fmt.Sprintf("ALTER TABLE %s MODIFY %s BIGINT UNSIGNED NOT NULL AUTO_INCREMENT;",
				table, sqltoken.QuoteIdentifier(column.Name)))
	}
	return nil
}

// workerIDs reports how many worker IDs each store has left.
func (e *examination) workerIDs(ctx context.Context) (found []Finding) {
	seen := map[string]bool{}
	for _, d := range e.databases {
		for _, t := range e.rule.Tables() {
			if d.live == nil || seen[t.GeneratorName] {
				continue
			}
			lister, ok := d.live.Generator(t.GeneratorName).(spi.WorkerIDLister)
			if !ok {
				continue
			}
			inSQL := d.leasesInSQL()
			var list spi.WorkerIDs
			err := panics.Call("the generator's ListWorkerIDs", func() (err error) {
				list, err = lister.ListWorkerIDs(ctx)
				return err
			})
			switch {
			case errors.Is(err, errors.ErrUnsupported):
			case err != nil && inSQL:
				// The errors of the table or its server have been found.
			case err != nil:
				seen[t.GeneratorName] = true
				what := fmt.Sprintf("the worker IDs of %s cannot be read: %s", t.GeneratorName, trimPrefix(err))
				found = append(found, Finding{Severity: Error, Check: "leases", What: what,
					Why: "no worker IDs can be leased, and a process generates no keys after its lease ends"})
			case !seen[list.Store]:
				seen[list.Store] = true
				found = append(found, listed(list, inSQL)...)
			}
		}
	}
	return found
}

// leasesInSQL reports whether an assigner of the rule leases worker IDs in a SQL database.
func (d *database) leasesInSQL() bool {
	return slices.ContainsFunc(d.live.Status(), func(s rule.Status) bool {
		k, ok := s.WorkerIDs.(sqlstate.Keeper)
		return ok && s.Assigner && len(k.SQLState()) > 0
	})
}

// listed examines the worker IDs of one store. Those of SQL that are reserved too far ahead have been
// found in their table, with the statement that frees them.
func listed(list spi.WorkerIDs, inSQL bool) (found []Finding) {
	add := func(severity Severity, what, why, fix string) {
		found = append(found, Finding{Severity: severity, Check: "leases", What: list.Store + ": " + what,
			Why: why, Fix: fix})
	}
	taken, held := int64(0), 0
	for _, id := range list.List {
		if id.ID > list.Max || id.Free() {
			continue
		}
		taken++
		switch id.State {
		case "fixed":
			return nil // nothing is known of others
		case "held":
			held++
		case "ahead":
			if !inSQL {
				add(Warning, fmt.Sprintf("worker ID %d is reserved until %s", id.ID, id.ReservedUntil.UTC().Format(time.RFC3339)),
					aheadWhy, "remove its record, if no table has a key with such a time")
			}
		case "unknown":
			add(Warning, fmt.Sprintf("the record of worker ID %d is not understood: %v", id.ID, id.Err),
				"no process can use the worker ID", "find out which program wrote it; shardkey doesn't need it")
		}
	}
	if ahead := list.ClockAhead; ahead != nil && ahead.Abs() >= maxAhead && !inSQL {
		add(Warning, fmt.Sprintf("this machine's clock is %v ahead of the store's", ahead.Round(time.Second)),
			"keys contain the time of the machine that generates them", synchronize)
	}
	const fix = "use a layout with more worker bits, or another namespace for tables whose keys may repeat these"
	free, all := list.Max+1-taken, list.Max+1
	what := fmt.Sprintf("%d of %d worker IDs are held, %d are free", held, all, free)
	switch {
	case free <= 0:
		add(Error, what, "the next process gets no worker ID, and generates no keys", fix)
	case free*10 < all:
		add(Warning, what, "a rolling deployment needs free worker IDs for the new processes", fix)
	default:
		add(OK, what, "", "")
	}
	return found
}
