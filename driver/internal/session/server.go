package session

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/internal/sqltoken"
)

// Kinds of servers, the values of Config.Server.
const (
	ServerAuto    = "auto"
	ServerMySQL   = "mysql"
	ServerMariaDB = "mariadb"
	ServerVitess  = "vitess"
	ServerOther   = "other"
)

// Server has the facts about a connector's server.
type Server struct {
	Kind    string
	Version string // the server's version; empty if it wasn't queried
	// Dialect is [rewrite.Options].Server. ReportsKeys: LAST_INSERT_ID(expr) sets the statement's insert ID
	// and LAST_INSERT_ID(). ReportsUpserts: at least in an upsert of one row. Other engines may not do
	// so (Vitess issue 6087), or may refuse an expression for a sharding column.
	Dialect                     string
	ReportsKeys, ReportsUpserts bool
}

// newServer returns the facts about a kind of server. MySQL 9.7, MariaDB 10.11 and 11.8, and
// Vitess 23 were tested. Nothing is assumed about other servers.
func newServer(kind, version string) *Server {
	s := &Server{Kind: kind, Version: version}
	switch kind {
	case ServerMySQL, ServerMariaDB:
		s.Dialect, s.ReportsKeys, s.ReportsUpserts = kind, true, true
	case ServerVitess:
		s.Dialect, s.ReportsUpserts = kind, true
	default:
		if version != "" {
			s.Dialect = ServerMySQL
		}
	}
	return s
}

// IsOld reports whether MySQL is older than 8.0, or MariaDB older than 10.6, if the version is known.
func (server *Server) IsOld() bool {
	var major, minor int
	version := strings.TrimPrefix(server.Version, "5.5.5-") // MariaDB's, for old clients
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n < 2 {
		return false
	}
	if server.Kind == ServerMariaDB {
		return major < 10 || major == 10 && minor < 6
	}
	return major < 8
}

// String returns the server's kind and version.
func (server *Server) String() string {
	if server.Version == "" {
		return server.Kind
	}
	return fmt.Sprintf("%s (%.64q)", server.Kind, server.Version)
}

// Describe returns a description of the server, as far as known.
func (c *Cache) Describe() string {
	known := c.server.Load()
	if known == nil && c.Kind == ServerAuto {
		return "server: auto, not asked yet"
	}
	if known == nil {
		known = newServer(c.Kind, "")
	}
	return "server: " + known.String()
}

// Server returns the facts about the server. It queries the server's kind unless the configuration
// specifies it.
func (s *Session) Server(ctx context.Context) (*Server, error) {
	if known := s.cache.server.Load(); known != nil {
		return known, nil
	}
	kind, version := s.cache.Kind, ""
	switch {
	case kind == ServerAuto && s.assumed != nil:
		kind = s.assumed.server()
	case kind == ServerAuto:
		var err error
		if kind, version, err = s.askServer(ctx); err != nil {
			return nil, err
		}
	}
	s.cache.server.CompareAndSwap(nil, newServer(kind, version))
	return s.cache.server.Load(), nil
}

// KnownServer returns the facts about the server, nil if it wasn't queried yet.
func (s *Session) KnownServer() *Server { return s.cache.server.Load() }

// askServer queries the server's kind and version. If they are inconclusive, it queries the
// server's shards, which only Vitess has, since vtgate shows a configurable version (Vitess,
// go/vt/servenv/mysql.go, mysql_server_version).
func (s *Session) askServer(ctx context.Context) (kind, version string, err error) {
	row, err := s.askRow(ctx, "SELECT VERSION(), @@version_comment LIMIT 1")
	if err != nil {
		return "", "", err
	}
	if len(row) != 2 {
		return ServerOther, "", nil
	}
	version = Text(row[0])
	kind, known := serverOf(version, Text(row[1]))
	if known {
		return kind, version, nil
	}
	switch row, err := s.QueryRow(ctx, "SHOW VITESS_SHARDS"); {
	case err != nil && IsFatal(ctx, err):
		return "", "", err
	case err == nil && len(row) == 1:
		return ServerVitess, version, nil
	}
	return ServerOther, version, nil
}

