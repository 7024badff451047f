package leaf

import "github.com/shardkey/shardkey/internal/sqlstate"

var _ sqlstate.Keeper = (*generator)(nil)

// SQLState is leaf_alloc, where its address is known.
func (g *generator) SQLState() []sqlstate.Table {
	s, ok := g.store.(*sqlStore)
	if !ok || s.connector == nil {
		return nil
	}
	return []sqlstate.Table{{
		Kind: sqlstate.Segments, Connector: s.connector, Server: s.addr, Name: "leaf_alloc", Key: g.config.Key, DDL: ddl,
	}}
}
