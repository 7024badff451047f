package rule

import (
	"fmt"

	"github.com/shardkey/shardkey/internal/registry"
	"github.com/shardkey/shardkey/spi"
)

// spec is a rule as written, in YAML of any format or in Go. It has words with their places. Names
// aren't resolved yet.
type spec struct {
	scopes     []scope
	components []componentSpec
	sequences  []word // 5.5.4: names of strategies for sequences, not columns
}

// file is the file or the Go struct that a rule is read from, with its warnings. Its methods return
// errors with their places.
type file struct {
	name     string
	source   source
	warnings []*Error
	warned   map[string]bool // the messages of warnOnce, and the places of warnOf
	compared int             // words that warnings were compared with, to suggest the nearest
}

func newFile(name string, from source) *file {
	return &file{name: name, source: from, warned: map[string]bool{}}
}

func (f *file) errorAt(w word, reason string, right ...string) *Error {
	return errorAt(f.name, w, reason, right...)
}

// maxCompared bounds the words that warnings are compared with. A file may have many mistakes.
const maxCompared = 100_000

// warn records a warning about the word w.
func (f *file) warn(w word, reason string, right ...string) {
	if f.compared += len(right); f.compared > maxCompared {
		right = nil
	}
	f.warnings = append(f.warnings, f.errorAt(w, reason, right...))
}

// warnOnce is like warn, but records a warning about the same place only once. Many tables may use
// the same default.
func (f *file) warnOnce(w word, reason string, right ...string) {
	if key := fmt.Sprintf("%v %s", w.position, reason); !f.warned[key] {
		f.warned[key] = true
		f.warn(w, reason, right...)
	}
}

// warnOf records e as a warning, unless there is one of the same place. Many tables may use the same
// algorithm.
func (f *file) warnOf(e *Error) {
	if key := fmt.Sprintf("%d:%d %s", e.Line, e.Column, e.Path); !f.warned[key] {
		f.warned[key] = true
		f.warnings = append(f.warnings, e)
	}
}

// scope is one sharding rule. Its default strategy applies to its own tables. Generators and
// assigners are shared by the whole file.
type scope struct {
	position position
	tables   []tableSpec
	def      *keyStrategySpec
}

type tableSpec struct {
	name      word
	nodes     word  // actualDataNodes expression; empty if missing
	sources   word  // an auto table's actualDataSources
	autoCount int64 // number of an auto table's actual tables, or 0 if unknown
	strategy  *keyStrategySpec
	database  *shardingStrategy // selects the data source; nil if not specified
	table     *shardingStrategy // selects the actual table; the shardingStrategy of an auto table
}

// keyStrategySpec specifies the key column of a table and its generator. Missing words are empty.
type keyStrategySpec struct {
	position  position
	column    word
	generator word
	// If a setting is missing and the column is the default's too, the default's setting applies.
	settings
	none   bool           // "none:": the table has no key, even if there is a default
	inline *componentSpec // 4.x: the generator in the table itself
}

// componentSpec is one generator or worker-ID assigner.
type componentSpec struct {
	kind  registry.Kind
	name  word
	typ   word
	props []propSpec
	ready spi.KeyGenerator // generator built in Go, or nil
	used  bool             // it generates the keys of a table

	// Set when the rule is checked.
	assigners   []int    // indexes of the assigners that a generator uses
	ownDatabase bool     // its state is in the connector's own database
	ownMeant    bool     // the property own-database is set
	secrets     []string // names of the properties that the factory read as secrets
	bitsColumn  string
	geneBits    int // number of shard bits of its keys; see Table.ShardBits
}

// String returns the kind and the name, for messages.
func (m componentSpec) String() string { return fmt.Sprintf("%s %q", m.kind, m.name.text) }

// propSpec is one property. value or list has environment variables expanded, and written is the
// original. All of them may be passwords.
type propSpec struct {
	name     word
	position position // place of the value
	value    spi.Secret
	list     []spi.Secret // nil for a single value
	written  spi.Secret
	fromEnv  bool
	plain    bool // a Config has it as a string, which package fmt can print
}