// signs are words that show a server's kind, in its version or its comment. Those of an engine
// precede those of the server whose protocol it implements.
var signs = [...]struct {
	word    string
	comment bool // only in the comment
	server  string
}{
	{"vitess", false, ServerVitess}, {"planetscale", false, ServerVitess}, {"(git revision", true, ServerVitess},
	{"tidb", false, ServerOther}, {"shardingsphere", false, ServerOther}, {"dolt", false, ServerOther}, {"oceanbase", false, ServerOther},
	{"doris", false, ServerOther}, {"starrocks", false, ServerOther}, {"tddl", false, ServerOther},
	{"polardb", false, ServerOther}, {"singlestore", false, ServerOther}, {"memsql", false, ServerOther},
	{"databend", false, ServerOther},
	{"mariadb", false, ServerMariaDB},
	// MySQL's version is a number, so the comments of its builds show it.
	{"mysql", true, ServerMySQL}, {"percona", true, ServerMySQL}, {"source distribution", true, ServerMySQL},
	{"ubuntu", true, ServerMySQL}, {"debian", true, ServerMySQL}, {"google", true, ServerMySQL},
	{"homebrew", true, ServerMySQL},
}

// serverOf returns a server's kind by its version and comment, ignoring case. known is false if
// they contain no sign.
func serverOf(version, comment string) (kind string, known bool) {
	version, comment = strings.ToLower(version), strings.ToLower(comment)
	for _, sign := range signs {
		if strings.Contains(comment, sign.word) || !sign.comment && strings.Contains(version, sign.word) {
			return sign.server, true
		}
	}
	return ServerOther, false
}

// IsVitess reports whether the server is known to be Vitess.
func (s *Session) IsVitess() bool {
	known := s.cache.server.Load()
	return known != nil && known.Kind == ServerVitess
}

// IsMariaDB reports whether the server is known to be MariaDB.
func (s *Session) IsMariaDB() bool {
	known := s.cache.server.Load()
	return known != nil && known.Kind == ServerMariaDB
}

// ReportsInsertIDs reports whether the server is known to make LAST_INSERT_ID(expr) in an
// INSERT its insert id.
func (s *Session) ReportsInsertIDs() bool {
	known := s.cache.server.Load()
	return known != nil && known.ReportsKeys
}

// TriggersSkipRows reports whether a trigger may make the server skip a row without an error, by the
// SQLSTATE 02TRG of MariaDB 11.8.
func (s *Session) TriggersSkipRows() bool {
	known := s.cache.server.Load()
	return known != nil && known.Kind == ServerMariaDB && !strings.Contains(known.Version, "10.")
}

// Client has the facts about connections from the underlying driver's DSN.
type Client struct {
	// FoundRows: the connections may have clientFoundRows. ON DUPLICATE KEY UPDATE then reports 1
	// for an existing row that it doesn't change.
	FoundRows bool
	// Zones are the possible time zones of the times in arguments.
	Zones []*time.Location
	// Single: the connections have no multiStatements. Several: they have. It may be unknown.
	Single, Several bool
}

// Scan reads a query of these connections.
func (client *Client) Scan(query string) sqltoken.Query { return sqltoken.Scan(query, !client.Single) }

// Several reports whether a connection accepts several statements in a string. If the DSN doesn't show
// that, Several asks the server once.
func (s *Session) Several(ctx context.Context) (bool, error) {
	if client := s.Client(); client.Single || client.Several {
		return client.Several, nil
	}
	if s.several == nil {
		_, err := s.do(ctx, base.Request{Text: "DO 0; DO 0", How: base.Directly})
		if err != nil && err != driver.ErrSkip && !errors.As(err, new(*mysql.MySQLError)) {
			return false, err
		}
		accepted := err == nil
		s.several = &accepted
	}
	return *s.several, nil
}

// NewClient returns the Client for a configuration, which may be nil if unknown.
func NewClient(cfg *mysql.Config) Client {
	if cfg == nil {
		return Client{FoundRows: true, Zones: allZones}
	}
	c := Client{FoundRows: cfg.ClientFoundRows, Single: !cfg.MultiStatements, Several: cfg.MultiStatements, Zones: allZones}
	if cfg.Loc != nil {
		c.Zones = []*time.Location{cfg.Loc}
	}
	return c
}

var allZones = func() (zones []*time.Location) {
	for quarter := -12 * 4; quarter <= 14*4; quarter++ {
		zones = append(zones, time.FixedZone("", quarter*15*60))
	}
	return zones
}()
