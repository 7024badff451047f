package driver

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/spi"
)

// Values of Config.Server.
const (
	serverAuto    = "auto"
	serverMySQL   = "mysql"
	serverMariaDB = "mariadb"
	serverVitess  = "vitess"
	serverTiDB    = "tidb"
	serverOther   = "other"
)

// traits are what differs between servers, as far as it matters here.
type traits struct {
	server string
	// insertIDs: LAST_INSERT_ID(expr) in an INSERT's values becomes the statement's
	// insert id, and LAST_INSERT_ID(). Engines that speak the protocol may not do so, or
	// may refuse an expression for a sharding column.
	insertIDs bool
	// upsertIDs: ON DUPLICATE KEY UPDATE of one row can tell the key of a row that exists
	// in that way.
	upsertIDs bool
	// returning: RETURNING is reserved, and INSERT … RETURNING gives rows.
	returning bool
	// shareLocks: LOCK IN SHARE MODE reads as INSERT … SELECT does.
	shareLocks bool
}

// servers is what is known of each: MySQL 9.7, MariaDB 10.11 and 11.8 and Vitess 23 were
// tried; TiDB is as its documentation says; nothing is relied on of another.
var servers = [...]traits{
	{server: serverMySQL, insertIDs: true, upsertIDs: true, shareLocks: true},
	{server: serverMariaDB, insertIDs: true, upsertIDs: true, shareLocks: true, returning: true},
	{server: serverVitess, upsertIDs: true, shareLocks: true},
	{server: serverTiDB},
	{server: serverOther},
}

func traitsOf(kind string) (traits, bool) {
	for _, t := range servers {
		if t.server == kind {
			return t, true
		}
	}
	return traits{}, false
}

// String lists what the server does and what it does not.
func (t traits) String() string {
	var does, not []string
	for _, trait := range [...]struct {
		name string
		has  bool
	}{
		{"insert ids", t.insertIDs}, {"ids of upserts", t.upsertIDs}, {"RETURNING", t.returning}, {"LOCK IN SHARE MODE", t.shareLocks},
	} {
		if trait.has {
			does = append(does, trait.name)
		} else {
			not = append(not, trait.name)
		}
	}
	var parts []string
	if len(does) > 0 {
		parts = append(parts, "with "+strings.Join(does, ", "))
	}
	if len(not) > 0 {
		parts = append(parts, "without "+strings.Join(not, ", "))
	}
	return strings.Join(parts, "; ")
}

// server is what a connector knows about its server.
type server struct {
	traits
	version string // as the server told it, empty where it was not asked
	// dialect is what some rare words of a text depend on.
	dialect rewrite.Dialect
	// foundRows: the connection may have clientFoundRows, so that ON DUPLICATE
	// KEY UPDATE reports 1 for a row that existed and did not change.
	foundRows bool
}

// serverCache is what one connector knows about its server, asked once.
type serverCache struct {
	kind  string     // what shardkeyServer says
	dsn   spi.Secret // of the base, where it is known
	known atomic.Pointer[server]
}

// describe tells what the server is, as far as that is known.
func (c *serverCache) describe() string {
	known := c.known.Load()
	if known == nil {
		switch t, ok := traitsOf(c.kind); {
		case ok:
			return fmt.Sprintf("server: %s, %s", c.kind, t)
		default:
			return "server: auto, not asked yet"
		}
	}
	text := "server: " + string(known.server)
	if known.version != "" {
		text += fmt.Sprintf(" (%.64q)", known.version)
	}
	return text + ", " + known.traits.String()
}

// server returns what is known about the server, which is asked unless the DSN
// says it.
func (s *session) server(ctx context.Context) (*server, error) {
	if known := s.servers.known.Load(); known != nil {
		return known, nil
	}
	kind, version := s.servers.kind, ""
	if kind == serverAuto {
		var err error
		if kind, version, err = s.askServer(ctx); err != nil {
			return nil, err
		}
	}
	known := newServer(kind, version)
	known.foundRows = mayFindRows(s.servers.dsn.Reveal())
	if !s.servers.known.CompareAndSwap(nil, known) {
		return s.servers.known.Load(), nil
	}
	return known, nil
}

