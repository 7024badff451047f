package rule

import "github.com/shardkey/shardkey/spi"

// spec is a rule as somebody wrote it, in YAML of any form or in Go: words and
// their places, nothing looked up yet.
type spec struct {
	file       string
	scopes     []scope
	generators []makeSpec
	assigners  []makeSpec
}

// scope is one sharding rule. Its default strategy is for its own tables;
// generators and assigners are named across the whole file.
type scope struct {
	place    place
	tables   []tableSpec
	def      *strategySpec
	defMaker *makeSpec // 4.x: the defaultKeyGenerator itself
}

// tableSpec is one logical table.
type tableSpec struct {
	name      word
	nodes     word // the actualDataNodes expression; no text when absent
	autoCount int  // an auto table's number of actual tables, 0 when not known
	strategy  *strategySpec
}

// strategySpec says which column of a table is filled by which generator. Texts
// that are absent are empty.
type strategySpec struct {
	place     place
	column    word
	generator word
	explicit  ExplicitKeys
	// explicitSet says that explicit is written; a strategy that has neither
	// column nor explicitKeys takes both from the default.
	explicitSet bool
	inline      *makeSpec // 4.x: the generator that is written in the table
}

// makeSpec is one generator or worker-id assigner.
type makeSpec struct {
	name  word
	typ   word
	props []propSpec
	ready spi.KeyGenerator // built in Go; nil when it is made from typ
}

// propSpec is one property. Its value is a string or a []string, with the
// environment put in; written is what stands in the file when that differs.
type propSpec struct {
	name    word
	place   place // of the value
	value   any
	written string
	fromEnv bool
}
