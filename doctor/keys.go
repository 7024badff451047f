package doctor

import (
	"fmt"
	"math"
	"time"

	"github.com/shardkey/shardkey/internal/columntype"
	"github.com/shardkey/shardkey/internal/schema"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// wanted says which keys a table's generator will make, without making one, as far as
// that can be known.
type wanted struct {
	now         any // a key of the present; nil when it is not known
	later       []laterKey
	isInteger   bool
	caseMatters bool // keys may differ in their case only
	decoder     spi.KeyDecoder
	generator   string
}

// laterKey is a key of a later time.
type laterKey struct {
	key  int64
	from string
}

// horizon is how many years ahead a column should hold the keys.
const horizon = 10

// wanted asks the generator. UUID and NANOID, whose keys nothing is used up by, make
// one.
func (d *database) wanted(t *rule.Table) wanted {
	w := wanted{generator: t.GeneratorName}
	g := d.Live.Generator(t.GeneratorName)
	_, w.isInteger = g.(spi.Int64KeyGenerator)
	w.decoder, _ = g.(spi.KeyDecoder)
	if ranger, ok := g.(spi.KeyRanger); ok && w.decoder != nil {
		w.isInteger = true
		now := d.Now()
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
func (w wanted) unfit(typ *columntype.Type) (now any, later *laterKey) {
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
func (w wanted) sqlType() string {
	if w.now == nil || w.isInteger {
		return "BIGINT"
	}
	return textType(nil, w.now)
}

// typeFor is the type that a column becomes.
func (w wanted) typeFor(c *schema.Column) string {
	if _, isInt := w.now.(int64); isInt {
		if c.Holds().Form == columntype.Chars {
			return textType(c, int64(math.MaxInt64))
		}
		return schema.Bigint(c)
	}
	return textType(c, w.now)
}

// maxZone is the greatest difference of a time zone to UTC.
const maxZone = 14 * time.Hour

// greatest holds the greatest key of a table against the present: keys are of the
// past, unless they were made with another epoch or layout.
func (w wanted) greatest(key uint64, now time.Time) *Finding {
	if w.decoder == nil || w.now == nil {
		return nil
	}
	f := &Finding{Severity: Error, Check: "max-key"}
	parts, err := w.decoder.DecodeKey(int64(min(key, math.MaxInt64)))
	if key > math.MaxInt64 || err != nil {
		f.What = fmt.Sprintf("the greatest key, %d, is above all keys of generator %s", key, w.generator)
		f.Why = "new keys do not come after those that are there, and may meet them"
		f.Fix = "find out what made that key: another layout or epoch of the old generator goes into the generator's props (layout, epoch)"
		return f
	}
	ahead := parts.Time.Sub(now)
	switch {
	case ahead <= time.Minute:
		return nil
	case ahead <= maxZone:
		zone := ahead.Truncate(30 * time.Minute)
		if zone < ahead {
			zone += 30 * time.Minute
		}
		epoch := w.epoch()
		f.What = fmt.Sprintf("the greatest key, %d, was made %v in the future, by the epoch of generator %s", key, ahead.Round(time.Minute), w.generator)
		f.Why = fmt.Sprintf("the keys that are there are of another epoch, as ShardingSphere's was local midnight: the last %s of keys come again where worker ids are the same", hours(zone))
		f.Fix = fmt.Sprintf("epoch: %s in the props of %s, if that table had an INSERT a moment ago; else midnight in the zone of the machines that made the keys",
			epoch.In(time.FixedZone("", int(zone/time.Second))).Add(-zone).Format(time.RFC3339), w.generator)
	default:
		f.What = fmt.Sprintf("the greatest key, %d, is of %s by the layout and epoch of generator %s", key, parts.Time.UTC().Format(time.DateOnly), w.generator)
		f.Why = "new keys are below those that are there, and may meet them"
		f.Fix = fmt.Sprintf("find out what made that key: its layout and epoch go into the props of %s; or an earlier epoch there, which makes new keys larger", w.generator)
	}
	return f
}

func hours(d time.Duration) string { return fmt.Sprintf("%.3g hours", d.Hours()) }

// epoch is the time of key 0.
func (w wanted) epoch() time.Time {
	parts, _ := w.decoder.DecodeKey(0)
	return parts.Time
}
