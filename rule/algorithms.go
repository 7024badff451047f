package rule

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// algorithm is one of a rule's shardingAlgorithms, of which two things matter
// here: how many tables it makes of an auto table, and whether it shards by the
// remainder of a key. What else is odd in it is not looked at.
type algorithm struct {
	name  word
	typ   string
	props map[string]word // by name in lower case
}

// sharding says that a table is sharded by a column through an algorithm.
type sharding struct {
	column string
	algorithm
}

// algorithms returns the rule's shardingAlgorithms by name.
func (rd *reader) algorithms(rule []pair) map[string]algorithm {
	all := map[string]algorithm{}
	for _, p := range rd.below(rule, "shardingAlgorithms") {
		entries := rd.entries(p.value)
		a := algorithm{name: p.key, props: map[string]word{}}
		typ, _ := scalar(entries, "type")
		a.typ = strings.ToUpper(typ.text)
		for _, prop := range rd.below(entries, "props") {
			name := strings.ReplaceAll(strings.ToLower(prop.key.text), ".", "-")
			a.props[name] = word{resolve(prop.value).Value, placeOf(prop.value)}
		}
		all[p.key.text] = a
	}
	return all
}

// shardings returns the columns and algorithms of the strategies under the given
// keys of a table; where it has none, those of the rule's defaults.
func (rd *reader) shardings(table, rule []pair, all map[string]algorithm, names ...string) []sharding {
	column, _ := scalar(rule, "defaultShardingColumn")
	var list []sharding
	for _, name := range names {
		from := table
		if _, own := find(table, name); !own {
			from, name = rule, "default"+strings.ToUpper(name[:1])+name[1:]
		}
		for _, p := range rd.below(from, name) {
			list = append(list, rd.oneSharding(p, column.text, all)...)
		}
	}
	return list
}

// oneSharding reads one strategy: standard, complex, or version 4's inline.
func (rd *reader) oneSharding(p pair, column string, all map[string]algorithm) (list []sharding) {
	entries := rd.entries(p.value)
	for _, key := range []string{"shardingColumn", "shardingColumns"} {
		if w, ok := scalar(entries, key); ok {
			column = w.text
		}
	}
	var a algorithm
	if name, ok := scalar(entries, "shardingAlgorithmName"); ok {
		if a, ok = all[name.text]; !ok {
			return nil
		}
	} else if expr, ok := scalar(entries, "algorithmExpression"); ok {
		a = algorithm{typ: "INLINE", props: map[string]word{"algorithm-expression": expr}}
	}
	for one := range strings.SplitSeq(column, ",") {
		list = append(list, sharding{strings.TrimSpace(one), a})
	}
	return list
}

// modulus returns the n of a sharding by column modulo n, and where it is
// written; 0 when the sharding is of another kind.
func (s sharding) modulus() (n int64, at word) {
	number := func(prop string) (int64, word) {
		w := s.props[prop]
		n, _ := strconv.ParseInt(strings.TrimSpace(w.text), 10, 64)
		return n, w
	}
	switch s.typ {
	case "MOD":
		return number("sharding-count")
	case "COSID_MOD":
		return number("mod")
	case "INLINE", "COMPLEX_INLINE":
		w := s.props["algorithm-expression"]
		expr := regexp.MustCompile(`(?i)(?:^|[^\w.])` + regexp.QuoteMeta(s.column) +
			`(?:\.(?:longValue|toLong|abs)\(\))?(?:\s+as\s+\w+)?[\s)]*%\s*(\d{1,9})`)
		for _, m := range expr.FindAllStringSubmatch(w.text, -1) {
			found, _ := strconv.ParseInt(m[1], 10, 64)
			n = max(n, found)
		}
		return n, w
	}
	return 0, word{}
}

// autoTables returns how many actual tables ShardingSphere makes of an auto table
// with this algorithm.
func (a algorithm) autoTables() (int64, error) {
	switch a.typ {
	case "MOD", "HASH_MOD":
		return a.integer("sharding-count", 1)
	case "BOUNDARY_RANGE":
		ranges, ok := a.props["sharding-ranges"]
		if !ok {
			return 0, errors.New("it has no sharding-ranges")
		}
		count := int64(1)
		for one := range strings.SplitSeq(ranges.text, ",") {
			if _, err := strconv.ParseInt(strings.TrimSpace(one), 10, 64); err != nil {
				return 0, fmt.Errorf("sharding-ranges is %q: want numbers separated by commas", clip(ranges.text))
			}
			count++
		}
		return count, nil
	case "VOLUME_RANGE":
		return a.volumes()
	case "AUTO_INTERVAL":
		return a.intervals()
	}
	return 0, errors.New("its type is none of MOD, HASH_MOD, VOLUME_RANGE, BOUNDARY_RANGE and AUTO_INTERVAL")
}

// volumes is ⌈(upper - lower) / volume⌉, and one table below and one above.
func (a algorithm) volumes() (int64, error) {
	lower, err1 := a.integer("range-lower", -1<<61)
	upper, err2 := a.integer("range-upper", -1<<61)
	volume, err3 := a.integer("sharding-volume", 1)
	if err := errors.Join(err1, err2, err3); err != nil {
		return 0, firstOf(err1, err2, err3)
	}
	if upper-lower < volume {
		return 0, errors.New("range-upper is less than range-lower and one sharding-volume")
	}
	return (upper-lower+volume-1)/volume + 2, nil
}

// intervals is the whole intervals between the bounds, and one table below and
// one above.
func (a algorithm) intervals() (int64, error) {
	seconds, err := a.integer("sharding-seconds", 1)
	if err != nil {
		return 0, err
	}
	var bounds [2]time.Time
	for i, prop := range []string{"datetime-lower", "datetime-upper"} {
		text := a.props[prop].text
		if bounds[i], err = time.Parse(time.DateTime, text[:min(len(text), len(time.DateTime))]); err != nil {
			return 0, fmt.Errorf("%s is %q: want a time as 2026-01-31 00:00:00", prop, clip(text))
		}
	}
	between := bounds[1].Unix() - bounds[0].Unix()
	if between < 0 {
		return 0, errors.New("datetime-upper is before datetime-lower")
	}
	return between/seconds + 2, nil
}

func (a algorithm) integer(prop string, least int64) (int64, error) {
	w, ok := a.props[prop]
	if !ok {
		return 0, fmt.Errorf("it has no %s", prop)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(w.text), 10, 64)
	if err != nil || n < least || n > 1<<61 {
		return 0, fmt.Errorf("%s is %q: want an integer", prop, clip(w.text))
	}
	return n, nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// below returns the entries of the map that stands under key; none when there is
// no such map.
func (rd *reader) below(pairs []pair, key string) []pair {
	p, ok := find(pairs, key)
	if !ok {
		return nil
	}
	return rd.entries(p.value)
}

// scalar returns the text under key; none where there is a map or a list.
func scalar(pairs []pair, key string) (word, bool) {
	p, ok := find(pairs, key)
	if !ok {
		return word{}, false
	}
	n := resolve(p.value)
	return word{n.Value, placeOf(p.value)}, n.Kind == yaml.ScalarNode
}

// entries returns the entries of a map; none for anything else.
func (rd *reader) entries(n *yaml.Node) []pair {
	if n == nil || resolve(n).Kind != yaml.MappingNode {
		return nil
	}
	pairs, err := rd.pairs(n, "")
	if err != nil {
		return nil
	}
	return pairs
}
