package expr

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/must"
)

func evaluate(text string, k Value) string {
	t, err := Compile(text, "k")
	if err == nil {
		var b []byte
		if b, err = t.Append(nil, k); err == nil {
			return string(b)
		}
	}
	if !errors.As(err, new(*Error)) && !errors.Is(err, ErrTooMany) {
		return "untyped: " + err.Error()
	}
	return "error"
}

// TestTemplate_Append checks results of Java and Groovy that the vectors don't cover.
func TestTemplate_Append(t *testing.T) {
	for _, c := range cases.Read(t, "testdata/values.txt", 3) {
		must.Equal(t, evaluate(c[2], valueOf(c[1])), c[0], c[2], "of", c[1])
	}
	must.Equal(t, evaluate("${k + 1}", Value{class: Time}), "error", "a time")
	for _, text := range []string{"${k % 4}", "${k.hashCode()}", "${k}"} {
		must.Equal(t, evaluate(text, Value{class: Unsigned, n: -1}), "error", text, "of a BigInteger")
	}
}

// valueOf returns the value of a cell: an Integer 5, a Long 5L or a String 'x'.
func valueOf(cell string) Value {
	if text, ok := strings.CutPrefix(cell, "'"); ok {
		return OfString(strings.TrimSuffix(text, "'"))
	}
	digits, isLong := strings.CutSuffix(cell, "L")
	n, _ := strconv.ParseInt(digits, 10, 64)
	return Value{class: map[bool]Class{false: Integer, true: Long}[isLong], n: n}
}

// Some expressions aren't supported, and others are wrong in Groovy too.
func TestCompile_notUnderstood(t *testing.T) {
	for _, c := range append(cases.Read(t, "testdata/unsupported.txt", 4), [][]string{
		{"false", "4", "longer than 256 bytes", "t_${'" + strings.Repeat("x", 257) + "'}"},
		{"false", "24", "more than 20 nested expressions", "t_${" + strings.Repeat("(", 100) + "k"},
		{"false", "2005", "more than 1000 operators", "t_${" + strings.Repeat("- ", 1001) + "k}"},
		{"false", "1005", "more than 1000 operators", "t_${" + strings.Repeat("!", 1001) + "k}"},
		{"false", "2006", "more than 1000 operators", "t_${k" + strings.Repeat("+1", 1001) + "}"},
		{"false", "5", `"**" is not supported`, "t_${k" + strings.Repeat("**1", 1001) + "}"},
		{"false", "-1", "more than 100 parts", strings.Repeat("${k}", 200)},
	}...) {
		wrong, offset, want, text := c[0], c[1], c[2], c[3]
		_, err := Compile(text, "k")
		if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.Reason, want) || fmt.Sprint(e.Offset) != offset || fmt.Sprint(e.Wrong) != wrong {
			t.Errorf("%s\nhave: %+v\nwant: %s at %s, wrong: %s", Clip(text), e, want, offset, wrong)
		}
	}
	if _, err := Compile("t_${"+strings.Repeat("(", 18)+"k"+strings.Repeat(")", 18)+"}", "k"); err != nil {
		t.Errorf("have: %v\nwant: 18 brackets", err)
	}
}

// TestTemplate_bounds evaluates expressions whose results would grow without limit.
func TestTemplate_bounds(t *testing.T) {
	for text, want := range map[string]error{
		"${'a'.padLeft(99999)}": nil,
		"${('" + strings.Repeat("x", 200) + "' + '" + strings.Repeat("x", 200) + "')}": nil,
		"${0..1048576}": ErrTooMany,
		"${(0..2000).collect{(0..2000).collect{1}}}": ErrTooMany,
		"${(0..1048575).collect{it}}":                ErrTooMany,
		"${(0..600000).step(1)}":                     ErrTooMany,
	} {
		template, err := Compile(text, "")
		if err == nil {
			_, err = template.Names()
		}
		if want != nil && !errors.Is(err, want) || want == nil && !errors.As(err, new(*Error)) {
			t.Errorf("%s\nhave: %v\nwant: an error", Clip(text), err)
		}
	}
	must.Equal(t, evaluate("${"+strings.Repeat("!", 900)+"k}", OfLong(1)), "true")
}

