package driver

import (
	"log/slog"
	"strings"

	"github.com/shardkey/shardkey/driver/internal/session"
)

// defaultSQLMode is the sql_mode of a new MySQL server.
const defaultSQLMode = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE," +
	"ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"

// assume returns a session without a server. It uses the facts that the connector's connections
// have learned, and the variables in the DSN.
func (connector *Connector) assume(columns []string) (*session.Session, *session.Assumed) {
	as, database := &session.Assumed{Mode: defaultSQLMode, Columns: columns, Err: ErrNoConnection}, ""
	if cfg := configOf(connector.host.DSN.Reveal()); cfg != nil {
		database = cfg.DBName
		if mode, ok := cfg.Params["sql_mode"]; ok {
			as.Mode = strings.Trim(mode, `'"`)
		}
	}
	return connector.known.Assume(as, database), as
}

// withoutEffect returns a ruleVersion for planning. It doesn't count, log or cache in version, and generates
// no key.
func (version *ruleVersion) withoutEffect() *ruleVersion {
	quiet := &env{logger: slog.New(slog.DiscardHandler), verifier: verifier{read: version.verifier.read}}
	return &ruleVersion{env: quiet, rule: version.rule, generators: version.generators, plans: newPlanCache(quiet), inUse: version.plans}
}

// assume copies the facts that executions have learned about a table.
func (t *keyedTable) assume(inUse *planCache) {
	if known, ok := inUse.tables.Load(t.Rule); ok {
		known.(*keyedTable).unreported.copyTo(&t.unreported)
	}
}
