package convert

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// rule adds a sharding rule. It replaces keys that version 4 and the alpha versions of 5 call
// differently. It keeps all others, so that package rule can check them.
func (c *conversion) rule(n *yaml.Node) error {
	r, err := c.plain(n)
	if err != nil {
		return err
	}
	r.Tag = "!SHARDING"
	for _, key := range []string{"masterSlaveRules", "encryptRule", "defaultDataSourceName", "configMap", "props"} {
		if k, _ := take(r, key); k != nil {
			c.leave(k, key, notKeys)
		}
	}
	for _, tables := range []string{"tables", "autoTables"} {
		for name, table := range pairsOf(get(r, tables)) {
			c.key(r, table, name.Value, "keyGenerator", "keyGenerateStrategy")
			for _, key := range []string{"databaseStrategy", "tableStrategy", "shardingStrategy"} {
				c.strategy(r, get(table, key), name.Value+"_"+strings.TrimSuffix(key, "Strategy"))
			}
			if k, _ := take(table, "logicIndex"); k != nil {
				c.leave(k, "logicIndex", notKeys)
			}
		}
	}
	c.key(r, r, "defaultKeyGenerator", "defaultKeyGenerator", "defaultKeyGenerateStrategy")
	c.strategy(r, get(r, "defaultDatabaseStrategy"), "default_database")
	c.strategy(r, get(r, "defaultTableStrategy"), "default_table")
	c.rules = append(c.rules, r)
	return nil
}

// key converts the key settings of m, a table or the rule itself, from the key four into the key now.
// A generator inside them becomes a generator of the rule, called name.
func (c *conversion) key(r, m *yaml.Node, name, four, now string) {
	key, generator := take(m, four)
	switch {
	case generator == nil:
	case get(m, now) != nil:
		c.leave(key, four, "there is a "+now+" too")
	default:
		put(m, now, key, c.ownGenerator(r, generator, name))
	}
}

// ownGenerator moves the type and properties of a keyGenerator to the rule's generators, and
// returns the rest.
func (c *conversion) ownGenerator(r, strategy *yaml.Node, name string) *yaml.Node {
	typeKey, typ := take(strategy, "type")
	propsKey, props := take(strategy, "props")
	if typ == nil && props == nil {
		return strategy
	}
	generator := under(under(r, "keyGenerators", strategy), name, strategy)
	at := propsKey
	if typ != nil {
		at = typ
		put(generator, "type", typeKey, typ)
	}
	if props != nil {
		put(generator, "props", propsKey, props)
	}
	put(strategy, "keyGeneratorName", at, text(name, at))
	return strategy
}

// strategy moves an algorithm inside a strategy to the algorithms of the rule, called name.
func (c *conversion) strategy(r, s *yaml.Node, name string) {
	if s == nil || len(s.Content) != 2 || s.Kind != yaml.MappingNode ||
		get(s.Content[1], "shardingAlgorithmName") != nil {
		return
	}
	kind, inner := s.Content[0], s.Content[1]
	props := mapping(kind)
	typ := "INLINE"
	if key, expression := take(inner, "algorithmExpression"); key != nil {
		put(props, "algorithm-expression", key, expression)
	} else if class := c.class(inner); class != nil {
		typ = "CLASS_BASED"
		put(props, "strategy", kind, text(strings.ToUpper(kind.Value), kind))
		put(props, "algorithmClassName", class, class)
		c.leave(class, "the Java class "+class.Value,
			"shardkey can't run it, so it doesn't know which table a row belongs to")
	} else {
		return
	}
	if kind.Value == "inline" {
		kind.Value = "standard"
	}
	for all, i := get(r, "shardingAlgorithms"), 2; index(all, name) >= 0; i++ {
		name = fmt.Sprintf("%s_%d", strings.TrimSuffix(name, fmt.Sprintf("_%d", i-1)), i)
	}
	algorithm := under(under(r, "shardingAlgorithms", kind), name, kind)
	put(algorithm, "type", kind, text(typ, kind))
	put(algorithm, "props", kind, props)
	put(inner, "shardingAlgorithmName", kind, text(name, kind))
}

// class removes and returns the Java class of a strategy of version 4.
func (c *conversion) class(strategy *yaml.Node) (class *yaml.Node) {
	for _, word := range []string{"preciseAlgorithmClassName", "algorithmClassName", "rangeAlgorithmClassName"} {
		switch _, one := take(strategy, word); {
		case one != nil && class == nil:
			class = one
		case one != nil:
			c.leave(one, "the Java class "+one.Value, "shardkey checks single rows only")
		}
	}
	return class
}
