package doctor

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shardkey/shardkey/internal/columntype"
	"github.com/shardkey/shardkey/internal/schema"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// futureKeys are what is known of the keys that a table's generator will generate.
type futureKeys struct {
	now         any // a key of the present; nil when it is not known
	later       []laterKey
	isInteger   bool
	caseMatters bool // keys may differ in their case only
	decoder     spi.KeyDecoder
	generator   string
}

type laterKey struct {
	key  int64
	from string
}

// horizon is how many years ahead a column should hold the keys.
const horizon = 10

// futureKeys asks the generator. UUID and NANOID generate a key, which uses nothing up.
func (d *database) futureKeys(t *rule.Table) futureKeys {
	w := futureKeys{generator: t.GeneratorName}
	g := d.live.Generator(t.GeneratorName)
	_, w.isInteger = g.(spi.Int64KeyGenerator)
	w.decoder, _ = g.(spi.KeyDecoder)
	if ranger, ok := g.(spi.KeyRanger); ok && w.decoder != nil {
		w.isInteger = true
		now := d.now()
		if _, last, err := ranger.KeyRange(now, now.Add(time.Second)); err == nil {
			w.now = last
		}
		for year := range horizon {
			at := now.AddDate(year+1, 0, 0)
			if _, last, err := ranger.KeyRange(at, at.Add(time.Second)); err == nil {
				w.later = append(w.later, laterKey{last, at.Format("2006-01")})
			}
		}
		return w
	}
	switch t.GeneratorType {
	case "UUID", "NANOID":
		keys, err := g.GenerateKeys(d.ctx, spi.Column{Table: t.Logical, Name: t.Column}, 1)
		if err == nil && len(keys) == 1 {
			w.now = keys[0]
		}
		w.caseMatters = t.GeneratorType == "NANOID"
	}
	return w
}

// unfit returns the present key when a type does not hold it, else the first later one.
func (w futureKeys) unfit(typ *columntype.Type) (now any, later *laterKey) {
	if w.now != nil && !typ.Holds(w.now) {
		return w.now, nil
	}
	for i := range w.later {
		if !typ.Holds(w.later[i].key) {
			return nil, &w.later[i]
		}
	}
	return nil, nil
}

// sqlType is a type for a new column.
func (w futureKeys) sqlType() string {
	if w.now == nil || w.isInteger {
		return "BIGINT"
	}
	return textType(nil, w.now)
}

func (w futureKeys) change(t *schema.Table, c *schema.Column) schema.Change {
	typ := textType(c, w.now)
	if _, isInt := w.now.(int64); isInt && c.Holds().Form == columntype.Chars {
		typ = textType(c, int64(math.MaxInt64))
	} else if isInt {
		typ = schema.Bigint(c)
	}
	return schema.Change{ColumnOf: schema.ColumnOf{Table: t, Column: c}, Type: typ}
}

// textType is a type of strings or bytes that holds a key: of a column, its own kind where that can be.
func textType(c *schema.Column, key any) string {
	length, kinds := utf8.RuneCountInString(fmt.Sprint(key)), []string{"char", "varchar", "binary", "varbinary"}
	if b, ok := key.([]byte); ok {
		length, kinds = len(b), []string{"binary", "varbinary"}
	}
	name := kinds[1]
	if c != nil {
		if have, _, _ := strings.Cut(strings.ToLower(c.Type), "("); slices.Contains(kinds, have) {
			name = have
		}
	}
	return fmt.Sprintf("%s(%d)", name, length)
}

// maxZone is the greatest difference of a time zone to UTC.
const maxZone = 14 * time.Hour

// greatest compares the greatest key of a table with the present: keys are of the past, unless they
// were generated with another epoch or layout. Without findings what is empty.
func (w futureKeys) greatest(key uint64, now time.Time) (what, why, fix string) {
	if w.decoder == nil || w.now == nil {
		return "", "", ""
	}
	parts, err := w.decoder.DecodeKey(int64(min(key, math.MaxInt64)))
	if key > math.MaxInt64 || err != nil {
		return fmt.Sprintf("the greatest key, %d, is above all keys of generator %s", key, w.generator),
			"new keys are smaller than existing ones, and can collide with them",
			"find out what generated that key, and set its layout and epoch in the generator's props"
	}
	ahead := parts.Time.Sub(now)
	switch {
	case ahead <= time.Minute:
		return "", "", ""
	case ahead > maxZone:
		return fmt.Sprintf("the greatest key, %d, is from %s by the layout and epoch of generator %s",
				key, parts.Time.UTC().Format(time.DateOnly), w.generator),
			"new keys are smaller than existing ones, and can collide with them",
			fmt.Sprintf("find out what generated that key, and set its layout and epoch in the props of %s; "+
				"or set an earlier epoch, which makes new keys larger", w.generator)
	}
	zone := (ahead + 30*time.Minute - 1).Truncate(30 * time.Minute)
	epoch, _ := w.decoder.DecodeKey(0)
	moved := epoch.Time.In(time.FixedZone("", int(zone/time.Second))).Add(-zone)
	return fmt.Sprintf("the greatest key, %d, is %v in the future, by the epoch of generator %s",
			key, ahead.Round(time.Minute), w.generator),
		fmt.Sprintf("existing keys may have another epoch, such as ShardingSphere's, local midnight: "+
			"keys of the last %.3g hours repeat if worker IDs are the same", zone.Hours()),
		fmt.Sprintf("set epoch: %s in the props of %s if the table had an INSERT just now; "+
			"otherwise midnight in the time zone of the machines that generated the keys",
			moved.Format(time.RFC3339), w.generator)
}
