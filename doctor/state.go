package doctor

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/shardkey/shardkey/internal/schema"
	"github.com/shardkey/shardkey/internal/sqlstate"
	"github.com/shardkey/shardkey/internal/sqltext"
)

// stateTable is a table with the state of a generator or an assigner, and who keeps
// it there.
type stateTable struct {
	sqlstate.Table
	keeper string // its name in the rule
	of     string // for a generator: its name in lower case
}

// states looks at the tables that generators and assigners keep their state in, each
// once.
func (x *examination) states(ctx context.Context) []Finding {
	tables := x.stateTables()
	found := make([][]Finding, len(tables))
	var running sync.WaitGroup
	for i := range tables {
		running.Go(func() {
			s := &stateCheck{examination: x, ctx: ctx, t: tables[i]}
			s.examine()
			found[i] = merged(s.found)
		})
	}
	running.Wait()
	all := append(slices.Concat(found...), x.apart(tables)...)
	return append(all, x.workerIDs(ctx, tables)...)
}

func (x *examination) stateTables() (tables []stateTable) {
	add := func(v any, keeper, of string) {
		k, ok := v.(sqlstate.Keeper)
		if !ok {
			return
		}
		for _, t := range k.SQLState() {
			known := slices.ContainsFunc(tables, func(o stateTable) bool {
				return o.Kind == t.Kind && o.Server == t.Server && o.Name == t.Name && o.Key == t.Key && o.of == of
			})
			if !known {
				tables = append(tables, stateTable{t, keeper, of})
			}
		}
	}
	for _, d := range x.Databases {
		if d.Live == nil {
			continue
		}
		assigners := d.Live.WorkerIDAssigners()
		for _, name := range sortedKeys(assigners) {
			add(assigners[name], name, "")
		}
		for _, t := range x.Rule.Tables() {
			add(d.Live.Generator(t.GeneratorName), t.GeneratorName, strings.ToLower(t.GeneratorName))
		}
	}
	return tables
}

// apart reports keepers with a state in each of several databases.
func (x *examination) apart(tables []stateTable) (found []Finding) {
	servers := map[string][]string{}
	for _, t := range tables {
		if t.Kind != sqlstate.Tickets {
			servers[t.keeper] = append(servers[t.keeper], t.Server)
		}
	}
	for _, name := range sortedKeys(servers) {
		if n := len(servers[name]); n > 1 {
			found = append(found, Finding{Severity: Info, Check: "store", What: fmt.Sprintf("%s keeps its state in each of %d databases, as own-database: yes says", name, n),
				Why: "each gives the same keys as the others: their rows must never be brought together",
				Fix: fmt.Sprintf("dsn: of one database for all in the props of %s", name)})
		}
	}
	return found
}

// stateCheck is the examination of one state table.
type stateCheck struct {
	*examination
	ctx    context.Context
	t      stateTable
	conn   *sql.Conn
	server server
	schema *schema.Database
	found  []Finding
}

func (s *stateCheck) add(severity, what, why, fix string) {
	s.found = append(s.found, Finding{Severity: severity, Check: s.check(), What: fmt.Sprintf("%s, table %s at %s: %s", s.t.keeper, s.t.Name, s.t.Server, what), Why: why, Fix: fix})
}

func (s *stateCheck) check() string {
	return [...]string{sqlstate.Leases: "leases", sqlstate.Segments: "segments", sqlstate.Tickets: "tickets"}[s.t.Kind]
}

func (s *stateCheck) examine() {
	if err := s.connect(); err != nil {
		f := away("", "", err)
		s.add(f.Severity, f.What, "no key can be made for longer than what is in memory lasts", "")
	}
}

func (s *stateCheck) connect() error {
	conn, closeAll, err := open(s.ctx, s.t.Connector)
	if err != nil {
		return err
	}
	defer closeAll()
	s.conn = conn
	return s.look()
}

