package rule

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// ErrOwnDatabase is in the chain of the error for a rule over several databases whose generator or
// worker-ID assigner keeps its state in the connector's own database. Each database would generate
// the same keys. To fix it, set the property dsn to one database for all of them. The property
// own-database: yes permits it where the keys never share a table.
var ErrOwnDatabase = errors.New("shardkey: the databases of one rule would generate the same keys")

// ownDatabase is the property that permits state in the connector's own database.
const ownDatabase = "own-database"

// needsOneDatabase reports whether two databases, each with this state, would generate the same
// keys.
func (m makeSpec) needsOneDatabase() bool { return m.used && m.ownDatabase && !m.ownMeant }

// checkDatabases returns an error if the rule has several data sources and keeps state in each of
// them.
func (r *Rule) checkDatabases() error {
	reason := r.severalSources()
	if reason == "" {
		return nil
	}
	for _, a := range r.assigners {
		if a.needsOneDatabase() {
			return r.ownDatabaseError(assignerKind, a, reason)
		}
	}
	for _, g := range r.generators {
		if g.needsOneDatabase() {
			return r.ownDatabaseError(generatorKind, g, reason)
		}
	}
	return nil
}

// severalSources returns how the rule shows that its tables are in more than one data source. It
// returns "" if it doesn't.
func (r *Rule) severalSources() string {
	switch {
	case len(r.sources) > 1 || len(r.sources) == 1 && strings.Contains(r.sources[0], "${"):
		shown := strings.Join(r.sources[:min(3, len(r.sources))], ", ")
		if len(r.sources) > 3 {
			shown += ", …"
		}
		return "the tables are in several data sources (" + shown + ")"
	case r.spread != "":
		return fmt.Sprintf("a databaseStrategy distributes table %q over several data sources", r.spread)
	}
	return ""
}

func (r *Rule) ownDatabaseError(kind string, m makeSpec, reason string) *Error {
	way := "the property dsn with one database for all of them"
	if strings.EqualFold(m.typ.text, "TICKET") {
		way = "the property dsns with the same ticket servers for all of them"
	}
	e := errorAt(r.file, m.name, fmt.Sprintf(
		"%s %q keeps its state in the connector's own database, but %s, and each would generate the same keys; add %s"+
			"; %s: yes permits it where rows never move between the databases",
		kind, m.name.text, reason, way, ownDatabase))
	e.Err = ErrOwnDatabase
	return e
}

// databaseOf returns the default database of a data source name in go-sql-driver/mysql's form. It
// returns "" if there is none, or if the name is invalid.
func databaseOf(dsn string) string {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return ""
	}
	return cfg.DBName
}

// databaseName returns the address and the database of a data source name, without user, password
// and parameters. Two names for the same database at the same address give the same result. It
// returns "" for an empty or invalid name.
func databaseName(dsn string) string {
	cfg, err := mysql.ParseDSN(dsn)
	if dsn == "" || err != nil {
		return ""
	}
	if cfg.Net == "tcp" {
		cfg.Addr = strings.ToLower(cfg.Addr)
	}
	return fmt.Sprintf("%s(%s)/%s", cfg.Net, cfg.Addr, cfg.DBName)
}
