package workerid

import "github.com/shardkey/shardkey/internal/sqlstate"

var _ sqlstate.Keeper = (*assigner)(nil)

// SQLState returns the table of a SQL store.
func (a *assigner) SQLState() []sqlstate.Table {
	s, ok := a.store.(*sqlStore)
	if !ok {
		return nil
	}
	return []sqlstate.Table{{
		Kind: sqlstate.Leases, Connector: s.connector, Server: s.server, Name: s.name,
		Key: s.namespace, DDL: tableDDL(s.table),
	}}
}