func (s *stateCheck) look() (err error) {
	if s.server, err = s.examination.server(s.ctx, s.conn); err != nil {
		return err
	}
	for _, f := range s.server.findings("") {
		if IsProblem(f.Severity) {
			s.add(f.Severity, f.What, f.Why, f.Fix)
		}
	}
	s.durability()
	in, name, qualified := strings.Cut(s.t.Name, ".")
	if !qualified {
		in, name = "", s.t.Name
	}
	if s.schema, err = schema.Read(s.ctx, s.conn, in); err != nil {
		return err
	}
	if in == "" {
		in = s.schema.Name
	}
	t := s.schema.Table(in, name)
	if t == nil {
		s.missing(in, name)
		return nil
	}
	s.rights(t)
	if !strings.EqualFold(t.Engine, "InnoDB") && t.Engine != "" {
		s.add(Error, "its engine is "+t.Engine, "what it has confirmed must last, and two processes must not change one row at the same time", fmt.Sprintf("ALTER TABLE %s ENGINE=InnoDB;", s.schema.Quoted(t)))
	}
	if !s.server.grants.has("SELECT", t.Schema, t.Name, "") {
		return nil
	}
	switch s.t.Kind {
	case sqlstate.Leases:
		err = s.leases(t)
	case sqlstate.Segments:
		err = s.segments(t)
	default:
		err = s.tickets(t)
	}
	if err == nil && !slices.ContainsFunc(s.found, func(f Finding) bool { return f.Severity != OK }) {
		s.add(OK, "as it must be", "", "")
	}
	return err
}

// needs are the rights on a state table.
func (s *stateCheck) needs() []string {
	switch s.t.Kind {
	case sqlstate.Leases:
		return []string{"SELECT", "INSERT", "UPDATE"}
	case sqlstate.Segments:
		return []string{"SELECT", "UPDATE"}
	}
	return []string{"SELECT", "INSERT", "DELETE"}
}

func (s *stateCheck) rights(t *schema.Table) {
	var lacking []string
	for _, right := range s.needs() {
		if !s.server.grants.has(right, t.Schema, t.Name, "") {
			lacking = append(lacking, right)
		}
	}
	if s.t.Kind == sqlstate.Segments && !s.server.grants.has("INSERT", t.Schema, t.Name, "") {
		s.add(Info, fmt.Sprintf("the user %s has not the right INSERT", s.server.user), "which server the table is on cannot be noted, and a failover to one without the last claims is not noticed",
			fmt.Sprintf("GRANT INSERT ON %s TO %s;", sqltext.QuoteTable(t.Schema, t.Name), s.server.user))
	}
	if len(lacking) > 0 {
		list := strings.Join(lacking, ", ")
		s.add(Error, fmt.Sprintf("the user %s has not the right %s", s.server.user, list), "no key can be made",
			fmt.Sprintf("GRANT %s ON %s TO %s;", list, sqltext.QuoteTable(t.Schema, t.Name), s.server.user))
	}
}

func (s *stateCheck) missing(in, name string) {
	if s.t.Kind != sqlstate.Leases {
		s.add(Error, "the table is not there", "no key can be made", s.t.DDL+";"+s.firstRow())
		return
	}
	if s.server.grants.has("CREATE", in, name, "") {
		s.add(Info, "the table is not there yet: the first key makes it", "its user has the right to", s.t.DDL+";")
		return
	}
	s.add(Error, fmt.Sprintf("the table is not there, and the user %s may not make it", s.server.user), "no worker id can be had, and so no key",
		fmt.Sprintf("%s;\nGRANT SELECT, INSERT, UPDATE ON %s TO %s;", s.t.DDL, sqltext.QuoteTable(in, name), s.server.user))
}

