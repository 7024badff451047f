package rule

import (
	"slices"

	"github.com/shardkey/shardkey/spi"
)

// spec is a rule as written, in YAML of any format or in Go. It has words with their places. Names
// aren't resolved yet.
type spec struct {
	file       string
	source     source
	scopes     []scope
	generators []makeSpec
	assigners  []makeSpec
	sequences  []word // 5.5.4: names of strategies for sequences, not columns
	warnings   []*Error
}

func (s *spec) errorAt(w word, reason string, right ...string) *Error {
	return errorAt(s.file, w, reason, right...)
}

// warn records a warning about the word w.
func (s *spec) warn(w word, reason string, right ...string) {
	s.warnings = append(s.warnings, s.errorAt(w, reason, right...))
}

// warnOnce is like warn, but records a warning about the same place only once. Many tables may use
// the same default.
func (s *spec) warnOnce(w word, reason string, right ...string) {
	e := s.errorAt(w, reason, right...)
	if !slices.ContainsFunc(s.warnings, func(o *Error) bool { return o.Error() == e.Error() }) {
		s.warnings = append(s.warnings, e)
	}
}

// scope is one sharding rule. Its default strategy applies to its own tables. Generators and
// assigners are shared by the whole file.
type scope struct {
	place    place
	tables   []tableSpec
	def      *strategySpec
	defMaker *makeSpec // 4.x: the defaultKeyGenerator
}

// tableSpec is one logical table.
type tableSpec struct {
	name      word
	nodes     word  // actualDataNodes expression; empty if missing
	sources   word  // an auto table's actualDataSources
	autoCount int64 // number of an auto table's actual tables, or 0 if unknown
	strategy  *strategySpec
	database  *strategyOf // selects the data source; nil if not specified
	table     *strategyOf // selects the actual table; the shardingStrategy of an auto table
}

// strategySpec specifies the key column of a table and its generator. Missing words are empty.
type strategySpec struct {
	place     place
	column    word
	generator word
	// If a setting is missing and the column is the default's too, the default's setting applies.
	settings
	none   bool      // "none:": the table has no key, even if there is a default
	inline *makeSpec // 4.x: the generator in the table itself
}

// makeSpec is one generator or worker-ID assigner.
type makeSpec struct {
	name  word
	typ   word
	props []propSpec
	ready spi.KeyGenerator // generator built in Go, or nil

	// Set when the rule is checked.
	assigners   []int // indexes of the assigners that a generator uses
	ownDatabase bool  // its state is in the connector's own database
	ownMeant    bool  // the property own-database is set
	used        bool  // it generates the keys of a table
	geneColumn  string
	geneBits    int // number of shard bits of its keys; see Gene
}

// propSpec is one property. value or list has environment variables expanded, and written is the
// original. All of them may be passwords.
type propSpec struct {
	name    word
	place   place // place of the value
	value   spi.Secret
	list    []spi.Secret // nil for a single value
	written spi.Secret
	fromEnv bool
	plain   bool // a Config has it as a string, which package fmt can print
}

// given returns the property's value for [spi.NewProps].
func (p propSpec) given() any {
	if p.list != nil {
		return p.list
	}
	return p.value
}
