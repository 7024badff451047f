package driver

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/internal/sqlerr"
	"github.com/shardkey/shardkey/rule"
)

// explainUnrouted adds to the server's error about a missing table that the INSERT names the logical
// table.
func (version *ruleVersion) explainUnrouted(t *rule.Table, name string, err error) error {
	var my *mysql.MySQLError
	if !errors.As(err, &my) || my.Number != sqlerr.UnknownTable || !facts.ContainsName(my.Message, name) {
		return err
	}
	if unrouted := version.unrouted(t, name); unrouted != "" {
		return fmt.Errorf("shardkey: %s: %w", unrouted, err)
	}
	return err
}

// unrouted explains why an INSERT can't name this table, if it is a logical table and none of its
// actual tables. It returns "" for other tables.
func (version *ruleVersion) unrouted(t *rule.Table, name string) string {
	if !strings.EqualFold(name, t.Logical) {
		return ""
	}
	for place := range version.rule.Places(t.Logical) {
		if strings.EqualFold(place.Table, name) {
			return ""
		}
	}
	const shown = 3
	known := slices.Concat(t.Actual[:min(shown, len(t.Actual))], t.Patterns)
	if t.ActualCount > shown {
		known = append(known, "…")
	}
	return fmt.Sprintf("%s is a logical table of the rule, and shardkey doesn't route; name an actual table (%s), unless a proxy "+
		"such as ShardingSphere-Proxy routes", t.Logical, strings.Join(known, ", "))
}
