package sharding

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

// FuzzPlace compiles any algorithm and places any value. It must not panic, and the index of the
// name must be valid.
func FuzzPlace(f *testing.F) {
	for _, v := range loadVectors(f).Vectors {
		var props []string
		for _, name := range slices.Sorted(maps.Keys(v.Props)) {
			props = append(props, name+"="+v.Props[name])
		}
		value := ""
		if v.Value != nil {
			value = *v.Value
		}
		f.Add(v.Algorithm, strings.Join(props, "\n"), value, int64(v.ID))
	}
	f.Fuzz(func(t *testing.T, typ, text, value string, n int64) {
		props := map[string]string{}
		for line := range strings.SplitSeq(text, "\n") {
			name, value, _ := strings.Cut(line, "=")
			props[name] = value
		}
		a, err := Compile(typ, props, []string{"k"})
		if err != nil {
			var e *NotUnderstoodError
			if !errors.As(err, &e) {
				t.Fatalf("%v", err)
			}
			return
		}
		names := []string{"t_order_0", "t_order_1", "t_order_2", "t_order_3", "t_order_202401"}
		s := a.Over(names, NamingOf("t_order", names), expr.Null)
		for _, v := range []expr.Value{expr.OfString(value), expr.OfLong(n), expr.OfInt(int32(n)), {}} {
			i, err := s.Place(v)
			var bad *ValueError
			var none *NoTargetError
			if err != nil && !errors.As(err, &bad) && !errors.As(err, &none) || err == nil && (i < 0 || i >= len(names)) {
				t.Fatalf("%s %v of %v: %d, %v", typ, props, v, i, err)
			}
		}
	})
}
