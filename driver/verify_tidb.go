//go:build !shardkey_noparser

package driver

import (
	"github.com/shardkey/shardkey/internal/tidb"
	"github.com/shardkey/shardkey/rewrite"
)

// TiDB's parser is the second parser. The build tag shardkey_noparser leaves it out, which makes a
// program 12 MB smaller.
func init() {
	secondParser = func(text string, opts rewrite.Options, p *rewrite.Plan) (known bool, err error) {
		outcome, err := tidb.Check(text, opts, p)
		return outcome != tidb.OutcomeUnknown, err
	}
}
