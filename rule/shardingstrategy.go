package rule

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/registry"
	"github.com/shardkey/shardkey/rule/internal/expr"
	"github.com/shardkey/shardkey/rule/internal/sharding"
)

// algorithm is one of a rule's shardingAlgorithms. In a rule of version 4 it is the expression in
// the strategy.
type algorithm struct {
	name  word
	typ   string
	props map[string]word // by name in lower case
}

// shardingStrategy is a databaseStrategy or tableStrategy, or the shardingStrategy of an auto table.
type shardingStrategy struct {
	key       word // "tableStrategy", or the key of the rule's default strategy
	columns   []word
	class     expr.Class // Java class of the only column; Null means the class of the value
	algorithm algorithm
	// unknown is the reason why the strategy isn't understood, and at is the word to report.
	// unknown is empty if no reason was found yet.
	unknown string
	at      word
	wrong   bool // the reason is a mistake, which ShardingSphere doesn't accept either

	compiled *sharding.Strategy // set by compile
}

// algorithms returns the rule's shardingAlgorithms by name. It warns about properties that the type of
// an algorithm doesn't have.
func (rd *reader) algorithms(rule []pair) map[string]algorithm {
	all := map[string]algorithm{}
	for _, p := range rd.below(rule, "shardingAlgorithms") {
		entries := rd.entries(p.value)
		typ, _ := scalar(entries, "type")
		a := algorithm{name: p.key, typ: strings.ToUpper(typ.text), props: map[string]word{}}
		known := sharding.Props(a.typ)
		for _, prop := range rd.below(entries, "props") {
			name := registry.PropKey(prop.key.text)
			a.props[name] = word{prop.value.Value, positionOf(prop.value)}
			if known != nil && !slices.Contains(known, name) {
				rd.file.warn(prop.key, fmt.Sprintf("unknown property %q of the sharding algorithm %q: %s ignores it",
					expr.Clip(prop.key.text), expr.Clip(p.key.text), a.typ), known...)
			}
		}
		all[p.key.text] = a
	}
	return all
}

// strategyNamed returns the table's strategy called name. If the table has none, it returns the
// rule's default strategy, called byDefault. It returns nil if neither exists, or if the strategy
// is "none:".
func (rr *ruleReader) strategyNamed(name, byDefault string, table []pair) (*shardingStrategy, error) {
	p, own := find(table, name)
	if !own {
		p, _ = find(rr.pairs, byDefault)
	}
	kinds := rr.rd.entries(p.value)
	if len(kinds) == 0 || len(kinds) == 1 && kinds[0].key.text == "none" {
		return nil, nil
	}
	s := &shardingStrategy{key: p.key, at: p.key}
	switch kind := kinds[0].key; {
	case len(kinds) > 1:
		s.mistake(kinds[1].key, "expected one kind of strategy, found several")
	case kind.text == "hint":
		s.fail(kind, "a hint comes from the application, not from a column of the row")
	case !slices.Contains([]string{"standard", "complex", "inline"}, kind.text):
		s.fail(kind, fmt.Sprintf("expected standard, complex, inline, hint or none, found %q", expr.Clip(kind.text)))
	default:
		return s, rr.readStrategy(s, rr.rd.entries(kinds[0].value))
	}
	return s, nil
}

func (ss *shardingStrategy) fail(at word, reason string) { ss.unknown, ss.at = reason, at }

func (ss *shardingStrategy) mistake(at word, reason string) {
	ss.fail(at, reason)
	ss.wrong = true
}

// readStrategy reads the map under standard, complex or inline.
func (rr *ruleReader) readStrategy(s *shardingStrategy, entries []pair) error {
	column, _ := scalar(rr.pairs, "defaultShardingColumn")
	for _, key := range []string{"shardingColumn", "shardingColumns"} {
		if w, ok := scalar(entries, key); ok {
			column = w
		}
	}
	for one := range strings.SplitSeq(column.text, ",") {
		if one = strings.TrimSpace(one); one != "" {
			s.columns = append(s.columns, word{one, column.position})
		}
	}
	if w, ok := scalar(entries, "javaType"); ok {
		if err := s.javaClass(rr.rd.file.name, w); err != nil {
			return err
		}
	}
	name, named := scalar(entries, "shardingAlgorithmName")
	expression, isInline := scalar(entries, "algorithmExpression")
	switch {
	case named:
		var ok bool
		if s.algorithm, ok = rr.algorithms[name.text]; !ok {
			s.fail(name, fmt.Sprintf("the sharding algorithm %q is not defined", expr.Clip(name.text)))
			rr.rd.file.warnOnce(name, s.unknown, rr.algorithmNames...)
		}
	case isInline:
		s.algorithm = algorithm{name: expression, typ: "INLINE", props: map[string]word{"algorithm-expression": expression}}
	case slices.ContainsFunc(entries, func(p pair) bool { return strings.HasSuffix(p.key.text, "ClassName") }):
		s.fail(s.key, "expected shardingAlgorithmName or algorithmExpression; Java classes aren't supported")
	default:
		s.mistake(s.key, "expected shardingAlgorithmName or algorithmExpression")
	}
	return nil
}

