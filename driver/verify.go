package driver

import (
	"fmt"
	"sync/atomic"

	"github.com/shardkey/shardkey/rewrite"
)

// Verify says which texts TiDB's parser reads as well, before they are sent. A
// text that it understands differently is not sent: the error has
// [ErrUnsupportedStatement] in its chain, and is a tidb.DisagreementError of
// package rewrite/tidb.
type Verify string

const (
	// VerifyCached, the default: each text once, before its plan is kept for
	// further executions. Not verified are those of which none is kept: of more
	// than 8 KiB without placeholders, and of more than 256 KiB.
	VerifyCached Verify = "cached"
	// VerifyAll: each text each time that it is planned.
	VerifyAll Verify = "all"
	// VerifyOff: none.
	VerifyOff Verify = "off"
)

// WithVerify says which texts are verified, as the DSN's parameter shardkeyVerify
// does.
func WithVerify(v Verify) Option {
	return func(o *options) { o.verify = v }
}

// Verification counts the texts that were verified; see [Verify].
type Verification struct {
	Agreed  int64 `json:"agreed"`  // both readers understood the same
	Unknown int64 `json:"unknown"` // TiDB's parser does not know the statement
	Refused int64 `json:"refused"` // they disagreed, and the text was not sent
}

// Verification returns what the second reader has said so far, of this
// connector's texts under all its rules.
func (c *Connector) Verification() Verification {
	v := &c.verifier
	return Verification{Agreed: v.agreed.Load(), Unknown: v.unknown.Load(), Refused: v.refused.Load()}
}

// reader holds a plan against another grammar, and reports whether that knows
// the text.
type reader func(text string, opts rewrite.Options, p *rewrite.Plan) (known bool, err error)

// secondReader is nil in a build without one.
var secondReader reader

// verifier calls the second reader for one connector.
type verifier struct {
	mode                     Verify
	read                     reader // nil: texts are not verified
	agreed, unknown, refused atomic.Int64
}

func (v *verifier) set(mode Verify) {
	if v.mode = mode; mode != VerifyOff {
		v.read = secondReader
	}
}

// checkVerify refuses a value that shardkeyVerify does not have, and one that
// this build cannot do.
func checkVerify(v Verify) error {
	switch v {
	case "", VerifyOff:
		return nil
	case VerifyCached, VerifyAll:
		if secondReader == nil {
			return &DSNError{Param: paramVerify, Reason: "this build has no second reader: it was made with the tag shardkey_noparser"}
		}
		return nil
	}
	return &DSNError{Param: paramVerify, Reason: fmt.Sprintf("%q is none of cached, all, off", v)}
}

// verify checks a new plan; kept says that it goes into the cache.
func (v *verifier) verify(text string, opts rewrite.Options, p *rewrite.Plan, kept bool) error {
	if v.read == nil || !kept && v.mode != VerifyAll {
		return nil
	}
	known, err := v.read(text, opts, p)
	switch {
	case err != nil:
		v.refused.Add(1)
		return &verifiedError{err}
	case known:
		v.agreed.Add(1)
	default:
		v.unknown.Add(1)
	}
	return nil
}

// verifiedError is what the second reader has against a text.
type verifiedError struct{ error }

func (e *verifiedError) Unwrap() error { return e.error }
