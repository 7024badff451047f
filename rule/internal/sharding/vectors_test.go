package sharding

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule/internal/expr"
)

// typedValue is a value of a vector: its string and its Java class.
type typedValue struct {
	Value     *string
	ValueType string
}

// value returns the value. ok is false for a class that isn't supported.
func (tv typedValue) value(t *testing.T) (v expr.Value, ok bool) {
	t.Helper()
	classes := map[string]expr.Class{"Integer": expr.Integer, "Long": expr.Long, "String": expr.String}
	if tv.ValueType == "BigInteger" {
		if n, err := strconv.ParseUint(*tv.Value, 10, 64); err == nil && n >= 1<<63 {
			return expr.Of(n)
		}
	}
	class, ok := classes[tv.ValueType]
	if tv.Value == nil || !ok {
		return expr.Value{}, tv.Value == nil
	}
	return must.Get(expr.OfString(*tv.Value).Convert(class))(t), true
}

// vectors are results of ShardingSphere's formulas, a JVM and Groovy.
type vectors struct {
	Vectors []struct {
		ID        int
		Algorithm string
		Props     map[string]string
		Column    string
		typedValue
		Values     map[string]typedValue
		Targets    string
		Partitions int64
		Expected   *string
		Error      string
	}
	DataNodeInfo []struct {
		LogicTable      string
		Tables          []string
		Prefix          string
		SuffixMinLength int
	}
	Expressions []string
}

// expand expands the two forms that targets have in the vectors.
func expand(t *testing.T, text string) (names []string) {
	t.Helper()
	before, after, ranged := strings.Cut(text, "$->{")
	if !ranged {
		return strings.Split(text, ",")
	}
	width := 0
	if _, digits, padded := strings.Cut(after, "padLeft("); padded {
		width = int(digits[0] - '0')
	}
	lower, upper, _ := strings.Cut(strings.TrimLeft(after, "("), "..")
	end := strings.TrimRight(strings.SplitN(upper, ")", 2)[0], "}")
	from, err1 := strconv.Atoi(lower)
	to, err2 := strconv.Atoi(end)
	must.Do(t, errors.Join(err1, err2), text)
	for i := from; i <= to; i++ {
		n := strconv.Itoa(i)
		names = append(names, before+strings.Repeat("0", max(0, width-len(n)))+n)
	}
	return names
}

// notUnderstood are the expressions of vectors that aren't supported. They must give an error, and
// never a wrong result.
var notUnderstood = map[string]bool{
	"t_order_${(order_id / 10) as int}": true, "t_order_${order_id / 10}": true, "t_order_${order_id / 3}": true,
	"t_${k.toBigInteger() % 4}": true, "t_${new BigInteger(k) % 4}": true, "t_${new BigInteger(k).mod(4)}": true,
	"t_${k[0..1]}": true, "t_${k[-1]}": true, "t_${k[-2..-1]}": true, "t_${String.format('%02d', k % 16)}": true,
	`t_${String.format("%02d", k % 16)}`: true, "t_${k ** 2 % 7}": true, "t_${k.mod(4)}": true, "t_${(k % 4) as String}": true,
	"t_${Math.floor(k / 2)}": true, "t_${(int) Math.floor(k / 2)}": true, "t_${Math.round(k / 2)}": true,
	"t_${(k / 2).setScale(0, BigDecimal.ROUND_DOWN)}": true, "t_${k.toLowerCase()}": true, `t_${["a":1,"b":2][k]}`: true,
	"t_${other}": true, // null, which newer versions of ShardingSphere refuse
}

func isPlaceError(err error, unknown bool) bool {
	e, ok := errors.AsType[*PlaceError](err)
	return ok && e.Unknown == unknown
}

