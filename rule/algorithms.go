package rule

import (
	"strconv"

	"go.yaml.in/yaml/v3"
)

// shardingCounts gives the sharding-count of each of the shardingAlgorithms
// that has one. Algorithms are not about keys: what is odd in them is left
// alone.
func (rd *reader) shardingCounts(rule []pair) map[string]int {
	counts := map[string]int{}
	for _, algorithm := range rd.below(rule, "shardingAlgorithms") {
		props := rd.below(rd.entries(algorithm.value), "props")
		if count, ok := find(props, "sharding-count"); ok {
			n, err := strconv.Atoi(resolve(count.value).Value)
			if err == nil && n > 0 {
				counts[algorithm.key.text] = n
			}
		}
	}
	return counts
}

// algorithmOf gives the name of the algorithm that spreads an auto table.
func (rd *reader) algorithmOf(table []pair) string {
	for _, strategy := range rd.below(table, "shardingStrategy") {
		if name, ok := find(rd.entries(strategy.value), "shardingAlgorithmName"); ok {
			return resolve(name.value).Value
		}
	}
	return ""
}

// below gives the entries of the map that stands under key; none when there is
// no such map.
func (rd *reader) below(pairs []pair, key string) []pair {
	p, ok := find(pairs, key)
	if !ok {
		return nil
	}
	return rd.entries(p.value)
}

func (rd *reader) entries(n *yaml.Node) []pair {
	pairs, err := rd.pairs(n, "")
	if err != nil {
		return nil
	}
	return pairs
}
