package sharding

import (
	"strconv"

	"github.com/shardkey/shardkey/internal/groovy"
)

// mod is MOD and COSID_MOD: the value modulo count, never negative.
type mod struct {
	count       int64
	start, stop int64 // how many characters of the text are cut off at its ends
	numbersOnly bool
}

func newMod(a *Algorithm, p properties) error {
	m := &mod{}
	var err error
	if m.count, err = p.count("sharding-count", 1, -1); err != nil {
		return err
	}
	if m.start, err = p.count("start-offset", 0, 0); err != nil {
		return err
	}
	if m.stop, err = p.count("stop-offset", 0, 0); err != nil {
		return err
	}
	if p.isTrue("zero-padding") {
		a.width = len(strconv.FormatInt(m.count-1, 10))
	}
	a.numbers = m
	return nil
}

func newCosIDMod(a *Algorithm, p properties) error {
	m := &mod{numbersOnly: true}
	var err error
	if m.count, err = p.count("mod", 1, -1); err != nil {
		return err
	}
	a.prefix, err = p.text("logic-name-prefix")
	a.isPrefix = true
	a.numbers = m
	return err
}

func (m *mod) tables() int64 { return m.count }

func (m *mod) number(v groovy.Value) (int64, error) {
	n, isNumber := v.LongValue()
	if m.start > 0 || m.stop > 0 || !isNumber {
		if m.numbersOnly {
			return 0, &groovy.EvalError{Reason: "it is no number"}
		}
		var err error
		if v, err = v.Cut(m.start, m.stop); err == nil {
			n, err = v.Remainder(m.count)
		}
		return n, err
	}
	if n %= m.count; n < 0 {
		n += m.count
	}
	return n, nil
}

// hashMod is HASH_MOD: the absolute hash modulo count.
type hashMod struct {
	count int64
	// normalize: a Long or BigInteger that an Integer could hold has its hash.
	normalize bool
}

func newHashMod(a *Algorithm, p properties) error {
	count, err := p.count("sharding-count", 1, -1)
	a.numbers = &hashMod{count, p.isTrue("normalize-numeric-int-range")}
	return err
}

func (m *hashMod) tables() int64 { return m.count }

func (m *hashMod) number(v groovy.Value) (int64, error) {
	if m.normalize && (v.Class() == groovy.Long || v.Class() == groovy.BigInteger) {
		if small, err := v.Convert(groovy.Integer); err == nil {
			v = small
		}
	}
	h, err := v.HashCode()
	return max(int64(h), -int64(h)) % m.count, err
}
