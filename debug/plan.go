package debug

import (
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/explain"
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
	// Assumes lists what was assumed about the server.
	Assumes []string `json:"assumes,omitempty"`
}

// plannedInsert is an INSERT into a ruled table.
type plannedInsert struct {
	Into      string   `json:"into"`
	Table     string   `json:"table"`
	Column    string   `json:"column"`
	Generator string   `json:"generator"`
	Rows      []string `json:"rows"`
	Notes     []string `json:"notes,omitempty"`
}

// maxRows is how many kinds of rows are told apart.
const maxRows = 20

// plan returns how a statement is handled. Nothing is sent.
func plan(c *driver.Connector, text string) *planned {
	out := &planned{Statement: text}
	p, err := c.Plan(text)
	switch {
	case err != nil:
		out.Outcome, out.Says = "refused", err.Error()
		return out
	case len(p.Inserts) == 0:
		out.Outcome, out.Says = "passes", "it is sent unchanged: it inserts into no sharded table"
		return out
	}
	out.Outcome, out.Sent, out.Assumes = "filled", p.Query, p.Assumes
	if p.Literal {
		out.Says = "the statement has no arguments, so the keys are written in place of each ?"
	}
	for i := range p.Inserts {
		in := &p.Inserts[i]
		one := plannedInsert{
			Into: in.Name, Table: in.Table, Column: in.Column, Generator: in.Generator,
			Rows: explain.Rows(in, maxRows), Notes: in.Notes,
		}
		if in.Schema != "" {
			one.Into = in.Schema + "." + in.Name
		}
		out.Inserts = append(out.Inserts, one)
	}
	return out
}
