package expr

import (
	"errors"
	"fmt"
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
	long, text := OfLong(-7), OfString("日本-42")
	for _, c := range []struct {
		text string
		k    Value
		want string
	}{
		{"${1 + 2 * 3 - 4 % 3}", long, "6"},
		{"${1 << 2 + 1}", long, "8"},
		{"${1 | 2 ^ 3 & 1}", long, "3"},
		{"${7 & 3 == 3 ? 'a' : 'b'}", OfLong(1), "error"}, // & of a number and a Boolean
		{"${k > 0 && k.foo || !(k == 7)}", long, "error"},
		{"${k < 0 && !(k == 7)}", long, "true"},
		{"${k > 0 || k < -8}", long, "false"},
		{"${k != 'a' ? 1 : 2}", text, "1"},
		{"${k == 'a' ? 1 : 2}", OfString("a"), "1"},
		{"${k.intdiv(-1)}", OfLong(-1 << 63), "-9223372036854775808"},
		{"${k % -1}", OfLong(-1 << 63), "0"},
		{"${k % 0}", long, "error"},
		{"${k.intdiv(0)}", long, "error"},
		{"${-k}", OfInt(-1 << 31), "-2147483648"},
		{"${k.abs()} ${Math.abs(k)}", OfInt(-1 << 31), "-2147483648 -2147483648"},
		{"${-2147483648 - 1}", long, "-2147483649"}, // 2147483648 is a Long
		{"${k >>> 1}", OfInt(-1), "2147483647"},
		{"${k << 33}", OfInt(1), "2"},
		{"${k << 65}", OfLong(1), "2"},
		{"${2147483647 + 1} ${2147483647 + 1L}", long, "-2147483648 2147483648"},
		{"${0x1F} ${0x7FFFFFFFFL} ${017}", long, "error"},
		{"${0x1F} ${0x7FFFFFFFFL}", long, "31 34359738367"},
		{"${7 / 2}", long, "error"},
		{"${k / 2 + 1}", long, "error"},
		{"${(k / 2).intValue()} ${(long) (k / -2)} ${(Integer) (k / 3)} ${(k / 7).toLong()}", long, "-3 3 -2 -1"},
		{"${(k / 0).intValue()}", long, "error"},
		{"${(k / 10000000000L).intValue()}", long, "error"}, // may be rounded up
		{"${k.toString() + 1 + 2} ${1 + 2 + k.toString()}", long, "-712 3-7"},
		{"${k.length()} ${k.substring(3)} ${k.substring(0, 2)} ${k.substring(5)}|", text, "5 42 日本 |"},
		{"${k.substring(6)}", text, "error"},
		{"${k.hashCode()}", OfString("\U0001f600"), "1772899"},
		{"${k.substring(1, 3)}", OfString("a\U0001f600b"), "\U0001f600"},
		{"${k.substring(2)}", OfString("a\U0001f600b"), "error"},
		{"${k.substring(0, 2)}", OfString("a\U0001f600b"), "error"},
		{"${k.padLeft(6)}|${k.padLeft(6, '0')}|${k.padLeft(1)}", OfString("日本"), "    日本|0000日本|日本"},
		{"${k.padLeft(6, 'ab')}", text, "error"},
		{"${Math.floorMod(k, 4)} ${Math.floorDiv(k, 4)}", long, "1 -2"},
		{"${Math.floorDiv(k, -4)} ${Math.floorDiv(7, 2)} ${Math.floorDiv(-8, 2)} ${Math.floorDiv(k, -1)}", long, "1 3 -4 7"},
		{"${Math.floorDiv(k, 0)}", long, "error"},
		{"${Long.parseLong(k)}", long, "error"},
		{"${Integer.valueOf(k)}", long, "error"},
		{"${Long.valueOf(k) + Integer.valueOf('7') + Integer.parseInt('-1') + ' 12 '.toInteger()}", long, "11"},
		{"${Integer.parseInt('2147483648')}", long, "error"},
		{"${(int) 'a'}", long, "error"},
		{"${[1, 2]}", long, "error"},
		{"${null}", long, "error"},
		{"${k + 1}", Value{class: Time}, "error"},
		{"${k % 4}", Value{class: Unsigned, n: -1}, "error"},
		{"${k.hashCode()}", Value{class: Unsigned, n: -1}, "error"},
		{"${k}", Value{class: Unsigned, n: -1}, "error"},
		{"<${k}> {x} }", long, "<-7> {x} }"},
		{"plain", long, "plain"},
	} {
		must.Equal(t, evaluate(c.text, c.k), c.want, c.text, "of", c.k)
	}
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
