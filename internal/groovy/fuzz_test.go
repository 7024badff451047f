package groovy

import (
	"errors"
	"strings"
	"testing"
)

// FuzzTemplate reads and computes any text: without a panic, within bounds, and to
// the same result by each way that there is.
func FuzzTemplate(f *testing.F) {
	for _, text := range loadVectors(f).Expressions {
		f.Add(text, int64(931430767001669673), "order-1")
	}
	for _, v := range loadVectors(f).Vectors {
		if text := v.Props["algorithm-expression"]; text != "" {
			f.Add(text, int64(v.ID), "42")
		}
	}
	for _, text := range []string{"${k ** 9999}", "${1 << 99999}", "${'a'.padLeft(99999)}", "${" + strings.Repeat("(", 99) + "}", "${-9223372036854775808 / -1}", "${k.intdiv(-1)}",
		"${9999999999999999999999G ** 99}", "${[[1]][0]}", "${['a': k]['a']}", "${\"${\"${k}\"}\"}", "${0x7fffffffffffffffL + k}", "${1.0 / 3 ** k}", "${s[0..-1]}", "${k[0]}",
		"${String.format('%1024d%1024d', k, k)}", "${(k / 3).setScale(-9999, 4)}", "${s.substring(1, 0)}", "${k <=> 1}", "${!k ?: s && 1}"} {
		f.Add(text, int64(-1<<63), "日本")
	}
	f.Fuzz(func(t *testing.T, text string, k int64, s string) {
		template, err := Compile(text, []string{"k", "s"})
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > len(syntax.Text) || len(err.Error()) > 600 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		for _, values := range [][]Value{{OfLong(k), OfString(s)}, {OfInt(int32(k)), OfLong(k)}, {OfString(s), {}}, {OfDouble(float64(k)), OfBool(k > 0)}} {
			b, err := template.Append(nil, values)
			var eval *EvalError
			if err != nil && (!errors.As(err, &eval) || len(err.Error()) > 600) {
				t.Fatalf("%q of %v: %v", text, values, err)
			}
			if len(b) > (len(text)+1)*(len(s)+maxPadding*4+maxDigits*2) {
				t.Fatalf("%q: %d bytes", text, len(b))
			}
			for _, p := range template.parts {
				if p.expr != nil {
					slow(t, text, p.expr, values)
				}
			}
		}
	})
}

// slow computes an expression without the shorter way for integers.
func slow(t *testing.T, text string, n *node, values []Value) {
	number, class, ok := n.integer(values)
	if !ok {
		return
	}
	if v, err := n.eval(values); err != nil || v.class != class || v.n != number {
		t.Fatalf("%q of %v\nhave: %s %d\nwant: %v, %v", text, values, class, number, v, err)
	}
}
