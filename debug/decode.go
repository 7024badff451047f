package debug

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// decoded is what a key says, by each generator that could have made it.
type decoded struct {
	Key   string       `json:"key"`
	Error string       `json:"error,omitempty"`
	By    []decodedKey `json:"by,omitempty"`
}

type decodedKey struct {
	Generator string    `json:"generator"`
	Error     string    `json:"error,omitempty"`
	Time      time.Time `json:"time,omitzero"`
	Ago       string    `json:"-"`
	WorkerID  int64     `json:"workerId"`
	Sequence  int64     `json:"sequence"`
	Layout    string    `json:"layout,omitempty"`
	// Belongs are the actual tables that a row with the key belongs to, where the
	// key decides.
	Belongs []string `json:"belongs,omitempty"`
	// Note is what the key itself says, whoever made it.
	Note string `json:"note,omitempty"`
}

// decode takes a key apart, as it is typed.
func decode(c *driver.Connector, text string, now time.Time) *decoded {
	text = strings.TrimSpace(text)
	d := &decoded{Key: text}
	key, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		if note, ok := uuidNote(text, now); ok {
			d.By = []decodedKey{{Generator: "UUID", Note: note}}
			return d
		}
		d.Error = "this is no key that says anything: an integer from 0 to 9223372036854775807 is one, and a UUID of version 7"
		return d
	}
	for _, g := range decoders(c) {
		d.By = append(d.By, g.decode(key, now))
	}
	if len(d.By) == 0 {
		d.Error = "no generator of this rule makes keys that can be taken apart"
	}
	return d
}

// decoder is a generator whose keys can be taken apart, with the tables that it serves.
type decoder struct {
	name   string
	keys   spi.KeyDecoder
	tables []*rule.Table
}

// decoders are a connector's, in the rule's order.
func decoders(c *driver.Connector) []*decoder {
	var all []*decoder
	known := map[string]*decoder{}
	for _, t := range c.Rule().Tables() {
		live := c.Lookup("", t.Logical)
		if live == nil {
			continue
		}
		d := known[t.GeneratorName]
		if d == nil {
			keys, ok := live.Generator.(spi.KeyDecoder)
			if !ok {
				continue
			}
			d = &decoder{name: t.GeneratorName, keys: keys}
			known[t.GeneratorName] = d
			all = append(all, d)
		}
		d.tables = append(d.tables, live)
	}
	return all
}

// maxPlaces is how many tables' places are listed for a key.
const maxPlaces = 20

func (d *decoder) decode(key int64, now time.Time) decodedKey {
	out := decodedKey{Generator: d.name}
	var parts spi.KeyParts
	err := guard.Call("the generator's DecodeKey", func() (err error) {
		parts, err = d.keys.DecodeKey(key)
		return err
	})
	if err != nil {
		out.Error = err.Error()
		return out
	}
	out.Time, out.Ago = parts.Time, ago(parts.Time, now)
	out.WorkerID, out.Sequence, out.Layout = parts.WorkerID, parts.Sequence, parts.Layout
	for _, t := range d.tables {
		if t.Sharding == nil || t.Sharding.Err != nil || len(t.Sharding.Columns) != 1 || !strings.EqualFold(t.Sharding.Columns[0], t.Column) || len(out.Belongs) == maxPlaces {
			continue
		}
		place, err := t.Sharding.Place([]any{key})
		var nowhere *rule.PlaceError
		switch {
		case err == nil:
			out.Belongs = append(out.Belongs, t.Logical+": "+place.String())
		case errors.As(err, &nowhere):
			out.Belongs = append(out.Belongs, t.Logical+": nowhere, "+nowhere.Reason)
		}
	}
	return out
}

// ago says how far a time is from now.
func ago(t, now time.Time) string {
	if d := now.Sub(t); d >= 0 {
		return seconds(d) + " ago"
	}
	return "in " + seconds(t.Sub(now))
}

// uuidNote says what a UUID has to say: the version, and of version 7 the time.
func uuidNote(text string, now time.Time) (string, bool) {
	bits, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(bits) != 16 {
		return "", false
	}
	switch version := bits[6] >> 4; version {
	case 7:
		var ms int64
		for _, b := range bits[:6] {
			ms = ms<<8 | int64(b)
		}
		at := time.UnixMilli(ms).UTC()
		return fmt.Sprintf("a UUID of version 7, made %s (%s)", at.Format("2006-01-02 15:04:05.000 UTC"), ago(at, now)), true
	default:
		return fmt.Sprintf("a UUID of version %d: it does not say when it was made", version), true
	}
}