func TestTemplate_Names_nested(t *testing.T) {
	for text, want := range map[string]string{
		"a_${(1..2).collect{x -> (x * 10).toString() + '-' + x}}": "[[a_] [10-1 20-2]]",
		"${[1, 'b', null, 1]}":          "[[1 b ]]",
		"${(1..3)*.toString()}":         "[[1 2 3]]",
		"${(5..1).step(2)}":             "[[5 3 1]]",
		"${'a'..<'c'}${'x'}":            "[[a b] [x]]",
		"${[7, 8].collect(i -> i * i)}": "[[49 64]]",
	} {
		template := must.Get(Compile(text, ""))(t, text)
		if names, err := template.Names(); err != nil || fmt.Sprint(names) != want {
			t.Errorf("%s\nhave: %v, %v\nwant: %s", text, names, err, want)
		}
	}
}

func TestValue_Convert(t *testing.T) {
	for _, c := range []struct {
		v     Value
		class Class
		want  string // empty for an error
	}{
		{OfLong(5), Integer, "Integer 5"},
		{OfLong(1 << 31), Integer, ""},
		{OfInt(5), Long, "Long 5"},
		{OfLong(5), String, "String 5"},
		{OfString("007"), Long, "Long 7"},
		{OfString(" 7"), Long, ""},
		{OfString("7"), Null, "String 7"},
		{Value{class: Time}, Long, ""},
		{Value{class: Time}, String, ""},
		{Value{class: Unsigned, n: -1}, Long, ""},
	} {
		v, err := c.v.Convert(c.class)
		have := fmt.Sprintf("%v %v", v.Class(), v)
		if err != nil {
			have = ""
		}
		must.Equal(t, have, c.want, c.v.Class(), c.v, "as", c.class, err)
	}
}

func TestOf(t *testing.T) {
	type key int16
	zone := time.FixedZone("", 3600)
	for _, c := range []struct {
		v     any
		class Class
		text  string
	}{
		{nil, Null, "null"}, {int64(-1), Long, "-1"}, {key(7), Long, "7"}, {uint64(1), Long, "1"}, {uint64(1 << 63), Unsigned, "9223372036854775808"}, {"x", String, "x"},
		{time.Date(2026, 1, 2, 3, 4, 5, 6, zone), Time, "2026-01-02 03:04:05"},
		{time.Date(9999, 1, 2, 3, 4, 5, 6, zone), Time, "9999-01-02 03:04:05"},
	} {
		if v, ok := Of(c.v); !ok || v.Class() != c.class || v.String() != c.text {
			t.Errorf("%T %v\nhave: %v %v\nwant: %v %s", c.v, c.v, v.Class(), v, c.class, c.text)
		}
	}
	for _, v := range []any{[]byte("x"), struct{}{}, new(int), true, 1.5} {
		if v, ok := Of(v); ok {
			t.Errorf("have: %v\nwant: nothing", v)
		}
	}
}

// FuzzTemplate compiles and evaluates any string. It must not panic, errors have the documented
// types, and the size of results is limited.
func FuzzTemplate(f *testing.F) {
	for _, text := range []string{"${k ** 9999}", "${1 << 99999}", "${'a'.padLeft(99999)}", "${" + strings.Repeat("(", 99) + "}",
		"${-9223372036854775808 / -1}", "${k.intdiv(-1)}", "${[[1]][0]}", "${0x7fffffffffffffffL + k}", "${k.substring(1, 0)}", "${!k ? k && 1 : 2}",
		"ds_${Math.abs(k.hashCode()) % 2}", "t_${(k % 64).toString().padLeft(2, '0')}", "${(1..3).collect{t -> t + k}}", "${(0..9)*.toString()}",
		"${(k / 10).intValue() % 4}", "$->{'00'..'03'}", "${(0..7).step(2)}", "${[].step(3)}", "${(int) k}"} {
		f.Add(text, int64(-1<<63), "日本")
	}
	f.Fuzz(func(t *testing.T, text string, k int64, s string) {
		for _, column := range []string{"k", ""} {
			template, err := Compile(text, column)
			check := func(err error) {
				if e, ok := errors.AsType[*Error](err); err != nil && !errors.Is(err, ErrTooMany) && (!ok || e.Offset > len(text) || len(err.Error()) > 600) {
					t.Fatalf("%q: %v", text, err)
				}
			}
			if check(err); err != nil {
				continue
			}
			for _, v := range []Value{OfLong(k), OfInt(int32(k)), OfString(s), {}} {
				b, err := template.Append(nil, v)
				if check(err); len(b) > (len(text)+1)*(len(s)+maxString) {
					t.Fatalf("%q: %d bytes", text, len(b))
				}
			}
			_, err = template.Names()
			check(err)
		}
	})
}
