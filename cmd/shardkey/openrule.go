package main

import (
	"slices"
	"strings"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// offlineDSN stands for the application's own database where none is asked. It
// shows in descriptions.
const offlineDSN = "app@tcp(the-applications-own:3306)/database"

// openRule reads a rule and makes its generators, which ask no server yet.
func (p *program) openRule(file, dsn string) (*rule.Rule, *rule.Generators, error) {
	r, err := rule.Load(file)
	if err != nil {
		return nil, nil, err
	}
	g, err := r.Open(spi.Host{DSN: dsn, Clock: p.clock, Logger: p.logger()})
	return r, g, err
}

// generatorNames are the generators that tables have, each once.
func generatorNames(r *rule.Rule) (names []string) {
	for _, t := range r.Tables() {
		if !slices.Contains(names, t.Generator) {
			names = append(names, t.Generator)
		}
	}
	return names
}

func tableNames(r *rule.Rule) (names []string) {
	for _, t := range r.Tables() {
		names = append(names, t.Logical)
	}
	return names
}

// list joins names, the first few of many.
func list(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// plain is an error's message without the prefix that the program writes
// anyway.
func plain(err error) string { return strings.TrimPrefix(err.Error(), "shardkey: ") }
