package debug

import (
	"strings"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/explain"
	"github.com/shardkey/shardkey/rewrite"
)

// planned is what becomes of a statement.
type planned struct {
	Statement string          `json:"statement"`
	Outcome   string          `json:"outcome"` // filled, passes or refused
	Says      string          `json:"says,omitempty"`
	Inserts   []plannedInsert `json:"inserts,omitempty"`
	// Sent is the text as it is sent, with ? for each key; empty for INSERT … SELECT,
	// which takes several.
	Sent string `json:"sent,omitempty"`
}

// plannedInsert is an INSERT into a ruled table.
type plannedInsert struct {
	Into      string   `json:"into"`
	Table     string   `json:"table"`
	Column    string   `json:"column"`
	Generator string   `json:"generator"`
	Rows      []string `json:"rows"`
}

// maxRows is how many kinds of rows are told apart.
const maxRows = 20

// plan finds out what becomes of a statement. Nothing is sent.
func plan(c *driver.Connector, text string) *planned {
	out := &planned{Statement: text}
	p, err := c.Plan(text)
	switch {
	case err != nil:
		out.Outcome, out.Says = "refused", err.Error()
		return out
	case len(p.Inserts) == 0:
		out.Outcome, out.Says = "passes", "it is sent as it is: it inserts into no table of the rule"
		return out
	}
	out.Outcome = "filled"
	for i := range p.Inserts {
		in := &p.Inserts[i]
		one := plannedInsert{Into: in.Name, Column: in.Table.KeyColumn}
		if in.Schema != "" {
			one.Into = in.Schema + "." + in.Name
		}
		if t := c.Lookup(in.Schema, in.Name); t != nil {
			one.Table, one.Generator = t.Logical, t.GeneratorName
		}
		switch {
		case in.Refused:
			one.Rows = []string{"sent as it is: the server will refuse it, as a row has the wrong number of values"}
		case in.Source != nil:
			one.Rows = []string{sourceFate(in)}
		default:
			one.Rows = explain.Rows(in, maxRows)
		}
		out.Inserts = append(out.Inserts, one)
	}
	if p.Inserts[0].Source == nil {
		out.Sent = p.BindText()
		if p.Fills() > 0 && p.Params() == 0 {
			out.Says = "the statement has no arguments, so that the keys themselves are written in place of each ?"
		}
	}
	return out
}

func sourceFate(in *rewrite.Insert) string {
	query := strings.TrimSpace(in.Source.Query)
	switch {
	case in.Source.KeyIndex < 0:
		return "the query is read to its end, and each of its rows is inserted with a key: " + query
	case in.Table.KeepExplicit:
		return "sent as it is: the query gives the keys, and explicit ones are kept: " + query
	}
	return "the query is read to its end, and its rows are inserted, with a key where the query returns NULL or 0: " + query
}
