package rule

import (
	"errors"
	"fmt"
	"strings"
)

// ErrOwnDatabase is in the chain of the error for a rule over several databases
// with a generator or a worker-ID assigner that keeps its state in the
// connector's own one: each database would give the same keys. The way out is a
// dsn of one database for all of them. The property own-database allows it.
var ErrOwnDatabase = errors.New("shardkey: keys would repeat among the databases of one rule")

// ownDatabase is the property that allows it.
const ownDatabase = "own-database"

// needsOneDatabase reports whether databases that each have this state give the
// same keys.
func (m makeSpec) needsOneDatabase() bool { return m.used && m.ownDatabase && !m.ownMeant }

// checkDatabases refuses a rule for several data sources with state in each of them.
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

// severalSources says why the rule's tables are in more than one data source; empty
// when nothing shows that they are.
func (r *Rule) severalSources() string {
	switch {
	case len(r.sources) > 1 || len(r.sources) == 1 && strings.Contains(r.sources[0], "${"):
		shown := strings.Join(r.sources[:min(3, len(r.sources))], ", ")
		if len(r.sources) > 3 {
			shown += ", …"
		}
		return "the tables are in several data sources (" + shown + ")"
	case r.spread != "":
		return fmt.Sprintf("a databaseStrategy spreads table %q over several data sources", r.spread)
	}
	return ""
}

func (r *Rule) ownDatabaseError(kind string, m makeSpec, reason string) *Error {
	way := "dsn: with one database for all of them"
	if strings.EqualFold(m.typ.text, "TICKET") {
		way = "dsns: with the same ticket servers for all of them"
	}
	e := errorAt(r.file, m.name, fmt.Sprintf(
		"%s %q keeps its state in the connector's own database, but %s: each database would give the same keys; write %s, "+
			"or %s: yes if their keys never meet",
		kind, m.name.text, reason, way, ownDatabase))
	e.Err = ErrOwnDatabase
	return e
}

// databaseOf returns the default database of a data source name in
// go-sql-driver/mysql's form: what stands between the last slash and the
// parameters.
func databaseOf(dsn string) string {
	slash := strings.LastIndexByte(dsn, '/')
	if slash < 0 {
		return ""
	}
	database, _, _ := strings.Cut(dsn[slash+1:], "?")
	return database
}

// databaseName is the address and the database of such a name, without user,
// password and parameters: what two ways to one database have in common. It is
// empty when there is no name.
func databaseName(dsn string) string {
	slash := strings.LastIndexByte(dsn, '/')
	if slash < 0 {
		return ""
	}
	network, rest, _ := strings.Cut(dsn[strings.LastIndexByte(dsn[:slash], '@')+1:slash], "(")
	address := strings.TrimSuffix(rest, ")")
	if network == "" {
		network = "tcp"
	}
	switch {
	case network == "tcp" && address == "":
		address = "127.0.0.1:3306"
	case network == "tcp" && strings.LastIndexByte(address, ':') <= strings.LastIndexByte(address, ']'):
		address += ":3306"
	case network == "unix" && address == "":
		address = "/tmp/mysql.sock"
	}
	if network == "tcp" {
		address = strings.ToLower(address)
	}
	return fmt.Sprintf("%s(%s)/%s", network, address, databaseOf(dsn))
}
