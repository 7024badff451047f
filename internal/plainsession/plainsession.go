// Package plainsession removes the parameters of a DSN with which an application changes the results
// of statements.
package plainsession

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// changeResults are session variables with which our statements would return something else.
var changeResults = []string{
	"character_set_client", "character_set_connection", "character_set_results", "collation_connection",
	"completion_type", "insert_id", "last_insert_id", "sql_auto_is_null", "sql_safe_updates", "sql_select_limit",
	"timestamp",
}

// Set makes the results of our statements independent of what a DSN sets for an application. It keeps
// the variables of transactions and sql_mode.
func Set(cfg *mysql.Config) {
	cfg.Params = maps.Clone(cfg.Params)
	maps.DeleteFunc(cfg.Params, func(name, _ string) bool { return slices.Contains(changeResults, Variable(name)) })
	_ = cfg.Apply(mysql.Charset("utf8mb4", "")) // never fails
	cfg.ColumnsWithAlias = false
	cfg.MaxAllowedPacket = mysql.NewConfig().MaxAllowedPacket
}

// Variable returns the name of a session variable in lower case, without its scope.
func Variable(name string) string {
	name = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(name)), "@@")
	for _, scope := range []string{"session", "local"} {
		if rest, found := strings.CutPrefix(name, scope); found && strings.IndexAny(rest, ". ") == 0 {
			return strings.TrimSpace(rest[1:])
		}
	}
	return name
}
