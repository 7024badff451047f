package debug

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/explain"
	"github.com/shardkey/shardkey/internal/panics"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// decoded is the content of a key, decoded as a key of one generator.
type decoded struct {
	Generator string       `json:"generator,omitempty"`
	Error     string       `json:"error,omitempty"`
	Parts     spi.KeyParts `json:"parts"`
	Belongs   []string     `json:"belongs,omitempty"` // the actual tables in which a row with the key belongs
	more      int          // number of tables that Belongs doesn't list
}

func decode(c *driver.Connector, text string) (all []decoded) {
	text = strings.TrimSpace(text)
	key, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return []decoded{decodeUUID(text)}
	}
	known := map[string]int{} // total number of actual tables, by generator
	for _, t := range c.Rule().Tables() {
		live := c.Lookup("", t.Logical)
		if live == nil {
			continue
		}
		decoder, ok := live.Generator.(spi.KeyDecoder)
		if !ok {
			continue
		}
		i, found := known[t.GeneratorName]
		if !found {
			i = len(all)
			known[t.GeneratorName], all = i, append(all, decodeBy(decoder, t.GeneratorName, key))
		}
		all[i].place(live, key)
	}
	if len(all) == 0 {
		return []decoded{{Error: "no generator of the rule makes keys that can be decoded"}}
	}
	for i := range all {
		if d := &all[i]; d.more > 0 {
			d.Belongs = append(d.Belongs, fmt.Sprintf("… and %d more tables", d.more))
		}
	}
	return all
}

func decodeBy(decoder spi.KeyDecoder, name string, key int64) decoded {
	d := decoded{Generator: name}
	err := panics.Call("the generator's DecodeKey", func() (err error) {
		d.Parts, err = decoder.DecodeKey(key)
		return err
	})
	if err != nil {
		d.Error = err.Error()
	}
	return d
}

// decodeUUID decodes a UUID. Only version 7 has a time, of the versions that generators use.
func decodeUUID(text string) decoded {
	u, err := uuid.Parse(text)
	if err != nil {
		return decoded{Error: "expected an integer in 0..9223372036854775807, or a UUID"}
	}
	d := decoded{Generator: "UUID", Parts: spi.KeyParts{Layout: fmt.Sprintf("version %d", u.Version())}}
	if u.Version() == 7 {
		d.Parts.Time = time.Unix(u.Time().UnixTime())
	}
	return d
}

// place adds the actual table of t in which a row with the key belongs.
func (d *decoded) place(t *rule.Table, key int64) {
	const most = 20
	s := t.Sharding
	if d.Error != "" || s == nil || len(s.Columns) != 1 || !strings.EqualFold(s.Columns[0], t.Column) {
		return
	}
	if len(d.Belongs) == most {
		d.more++
		return
	}
	place, err := s.Place([]any{key})
	if err != nil {
		d.Belongs = append(d.Belongs, fmt.Sprintf("%s: to no table: %v", t.Logical, err))
		return
	}
	d.Belongs = append(d.Belongs, t.Logical+": "+place.String())
}

// planned shows how a statement is handled.
type planned struct {
	Outcome string          `json:"outcome"` // filled, passed, refused or unknown
	Class   state           `json:"-"`       // CSS class for the outcome
	Reason  string          `json:"reason,omitempty"`
	Inserts []plannedInsert `json:"inserts,omitempty"`
	Sent    string          `json:"sent,omitempty"` // the rewritten statement
	Assumes []string        `json:"assumes,omitempty"`
}

// plannedInsert is how one INSERT into a sharded table is handled.
type plannedInsert struct {
	Name      string   `json:"name"` // the table in the statement
	Table     string   `json:"table"`
	Column    string   `json:"column"`
	Generator string   `json:"generator"`
	Keys      []string `json:"keys"` // sentences about the source of each row's key
}

func plan(c *driver.Connector, statement string) *planned {
	p, err := c.Plan(statement)
	switch {
	case errors.Is(err, driver.ErrNoConnection):
		return &planned{Outcome: "unknown", Class: warned, Reason: err.Error()}
	case err != nil:
		return &planned{Outcome: "refused", Class: failing, Reason: err.Error()}
	case p.Insert == nil && len(p.Others) == 0:
		return &planned{Outcome: "passed", Class: good, Reason: "sent unchanged: it inserts into no sharded table"}
	}
	out := &planned{Outcome: "filled", Class: good}
	var sent []string
	for _, p := range append([]*driver.Plan{p}, p.Others...) {
		sent, out.Assumes = append(sent, p.Query()), append(out.Assumes, p.Assumes...)
		if p.KeysInText {
			out.Reason = "the statement has no arguments: keys are written in place of each ?"
		}
		const most = 20 // lines
		if in, of := p.Insert, p.Detail; in != nil {
			out.Inserts = append(out.Inserts, plannedInsert{in.Name, of.Table, in.Table.Key, of.Generator,
				append(explain.Rows(in, most), of.Notes...)})
		}
	}
	out.Sent = strings.Join(sent, ";\n")
	return out
}