// TestPlace_vectors checks all vectors with integers and strings. Values of other classes, and
// algorithms that aren't supported, must have no place. The vectors also have the number of tables of
// auto tables, including AUTO_INTERVAL.
func TestPlace_vectors(t *testing.T) {
	all := must.ReadJSON[vectors](t, "testdata/vectors.json").Vectors
	must.Equal(t, len(all), 1357, "vectors")
	placed := map[string]int{}
	for _, v := range all {
		typ, column, target := v.Algorithm, v.Column, v.typedValue
		if typ == "HINT_INLINE" {
			typ = "INLINE" // has the same expressions
		}
		value, isKnown := target.value(t)
		isKnown = isKnown && (value.Class() != expr.Unsigned || typ == "MOD")
		columns := []string{column}
		for name := range v.Values {
			columns = append(columns, name)
		}
		if tables, err := Tables(typ, v.Props); v.Partitions != 0 && (err != nil || tables != v.Partitions) {
			t.Errorf("%d: %s %v\nhave: %d tables, %v\nwant: %d", v.ID, typ, v.Props, tables, err, v.Partitions)
		}
		s, err := Compile(typ, v.Props, columns, expr.Null)
		if types[typ].make == nil {
			must.Fail(t, err, v.ID, typ, "is understood")
			continue
		}
		have := ""
		if err == nil {
			if !isKnown {
				continue
			}
			names := expand(t, v.Targets)
			if v.Targets == "" && v.Expected != nil {
				names = []string{"another", *v.Expected}
			}
			s.Over("t_order", names)
			var i int
			if i, err = s.Place(value); err == nil {
				have = names[i]
			}
		}
		if !isKnown || notUnderstood[v.Props["algorithm-expression"]] {
			if err == nil || v.Expected != nil && !errors.As(err, new(*NotUnderstoodError)) && !isPlaceError(err, true) {
				t.Errorf("%d: %s %v of %v\nhave: %s, %v\nwant: not understood", v.ID, typ, v.Props, value, have, err)
			}
			continue
		}
		want := "an error"
		if v.Expected != nil {
			want = *v.Expected
		}
		isNone := isPlaceError(err, false) || typ == "INTERVAL" && err != nil
		if want != "an error" && have != want || want == "an error" && err == nil || v.Expected == nil && v.Error == "" && !isNone {
			t.Errorf("%d: %s %v of %v\nhave: %s, %v\nwant: %s %s", v.ID, typ, v.Props, value, have, err, want, v.Error)
			continue
		}
		placed[typ]++
	}
	for typ, least := range map[string]int{"MOD": 84, "HASH_MOD": 500, "VOLUME_RANGE": 60, "BOUNDARY_RANGE": 69, "INTERVAL": 21, "INLINE": 300} {
		if placed[typ] < least {
			t.Errorf("%s\nhave: %d vectors\nwant: at least %d", typ, placed[typ], least)
		}
	}
	t.Log(placed)
}

// TestCompile_expressionsOfRealFiles compiles expressions from published files.
func TestCompile_expressionsOfRealFiles(t *testing.T) {
	not := map[string]string{
		"t_order_$->{Long.parseLong(date_format(created_at, 'yyyyMM')) % 12}": "a function of SQL",
		"t_order_${(user_id.hashCode() + create_time.getMonthValue()) % 4}":   "a method of dates",
		`user_log_$->{create_time.format("yyyyMM")}`:                          "a method of dates",
		`t_user_$->{String.format("%02d", id % 64)}`:                          "String.format",
	}
	name := regexp.MustCompile(`\b[a-zA-Z_]+\b`)
	words := []string{"Math", "Integer", "Long", "MAX_VALUE", "hashCode", "abs", "intdiv", "longValue", "intValue", "toInteger", "toLong",
		"valueOf", "parseLong", "parseInt", "substring", "String", "date_format", "yyyyMM", "getMonthValue", "format"}
	understood := 0
	for _, text := range must.ReadJSON[vectors](t, "testdata/vectors.json").Expressions {
		columns := map[string]bool{}
		for _, part := range strings.Split(text, "{")[1:] {
			inner, _, _ := strings.Cut(part, "}")
			for _, w := range name.FindAllString(inner, -1) {
				if !slices.Contains(words, w) {
					columns[w] = true
				}
			}
		}
		if _, known := not[text]; !known && len(columns) > 1 {
			continue // COMPLEX_INLINE
		}
		column := "k"
		for c := range columns {
			column = c
		}
		_, err := expr.Compile(text, column)
		if _, known := not[text]; known != (err != nil) {
			t.Errorf("%s\nhave: %v", text, err)
		}
		understood++
	}
	if understood < 200 {
		t.Errorf("have: %d expressions\nwant: 200", understood)
	}
	t.Log(understood)
}

func TestNumbered_vectors(t *testing.T) {
	for _, v := range must.ReadJSON[vectors](t, "testdata/vectors.json").DataNodeInfo {
		prefix, digits := numbered(v.LogicTable, v.Tables)
		must.Equal(t, prefix, v.Prefix, v.LogicTable, v.Tables)
		must.Equal(t, digits, v.SuffixMinLength, v.LogicTable, v.Tables)
	}
}

// FuzzPlace compiles any algorithm and places any value. It must not panic, and the index of the
// name must be valid.
func FuzzPlace(f *testing.F) {
	for _, v := range must.ReadJSON[vectors](f, "testdata/vectors.json").Vectors {
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
		s, err := Compile(typ, props, []string{"k"}, expr.Null)
		if err != nil {
			if !errors.As(err, new(*NotUnderstoodError)) {
				t.Fatalf("%v", err)
			}
			return
		}
		names := []string{"t_order_0", "t_order_1", "t_order_2", "t_order_3", "t_order_202401"}
		s.Over("t_order", names)
		for _, v := range []expr.Value{expr.OfString(value), expr.OfLong(n), expr.OfInt(int32(n)), {}} {
			i, err := s.Place(v)
			if err != nil && !errors.As(err, new(*PlaceError)) || err == nil && (i < 0 || i >= len(names)) {
				t.Fatalf("%s %v of %v: %d, %v", typ, props, v, i, err)
			}
		}
	})
}
