package driver

import (
	"sync/atomic"

	"github.com/shardkey/shardkey/rewrite"
)

// reader compares a plan with another parser's result. known reports whether that parser supports
// the statement.
type reader func(text string, opts rewrite.Options, p *rewrite.Plan) (known bool, err error)

// secondParser is nil in a build without a second parser.
var secondParser reader

// verifier calls the second parser for one connector.
type verifier struct {
	read                     reader // nil: statements aren't verified
	agreed, unknown, refused atomic.Int64
}

func (v *verifier) setStats(s *Stats) {
	s.Verification.Agreed, s.Verification.Unknown, s.Verification.Refused = v.agreed.Load(), v.unknown.Load(), v.refused.Load()
}

// verify checks a new plan.
func (v *verifier) verify(text string, opts rewrite.Options, p *rewrite.Plan) error {
	if v.read == nil {
		return nil
	}
	known, err := v.read(text, opts, p)
	switch {
	case err != nil:
		v.refused.Add(1)
		return err
	case known:
		v.agreed.Add(1)
	default:
		v.unknown.Add(1)
	}
	return nil
}