func newServer(kind string, version string) *server {
	known := &server{version: version}
	known.traits, _ = traitsOf(kind)
	switch {
	case known.returning:
		known.dialect = rewrite.DialectMariaDB
	case kind == serverVitess:
		known.dialect = rewrite.DialectVitess
	case kind != serverOther || version != "":
		known.dialect = rewrite.DialectMySQL
	}
	return known
}

// assumed is the server that texts are read for where nobody can be asked.
func (c *serverCache) assumed() *server {
	if known := c.known.Load(); known != nil {
		return known
	}
	if c.kind == serverAuto {
		return newServer(serverMySQL, "")
	}
	return newServer(c.kind, "")
}

// report writes a plan for the server: how that is told the keys.
func (s *server) report(p *rewrite.Plan) {
	switch {
	case s.insertIDs:
		p.Report()
	case s.upsertIDs:
		p.ReportUpserts()
	}
}

// askServer asks the server what it is. One whose version and comment tell
// nothing is asked for its shards, which only Vitess has: vtgate shows the version
// that it was given.
func (s *session) askServer(ctx context.Context) (kind string, version string, err error) {
	row, err := s.askRow(ctx, "SELECT VERSION(), @@version_comment LIMIT 1")
	if err != nil {
		return "", "", err
	}
	if len(row) != 2 {
		return serverOther, "", nil
	}
	version = text(row[0])
	kind, told := serverOf(version, text(row[1]))
	if told {
		return kind, version, nil
	}
	switch row, err := s.queryRow(ctx, "SHOW VITESS_SHARDS"); {
	case err != nil && isFatal(ctx, err):
		return "", "", err
	case err == nil && len(row) == 1:
		return serverVitess, version, nil
	}
	return serverOther, version, nil
}

// signs tell what a server is by words of its version or, after a colon, of its comment alone,
// in this order: an engine's own before those of whose protocol it speaks.
var signs = [...]struct {
	word    string
	comment bool // looked for in the comment only
	server  string
}{
	{"vitess", false, serverVitess}, {"planetscale", false, serverVitess}, {"(git revision", true, serverVitess},
	{"tidb", false, serverTiDB},
	{"shardingsphere", false, serverOther}, {"dolt", false, serverOther}, {"oceanbase", false, serverOther}, {"doris", false, serverOther},
	{"starrocks", false, serverOther}, {"tddl", false, serverOther}, {"polardb", false, serverOther}, {"singlestore", false, serverOther},
	{"memsql", false, serverOther}, {"databend", false, serverOther},
	{"mariadb", false, serverMariaDB},
	// MySQL's version is a number: the comments of its builds tell.
	{"mysql", true, serverMySQL}, {"percona", true, serverMySQL}, {"source distribution", true, serverMySQL}, {"ubuntu", true, serverMySQL},
	{"debian", true, serverMySQL}, {"google", true, serverMySQL}, {"homebrew", true, serverMySQL},
}

// serverOf tells what a server is by its version and comment, in whatever case;
// told is false when they have no known sign.
func serverOf(version, comment string) (kind string, told bool) {
	version, comment = strings.ToLower(version), strings.ToLower(comment)
	for _, sign := range signs {
		if strings.Contains(comment, sign.word) || !sign.comment && strings.Contains(version, sign.word) {
			return sign.server, true
		}
	}
	return serverOther, false
}

// mayFindRows reports whether the connection may have clientFoundRows.
func (s *session) mayFindRows() bool {
	known := s.servers.known.Load()
	return known == nil || known.foundRows
}

func (s *session) isVitess() bool {
	known := s.servers.known.Load()
	return known != nil && known.traits.server == serverVitess
}

// tellsInsertIDs reports whether LAST_INSERT_ID(expr) in an INSERT becomes its insert
// id for certain.
func (s *session) tellsInsertIDs() bool {
	known := s.servers.known.Load()
	return known != nil && known.insertIDs
}

// dialect is what some rare words of a text depend on.
func (s *session) dialect(ctx context.Context) (rewrite.Dialect, error) {
	known, err := s.server(ctx)
	if err != nil {
		return rewrite.DialectUnknown, err
	}
	return known.dialect, nil
}

func mayFindRows(dsn string) bool {
	cfg, err := mysql.ParseDSN(dsn)
	return dsn == "" || err != nil || cfg.ClientFoundRows
}
