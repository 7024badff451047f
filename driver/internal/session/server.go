package session

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/rewrite"
)

// Kinds of servers, the values of Config.Server.
const (
	ServerAuto    = "auto"
	ServerMySQL   = "mysql"
	ServerMariaDB = "mariadb"
	ServerVitess  = "vitess"
	ServerTiDB    = "tidb"
	ServerOther   = "other"
)

// Server is what a connector knows about its server.
type Server struct {
	Kind    string
	Version string // as the server returned it, empty if it was not asked
	// Dialect is what some rare words of a statement depend on.
	Dialect rewrite.Dialect
	// InsertIDs: LAST_INSERT_ID(expr) in an INSERT's values becomes the statement's
	// insert id, and LAST_INSERT_ID(). Engines that speak the protocol may not do so, or
	// may refuse an expression for a sharding column.
	InsertIDs bool
	// UpsertIDs: ON DUPLICATE KEY UPDATE of one row can return the key of a row that
	// exists in that way.
	UpsertIDs bool
	// ShareLocks: LOCK IN SHARE MODE reads as INSERT … SELECT does.
	ShareLocks bool
}

// servers are the known ones: MySQL 9.7, MariaDB 10.11 and 11.8 and Vitess 23 were tried;
// TiDB is as its documentation has it; of another nothing is relied on.
var servers = [...]Server{
	{Kind: ServerMySQL, Dialect: rewrite.DialectMySQL, InsertIDs: true, UpsertIDs: true, ShareLocks: true},
	{Kind: ServerMariaDB, Dialect: rewrite.DialectMariaDB, InsertIDs: true, UpsertIDs: true, ShareLocks: true},
	{Kind: ServerVitess, Dialect: rewrite.DialectVitess, UpsertIDs: true, ShareLocks: true},
	{Kind: ServerTiDB, Dialect: rewrite.DialectMySQL},
	{Kind: ServerOther, Dialect: rewrite.DialectMySQL},
}

func newServer(kind, version string) *Server {
	for _, s := range servers {
		if s.Kind == kind {
			if s.Version = version; kind == ServerOther && version == "" {
				s.Dialect = rewrite.DialectUnknown
			}
			return &s
		}
	}
	return &Server{Kind: kind, Version: version}
}

// String returns the server's kind and version, and lists what it does and what it does not.
func (s *Server) String() string {
	var does, not []string
	for _, trait := range [...]struct {
		name string
		has  bool
	}{
		{"insert ids", s.InsertIDs}, {"ids of upserts", s.UpsertIDs}, {"LOCK IN SHARE MODE", s.ShareLocks},
	} {
		if trait.has {
			does = append(does, trait.name)
		} else {
			not = append(not, trait.name)
		}
	}
	text, and := s.Kind, ", "
	if s.Version != "" {
		text += fmt.Sprintf(" (%.64q)", s.Version)
	}
	if len(does) > 0 {
		text, and = text+and+"with "+strings.Join(does, ", "), "; "
	}
	if len(not) > 0 {
		text += and + "without " + strings.Join(not, ", ")
	}
	return text
}

// Report writes a plan for the server: how the server is told the keys.
func (s *Server) Report(p *rewrite.Plan) {
	switch {
	case s.InsertIDs:
		p.Report()
	case s.UpsertIDs:
		p.ReportUpserts()
	}
}

// Describe returns what the server is, as far as that is known.
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

// Server returns what is known about the server, which is asked unless Kind names it.
func (s *Session) Server(ctx context.Context) (*Server, error) {
	if known := s.cache.server.Load(); known != nil {
		return known, nil
	}
	kind, version := s.cache.Kind, ""
	if kind == ServerAuto {
		var err error
		if kind, version, err = s.askServer(ctx); err != nil {
			return nil, err
		}
	}
	s.cache.server.CompareAndSwap(nil, newServer(kind, version))
	return s.cache.server.Load(), nil
}

// askServer asks the server what it is. A server whose version and comment show nothing is
// asked for its shards, which only Vitess has: vtgate shows the version that it was given.
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

// signs show what a server is by words of its version or, where comment is set, of its comment
// alone, in this order: an engine's own before those of the server whose protocol it speaks.
var signs = [...]struct {
	word    string
	comment bool // looked for in the comment only
	server  string
}{
	{"vitess", false, ServerVitess}, {"planetscale", false, ServerVitess}, {"(git revision", true, ServerVitess},
	{"tidb", false, ServerTiDB},
	{"shardingsphere", false, ServerOther}, {"dolt", false, ServerOther}, {"oceanbase", false, ServerOther},
	{"doris", false, ServerOther}, {"starrocks", false, ServerOther}, {"tddl", false, ServerOther},
	{"polardb", false, ServerOther}, {"singlestore", false, ServerOther}, {"memsql", false, ServerOther},
	{"databend", false, ServerOther},
	{"mariadb", false, ServerMariaDB},
	// MySQL's version is a number: the comments of its builds show it.
	{"mysql", true, ServerMySQL}, {"percona", true, ServerMySQL}, {"source distribution", true, ServerMySQL},
	{"ubuntu", true, ServerMySQL}, {"debian", true, ServerMySQL}, {"google", true, ServerMySQL},
	{"homebrew", true, ServerMySQL},
}

// serverOf returns what a server is by its version and comment, in any case; known is false
// if they have no known sign.
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

// ReportsInsertIDs reports whether the server is known to make LAST_INSERT_ID(expr) in an
// INSERT its insert id.
func (s *Session) ReportsInsertIDs() bool {
	known := s.cache.server.Load()
	return known != nil && known.InsertIDs
}

// Client is what the underlying driver's DSN shows about its connections.
type Client struct {
	// FoundRows: the connections may have clientFoundRows, so that ON DUPLICATE KEY
	// UPDATE reports 1 for a row that existed and did not change.
	FoundRows bool
	// Zones are the time zones in which times may be sent.
	Zones []*time.Location
	// MaxAllowedPacket is in bytes; 0 if it is not known.
	MaxAllowedPacket int
}

// NewClient reads a configuration; nil is one that is not known.
func NewClient(cfg *mysql.Config) Client {
	if cfg == nil {
		return Client{FoundRows: true, Zones: allZones}
	}
	c := Client{FoundRows: cfg.ClientFoundRows, Zones: allZones, MaxAllowedPacket: max(cfg.MaxAllowedPacket, 0)}
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