// durability looks at the settings by which a server forgets what it has confirmed.
func (s *stateCheck) durability() {
	const why = "what the server has confirmed must last: after a crash of its machine it may have forgotten numbers or worker ids that it has given out, and give them again"
	if v := s.server.variables["innodb_flush_log_at_trx_commit"]; v != "" && v != "1" {
		s.add(Warning, "innodb_flush_log_at_trx_commit is "+v, why, "SET GLOBAL innodb_flush_log_at_trx_commit = 1; -- and in the server's configuration")
	}
	if v := s.server.variables["sync_binlog"]; v != "" && v != "1" && s.server.variables["log_bin"] == "ON" {
		s.add(Warning, "sync_binlog is "+v, "after a crash a replica may lack, or have, what the server does not: one that takes its place gives numbers again", "SET GLOBAL sync_binlog = 1; -- and in the server's configuration")
	}
	const one = "the state must be written on one node: two nodes that are cut off from each other, or that both are written to, each give the same numbers or fail each other's writes"
	if s.server.variables["wsrep_on"] == "ON" {
		s.add(Info, "the server is a node of a Galera cluster", one, "give the address of one node, or of a proxy that writes to one")
	}
	if s.server.variables["group_replication_single_primary_mode"] == "OFF" {
		s.add(Warning, "the server's group has several primaries", one, "SELECT group_replication_switch_to_single_primary_mode();")
	}
}

// leases looks at the worker ids.
func (s *stateCheck) leases(t *schema.Table) error {
	keyed := slices.ContainsFunc(t.Indexes, func(i *schema.Index) bool {
		return i.Unique && !slices.ContainsFunc(i.Columns, func(c string) bool { return !strings.EqualFold(c, "namespace") && !strings.EqualFold(c, "worker_id") })
	})
	if !keyed {
		s.add(Error, "it has no primary key (namespace, worker_id)", "several processes can hold one worker id, and make the same keys",
			fmt.Sprintf("ALTER TABLE %s ADD PRIMARY KEY (namespace, worker_id);", s.schema.Quoted(t)))
	}
	ahead := map[int64]time.Time{}
	now := s.Now()
	err := schema.Rows(s.ctx, s.conn, "SELECT worker_id, GREATEST(reserved_until, free_from), free_from FROM "+s.schema.Quoted(t)+" WHERE worker_id >= 0 AND namespace = "+schema.Literal(s.t.Key), func(row []string) { // one below notes the server
		id, _ := strconv.ParseInt(row[0], 10, 64)
		start, _ := strconv.ParseInt(row[1], 10, 64)
		if from, _ := strconv.ParseInt(row[2], 10, 64); from > 0 {
			start = from
		}
		if start > now.Add(24*time.Hour).UnixMilli() {
			ahead[id] = time.UnixMilli(start)
		}
	})
	for _, id := range slices.Sorted(maps.Keys(ahead)) {
		s.add(Warning, fmt.Sprintf("worker id %d begins only at %s", id, ahead[id].UTC().Format(time.RFC3339)), "a wrong clock has reserved the time up to there; nobody can use the worker id before",
			fmt.Sprintf("DELETE FROM %s WHERE namespace = %s AND worker_id = %d; -- only if no key with such a time is in any table", s.schema.Quoted(t), schema.Literal(s.t.Key), id))
	}
	return err
}

// above is a number above the greatest key of the generator's tables.
func (s *stateCheck) above() (newestKey, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.newest[s.t.of]
	return n, ok && n.key < math.MaxInt64
}

func (s *stateCheck) firstRow() string {
	if s.t.Kind != sqlstate.Segments {
		return ""
	}
	first := uint64(1)
	if n, ok := s.above(); ok {
		first = n.key + 1
	}
	return fmt.Sprintf("\nINSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES (%s, %d, 1000);", schema.Literal(s.t.Key), first)
}

