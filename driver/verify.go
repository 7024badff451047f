package driver

import (
	"sync/atomic"

	"github.com/shardkey/shardkey/internal/rewrite"
)

// Verification counts the statements that the second parser has read; see Config.Verify.
type Verification struct {
	Agreed  int64 `json:"agreed"`  // both readers understood the same
	Unknown int64 `json:"unknown"` // TiDB's parser does not know the statement
	Refused int64 `json:"refused"` // they disagreed, and the text was not sent
}

// reader holds a plan against another grammar, and reports whether that knows
// the text.
type reader func(text string, opts rewrite.Options, p *rewrite.Plan) (known bool, err error)

// secondReader is nil in a build without one.
var secondReader reader

// verifier calls the second reader for one connector.
type verifier struct {
	read                     reader // nil: texts are not verified
	agreed, unknown, refused atomic.Int64
}

func (v *verifier) set(mode string) {
	if mode != "off" {
		v.read = secondReader
	}
}

func (v *verifier) stats() Verification {
	return Verification{Agreed: v.agreed.Load(), Unknown: v.unknown.Load(), Refused: v.refused.Load()}
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
		return refusalAt(reasonUnverified, err)
	case known:
		v.agreed.Add(1)
	default:
		v.unknown.Add(1)
	}
	return nil
}
