package rule

import (
	"slices"

	"github.com/shardkey/shardkey/spi"
)

// spec is a rule as it was written, in YAML of any form or in Go: words and
// their places, nothing looked up yet.
type spec struct {
	file       string
	source     source
	scopes     []scope
	generators []makeSpec
	assigners  []makeSpec
	sequences  []word // 5.5.4: strategies that are for no column
	warnings   []*Error
}

func (s *spec) errorAt(w word, reason string, right ...string) *Error {
	return errorAt(s.file, w, reason, right...)
}

// warn records what is likely wrong with a rule that can still be used.
func (s *spec) warn(w word, reason string, right ...string) {
	s.warnings = append(s.warnings, s.errorAt(w, reason, right...))
}

// warnOnce is warn for what may be read for many tables: a default.
func (s *spec) warnOnce(w word, reason string, right ...string) {
	e := s.errorAt(w, reason, right...)
	if !slices.ContainsFunc(s.warnings, func(o *Error) bool { return o.Error() == e.Error() }) {
		s.warnings = append(s.warnings, e)
	}
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
	nodes     word  // the actualDataNodes expression; no text when absent
	sources   word  // an auto table's actualDataSources
	autoCount int64 // an auto table's number of actual tables, 0 when not known
	strategy  *strategySpec
	database  *strategyOf // which data source; nil when the rule does not say
	table     *strategyOf // which actual table; of an auto table its shardingStrategy
}

// strategySpec says which column of a table is filled by which generator. Texts
// that are absent are empty.
type strategySpec struct {
	place     place
	column    word
	generator word
	// settings that are not written are those of the default, when the column
	// is the default's too.
	settings
	none   bool      // written so: no key, whatever the default says
	inline *makeSpec // 4.x: the generator that is written in the table
}

// makeSpec is one generator or worker-ID assigner.
type makeSpec struct {
	name  word
	typ   word
	props []propSpec
	ready spi.KeyGenerator // built in Go; nil when it is made from typ

	// What making it has shown, once the rule is checked.
	assigners   []int // those that a generator uses, by index
	ownDatabase bool  // its state is in the connector's own database
	ownMeant    bool  // and is to be, although there are several
	used        bool  // some table's keys come from it
	geneColumn  string
	geneBits    int // of the lowest bits of its keys; see Gene
}

// propSpec is one property. Its value, one or a list, has the environment put in;
// written is what stands in the file. Any of them may be a password.
type propSpec struct {
	name    word
	place   place // of the value
	value   spi.Secret
	list    []spi.Secret // nil for one value
	written spi.Secret
	fromEnv bool
	plain   bool // a Config has it as a string, which package fmt can print
}

// given is the property's value for [spi.NewProps].
func (p propSpec) given() any {
	if p.list != nil {
		return p.list
	}
	return p.value
}
