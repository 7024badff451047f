package ticket

import "github.com/shardkey/shardkey/internal/sqlstate"

var _ sqlstate.Keeper = (*generator)(nil)

// SQLState is the ticket table of each server.
func (g *generator) SQLState() (tables []sqlstate.Table) {
	for _, m := range g.pool.members {
		if s := m.server; s != nil {
			tables = append(tables, sqlstate.Table{
				Kind: sqlstate.Tickets, Connector: s.connector, Server: s.name, Name: g.config.Table, DDL: s.ddl(),
			})
		}
	}
	return tables
}
