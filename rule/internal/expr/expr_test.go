package expr

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

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
	var e *Error
	if !errors.As(err, &e) && !errors.Is(err, ErrTooMany) {
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
	for _, c := range []struct {
		text, want string
		offset     int
		wrong      bool
	}{
		{"t_${k.foo()}", `"foo" is not supported at character 7`, 6, false},
		{"t_${k.foo(1, k) % 2}", `"foo" is not supported at character 7`, 6, false},
		{"t_${k.foo{it + 1}.bar}", `"{" is not supported`, 9, false},
		{"t_${k = 2}", `"=" is not supported`, 6, false},
		{"t_${k; k}", `";" is not supported`, 5, false},
		{"t_${k++}", `"++" is not supported`, 5, false},
		{"t_${++k}", `"++" is not supported`, 4, false},
		{"t_${k <=> 2}", `"<=>" is not supported`, 6, false},
		{"t_${k?.abs()}", `"?." is not supported`, 5, false},
		{"t_${k ** 2}", `"**" is not supported`, 6, false},
		{"t_${k ?: 2}", `"?:" is not supported`, 6, false},
		{"t_${k instanceof Long && k in [1, 2] || k !in 1..3 ? k as String : 1}", `"instanceof" is not supported`, 6, false},
		{"t_${k =~ /a+/}", `"=~" is not supported`, 6, false},
		{"t_${k[0..1]}", `"[" is not supported`, 5, false},
		{"t_${[0: 'a', 1: 'b'][k]}", `a map is not supported`, 6, false},
		{"t_${['a', 'b'].each{x, y -> x + y}}", `"{" is not supported`, 19, false},
		{"t_${(String) k}", "is not supported", 4, false},
		{"t_${(double) k}", "is not supported", 4, false},
		{"t_${System.exit(1)}", `"System" is not supported`, 4, false},
		{"t_${java.lang.Math.abs(k) % 2}", `"java" is not supported`, 4, false},
		{"t_${Math.random()}", `"random" is not supported`, 9, false},
		{"t_${Math.max(k, 1)}", `"max" is not supported`, 9, false},
		{"t_${String.format('%02d', k)}", `"String" is not supported`, 4, false},
		{"t_${new Date()}", `"new" is not supported`, 4, false},
		{"t_${new java.util.Date(k).year}", `"new" is not supported`, 4, false},
		{"t_${if (k) 1}", `"if" is not supported`, 4, false},
		{"t_${{-> 1}}", `"{" is not supported`, 4, false},
		{"t_${true ? k : 1}", `"true" is not supported`, 4, false},
		{"t_${k.toString(16)}", "toString() with 1 arguments is not supported", 18, false},
		{"t_${Integer.parseInt(k, 16)}", "with 2 arguments is not supported", 27, false},
		{"t_${'a\\'b'}", "is not supported", 4, false},
		{"t_${\"${k}\"}", "is not supported", 4, false},
		{"t_$k${k}", `"$k" is not supported`, 2, false},
		{"t_\\n${k}", `is not supported`, 2, false},
		{"t_${1.5} ${k % 2}", `"1.5" is not supported`, 4, false},
		{"t_${1e3}", `"1e3" is not supported`, 4, false},
		{"t_${12G}", `"12G" is not supported`, 4, false},
		{"t_${0xFFFFFFFF}", `"0xFFFFFFFF" is not supported`, 4, false},
		{"t_${9223372036854775808}", `is not supported`, 4, false},
		{"t_${(Integer) - 1}", `"-" is not supported`, 14, false},
		{"t_${k % 010}", "octal", -1, false},
		{"t_${'" + strings.Repeat("x", 257) + "'}", "longer than 256 bytes", 4, false},
		{"t_${" + strings.Repeat("(", 100) + "k", "more than 20 nested expressions", 24, false},
		{"t_${" + strings.Repeat("- ", 1001) + "k}", "more than 1000 operators", 2005, false},
		{"t_${" + strings.Repeat("!", 1001) + "k}", "more than 1000 operators", 1005, false},
		{"t_${k" + strings.Repeat("+1", 1001) + "}", "more than 1000 operators", 2006, false},
		{"t_${k" + strings.Repeat("**1", 1001) + "}", `"**" is not supported`, 5, false},
		{strings.Repeat("${k}", 200), "more than 100 parts", -1, false},

		{"t_${k % 2", "expected } after ${", 9, true},
		{"t_${k % }", `expected a value, found "}" at character 9`, 8, true},
		{"t_${k % % 2}", `expected a value, found "%"`, 8, true},
		{"t_${k % / 2}", `expected a value, found "/"`, 8, true},
		{"t_${% 2}", `expected a value, found "%"`, 4, true},
		{"t_${(k % 2}", `expected ), found "}"`, 10, true},
		{"t_${k % 2)}", `expected }, found ")"`, 9, true},
		{"t_${k 2}", `expected }, found "2"`, 6, true},
		{"t_${k mod 2}", `expected }, found "mod"`, 6, true},
		{"t_${k # 2}", `expected }, found "#"`, 6, true},
		{"t_${k ? 1}", `expected :, found "}"`, 9, true},
		{"t_${k.}", `expected the name of a method, found "}"`, 6, true},
		{"t_${k.foo( % 2}", `expected a value, found "%"`, 11, true},
		{"t_${k.foo(1, 2}", `expected ,, found "}"`, 14, true},
		{"t_${k.foo() % }", `expected a value, found "}"`, 14, true},
		{"t_${k.hashcode() % 2}", `expected the method hashCode, found "hashcode"`, 6, true},
		{"t_${k.hashCode % 2}", `expected (, found "%"`, 15, true},
		{"t_${k.toString}", `expected (, found "}"`, 14, true},
		{"t_${k.substring()}", "substring() has no form with 0 arguments", 17, true},
		{"t_${k.intdiv()}", "intdiv() has no form with 0 arguments", 14, true},
		{"t_${Math.abs(k, 2)}", "Math.abs() has no form with 2 arguments", 18, true},
		{"t_${Math.Abs(k)}", `expected Math.abs, found "Math.Abs"`, 9, true},
		{"t_${Maths.abs(k)}", `expected the class Math, found "Maths"`, 4, true},
		{"t_${math.abs(k)}", `"math" is not defined`, 4, true},
		{"t_${abs(k)}", `"abs" is not defined`, 4, true},
		{"t_${K % 2}", `expected the sharding column k (case-sensitive), found "K"`, 4, true},
		{"t_${other % 2}", `"other" is not defined at character 5`, 4, true},
		{"t_${k.foo(other)}", `"other" is not defined`, 10, true},
		{"t_${k}_${other}", `"other" is not defined`, 9, true},
		{"t_${k.foo()}_${other}", `"other" is not defined`, 15, true},
		{"t_${编号 % 2}", `"编" is not supported`, 4, false},
		{"t_$k_${k}", `"k_" is not defined`, 2, true},
		{"t_$${k}", `found "$" outside of ${…}`, 2, true},
		{"t_\"${k}", `found "\"" outside of ${…}`, 2, true},
		{"t_${12x}", `expected a number, found "12x"`, 4, true},
		{"t_${08}", "octal", -1, true},
		{"t_${'a}", "expected a closed string", 4, true},
		{"t_${}", `expected a value, found "}"`, 4, true},
	} {
		_, err := Compile(c.text, "k")
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Reason, c.want) || e.Offset != c.offset || e.Wrong != c.wrong {
			t.Errorf("%s\nhave: %+v\nwant: %s at %d, %t", Clip(c.text), e, c.want, c.offset, c.wrong)
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
		var e *Error
		if want != nil && !errors.Is(err, want) || want == nil && !errors.As(err, &e) {
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
		template, err := Compile(text, "")
		if err != nil {
			t.Fatal(text, err)
		}
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
				var e *Error
				if err != nil && !errors.Is(err, ErrTooMany) && (!errors.As(err, &e) || e.Offset > len(text) || len(err.Error()) > 600) {
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