// javaClasses maps the values of javaType to classes of package expr. Null means that package expr
// has no such class, so the sharding isn't understood.
var javaClasses = map[string]expr.Class{
	"Integer": expr.Integer, "Long": expr.Long, "String": expr.String, "BigInteger": expr.Null, "BigDecimal": expr.Null,
}

// javaClass sets the Java class of the strategy's columns. The word w has one class for all
// columns, or one for each of them.
func (ss *shardingStrategy) javaClass(file string, w word) error {
	known := []string{"Integer", "Long", "BigInteger", "BigDecimal", "String"}
	names := strings.Split(w.text, ",")
	for i, one := range names {
		names[i] = strings.TrimSpace(one)
		if !slices.Contains(known, names[i]) {
			return errorAt(file, word{names[i], w.position},
				fmt.Sprintf("javaType: expected %s, or one for each column, separated by commas, found %q",
					strings.Join(known, ", "), expr.Clip(names[i])), known...)
		}
	}
	if len(names) > 1 && len(names) != len(ss.columns) || len(ss.columns) == 0 {
		return errorAt(file, w, fmt.Sprintf("javaType has %d classes for %d sharding columns; write one for all, or one "+
			"for each", len(names), len(ss.columns)))
	}
	if ss.class = javaClasses[names[0]]; ss.class == expr.Null {
		ss.fail(w, fmt.Sprintf("javaType %s is not supported", names[0]))
	}
	return nil
}

// compile returns the compiled strategy, or nil if it isn't understood. It compiles it once.
func (ss *shardingStrategy) compile() *sharding.Strategy {
	if ss.unknown != "" || ss.compiled != nil {
		return ss.compiled
	}
	var columns []string
	for _, c := range ss.columns {
		columns = append(columns, c.text)
	}
	var err error
	ss.compiled, err = sharding.Compile(ss.algorithm.typ, ss.algorithm.texts(), columns, ss.class)
	if e, ok := errors.AsType[*sharding.NotUnderstoodError](err); ok {
		at, isProp := ss.algorithm.props[e.Prop]
		if !isProp {
			at = ss.algorithm.name
		}
		ss.fail(at, e.Reason)
		ss.wrong = e.Wrong
	}
	return ss.compiled
}

// isBy reports whether column is the strategy's only column. It returns false if ss is nil.
func (ss *shardingStrategy) isBy(column string) bool {
	return ss != nil && ss.unknown == "" && len(ss.columns) == 1 && strings.EqualFold(ss.columns[0].text, column)
}

func (a algorithm) texts() map[string]string {
	props := make(map[string]string, len(a.props))
	for name, w := range a.props {
		props[name] = w.text
	}
	return props
}

// geneWay is [sharding.Strategy.ShardBitsWay] of a strategy whose only column is this one. It returns
// zeros for other strategies, and if ss is nil.
func (ss *shardingStrategy) geneWay(column string) (way sharding.ShardBitsWay, modulo int64) {
	if !ss.isBy(column) || ss.compile() == nil {
		return way, 0
	}
	return ss.compiled.ShardBitsWay()
}

// autoTables returns the number of actual tables that ShardingSphere creates for an auto table with
// this algorithm.
func (a algorithm) autoTables() (int64, error) {
	count, err := sharding.Tables(a.typ, a.texts())
	if err == nil && count == 0 {
		err = errors.New("expected an algorithm of type MOD, HASH_MOD, VOLUME_RANGE, BOUNDARY_RANGE or AUTO_INTERVAL")
	}
	return count, err
}