// segments looks at the row of a LEAF_SEGMENT.
func (s *stateCheck) segments(t *schema.Table) error {
	var maxIDs []uint64
	step := int64(0)
	err := schema.Rows(s.ctx, s.conn, "SELECT GREATEST(max_id, 0), step FROM "+s.schema.Quoted(t)+" WHERE biz_tag = "+schema.Literal(s.t.Key), func(row []string) {
		n, _ := strconv.ParseUint(row[0], 10, 64)
		maxIDs = append(maxIDs, n)
		step, _ = strconv.ParseInt(row[1], 10, 64)
	})
	if err != nil {
		return err
	}
	table := s.schema.Quoted(t)
	switch {
	case len(maxIDs) == 0:
		s.add(Error, fmt.Sprintf("it has no row %q", s.t.Key), "no key can be made", strings.TrimPrefix(s.firstRow(), "\n"))
		return nil
	case len(maxIDs) > 1:
		s.add(Error, fmt.Sprintf("it has %d rows %q", len(maxIDs), s.t.Key), "each gives the same numbers", fmt.Sprintf("ALTER TABLE %s ADD PRIMARY KEY (biz_tag); -- after all but the one with the greatest max_id are deleted", table))
		return nil
	case step < 1:
		s.add(Error, fmt.Sprintf("the step of row %q is %d", s.t.Key, step), "no segment can be claimed", fmt.Sprintf("UPDATE %s SET step = 1000 WHERE biz_tag = %s;", table, schema.Literal(s.t.Key)))
	}
	s.counter(maxIDs[0], fmt.Sprintf("max_id of %q is %d", s.t.Key, maxIDs[0]), func(next uint64) string {
		return fmt.Sprintf("UPDATE %s SET max_id = %d WHERE biz_tag = %s AND max_id < %d;", table, next, schema.Literal(s.t.Key), next)
	})
	return nil
}

// counter holds the next number of a count against the keys that are there and
// against the column.
func (s *stateCheck) counter(next uint64, what string, raise func(next uint64) string) {
	n, ok := s.above()
	if !ok {
		return
	}
	where := strings.TrimSpace(n.source + " " + n.table)
	if n.key >= next {
		s.add(Error, fmt.Sprintf("%s, but the greatest key is %d (%s)", what, n.key, where), "the numbers up to there are given once more, to rows whose keys exist", raise(n.key+1))
	}
	if limit := n.columnHoldsUpTo; limit > 0 && limit < math.MaxInt64 && max(next, n.key) > limit/10*8 {
		s.add(Warning, fmt.Sprintf("%s, and the key column of %s holds keys up to %d", what, where, limit), "INSERTs are refused from then on",
			"-- shardkey migrate prints the statements that make it BIGINT, with what refers to it")
	}
}

var autoIncrementOption = regexp.MustCompile(`(?m)^\).* AUTO_INCREMENT=(\d+)`)

// tickets looks at a ticket table.
func (s *stateCheck) tickets(t *schema.Table) error {
	column := t.AutoIncrement()
	if column == nil {
		s.add(Error, "it has no AUTO_INCREMENT column", "no key can be made", s.t.DDL+"; -- in place of the table that is there")
		return nil
	}
	defs, err := s.schema.Definitions(s.ctx, s.conn, t)
	if err != nil {
		return err
	}
	next := uint64(1)
	if m := autoIncrementOption.FindStringSubmatch(defs.Text); m != nil {
		next, _ = strconv.ParseUint(m[1], 10, 64)
	}
	s.counter(next, fmt.Sprintf("its next number is %d", next), func(next uint64) string {
		return fmt.Sprintf("ALTER TABLE %s AUTO_INCREMENT = %d;", s.schema.Quoted(t), next)
	})
	if limit := column.Holds().High; next > limit/10*8 {
		s.add(Warning, fmt.Sprintf("its next number is %d, and its column holds numbers up to %d", next, limit), "no key can be made from then on",
			fmt.Sprintf("ALTER TABLE %s MODIFY %s BIGINT UNSIGNED NOT NULL AUTO_INCREMENT;", s.schema.Quoted(t), sqltext.QuoteIdentifier(column.Name)))
	}
	return nil
}
