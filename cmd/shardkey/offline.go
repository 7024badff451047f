package main

import (
	"database/sql"
	"log/slog"
	"net/url"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/lint"
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/rewrite"
	"github.com/shardkey/shardkey/rule"
)

// offline is a rule, and a connector that plans statements by it and never connects.
type offline struct {
	*sql.DB
	connector *driver.Connector
	rule      *rule.Rule
	mode      rewrite.Mode
}

// openOffline opens a rule file for a kind of server and a sql_mode, which may be empty.
func (p *program) openOffline(file, server, sqlMode string) (*offline, error) {
	mode, err := parseMode(sqlMode)
	if err != nil {
		return nil, err
	}
	r, err := p.loadRule(file)
	if err != nil {
		return nil, err
	}
	const name = "shardkey-plan"
	if err := driver.RegisterRule(name, r); err != nil {
		return nil, err
	}
	defer driver.DeregisterRule(name)
	dsn := offlineDSN + "?shardkeyRule=" + name
	if sqlMode != "" {
		dsn += "&sql_mode=" + url.QueryEscape("'"+sqlMode+"'")
	}
	quiet := slog.New(slog.DiscardHandler)
	db, c, err := driver.Open(dsn, driver.Config{Server: server}, driver.WithClock(p.clock), driver.WithLogger(quiet))
	if err != nil {
		return nil, err
	}
	return &offline{db, c, r, mode}, nil
}

func (o *offline) linter() *lint.Linter {
	return &lint.Linter{Connector: o.connector, Names: allTableNames(o.rule), Mode: o.mode}
}
