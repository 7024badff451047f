package groovy

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func compute(text string, k Value) (string, error) {
	template, err := Compile(text, []string{"k"})
	if err != nil {
		return "", err
	}
	b, err := template.Append(nil, []Value{k})
	return string(b), err
}

// TestTemplate_Append has what the vectors do not, worked out by Java's and
// Groovy's rules.
func TestTemplate_Append(t *testing.T) {
	long, text := OfLong(-7), OfString("日本-42")
	for _, c := range []struct {
		text string
		k    Value
		want string
	}{
		{"${1 + 2 * 3 - 4 % 3}", long, "6"},
		{"${2 ** 3 ** 2}", long, "64"},
		{"${-2 ** 2}", long, "-4"},
		{"${1 << 2 + 1}", long, "8"},
		{"${1 | 2 ^ 3 & 1}", long, "3"},
		{"${7 & 3 == 3 ? 'a' : 'b'}", OfLong(1), "error"}, // & of a number and a Boolean
		{"${k < 0 && !(k == 7) || false}", long, "true"},
		{"${k ?: 'none'}", OfLong(0), "none"},
		{"${k.intdiv(-1)}", OfLong(-1 << 63), "-9223372036854775808"},
		{"${k % -1}", OfLong(-1 << 63), "0"},
		{"${-k}", OfInt(-1 << 31), "-2147483648"},
		{"${-2147483648 - 1}", long, "-2147483649"}, // of 2147483648, a Long
		{"${9223372036854775808 + 0}", long, "9223372036854775808"},
		{"${-9223372036854775808 - 1}", long, "9223372036854775807"},
		{"${k >>> 1}", OfInt(-1), "2147483647"},
		{"${k << 33}", OfInt(1), "2"},
		{"${k << 65}", OfLong(1), "2"},
		{"${1_000 + 0x1F + 017 + 0b11}", long, "1049"},
		{"${2147483647 + 1} ${2147483647 + 1L} ${2147483647 + 1G}", long, "-2147483648 2147483648 2147483648"},
		{"${7 / 2} ${-7 / 2} ${1 / 3} ${2 / 3}", long, "3.5 -3.5 0.3333333333 0.6666666667"},
		{"${0.1 + 0.2} ${1.50 * 2} ${1.5 - 1}", long, "0.3 3.00 0.5"},
		{"${(int) -3.9} ${3.9 as int}", long, "-3 3"},
		{"${new BigInteger('-7') % 4} ${new BigInteger('7') ** 30}", long, "1 22539340290692258087863249"},
		{"${k.toString() + 1 + 2} ${1 + 2 + k.toString()}", long, "-712 3-7"},
		{"${null + 'a'}", long, "nulla"},
		{"${\"a${k % 4}b\"}_${'x' + \"${k}\"}", long, "a-3b_x-7"},
		{"${k.length()} ${k[0]} ${k[0..1]} ${k.substring(3)}", text, "5 日 日本 42"},
		{"${k.hashCode()}", OfString("\U0001f600"), "1772899"},
		{"${['a', 'b', 'c'][1]}${['a', 'b'][-1]}${['a'][5]}", long, "bbnull"},
		{"${[a: 1, 'b': 2, (3): 4]['b']} ${[1: 'x'][1]} ${[1: 'x'][1L]} ${[:]['a']}", long, "2 x null null"},
		{"${'%'}${String.format('%5d|%-', 1)}", long, "error"},
		{"${String.format('%03d|%s|%%|%4d', k, 'x', 12)}", long, "-07|x|%|  12"},
		{"${'ab'.padLeft(4) + 'ab'.padRight(4, '.')}|", long, "  abab..|"},
		{"${'abc'.reverse() + 'a-b'.indexOf('-') + 'ABC'.toLowerCase() + ' x '.trim()}", long, "cba1abcx"},
		{"${'日'.toLowerCase()}", long, "error"},
		{"${k.format('yyyy_MM')}", OfTime(time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)), "2026_03"},
		{"${Math.max(3, k) + Math.min(3, k)}", long, "-4"},
		{"${Math.floorMod(k, 4)} ${Math.floorDiv(k, 4)} ${Math.round(2.5)} ${Math.ceil(1.1)}", long, "1 -2 3 2.0"},
		{"${Math.floorDiv(k, -4)} ${Math.floorDiv(7, 2)} ${Math.floorDiv(-8, 2)} ${Math.floorDiv(k, -1)}", long, "1 3 -4 7"},
		{"${Math.floorDiv(k, -1)}", OfLong(-1 << 63), "-9223372036854775808"},
		{"${Math.floorDiv(k, 0)}", long, "error"},
		{"${k.startsWith('日')} ${k.endsWith('2')} ${k.contains('本-')} ${k.contains('x')} ${k.concat('é')}", text, "true true true false 日本-42é"},
		{"${k.indexOf('-')} ${k.lastIndexOf('2')} ${k.indexOf('x')} ${k.indexOf('日')}", text, "2 4 -1 0"},
		{"${k.indexOf('b')} ${k.substring(1, 3)}", OfString("a\U0001f600b"), "3 \U0001f600"},
		{"${k.substring(2)}", OfString("a\U0001f600b"), "error"},
		{"${k.substring(0, 2)}", OfString("a\U0001f600b"), "error"},
		{"${k.toUpperCase()}", text, "error"},
		{"${Math.round(k)}", long, "error"},
		{"${(k / 3).doubleValue()}", long, "error"},
		{"${'' + (k * 9999999).doubleValue()}", long, "error"},
		{"${k.doubleValue() / 2} ${'' + k.doubleValue()}", long, "-3.5 -7.0"},
		{"${8G >> 1}", long, "error"},
		{"${Long.parseLong(k)}", long, "error"},
		{"${Integer.valueOf(k)}", long, "error"},
		{"${(int) 'a'}", long, "error"},
		{"${k / 0}", long, "error"},
		{"${[1, 2]}", long, "error"},
		{"<${k}> {x} }", long, "<-7> {x} }"},
		{"1e3 ${1.0E}", long, "error"},
	} {
		have, err := compute(c.text, c.k)
		if err != nil {
			have = "error"
		}
		if have != c.want {
			t.Errorf("%s of %v\nhave: %s, %v\nwant: %s", c.text, c.k, have, err, c.want)
		}
	}
}

func TestCompile_whatIsNotUnderstood(t *testing.T) {
	for _, c := range []struct {
		text, want string
		offset     int
	}{
		{"t_${k % 2", "${ is not closed", 9},
		{"t_${k.foo()}", `"foo" is not understood`, 6},
		{"t_${k.toString}", `"}" is not understood`, 14},
		{"t_${k = 2}", `"=" is not understood`, 6},
		{"t_${k; k}", `";" is not understood`, 5},
		{"t_${k++}", `"++" is not understood`, 5},
		{"t_${k <=> 2}", `"<=>" is not understood`, 6},
		{"t_${k?.abs()}", `"?." is not understood`, 5},
		{"t_${System.exit(1)}", `"exit" is not understood`, 11},
		{"t_${Math.random()}", `"random" is not understood`, 9},
		{"t_${foo(k)}", `"foo" is not understood`, 4},
		{"t_${new Date()}", `"Date" is not understood`, 8},
		{"t_${if (k) 1}", `"if" is not understood`, 4},
		{"t_${{-> 1}}", `"{" is not understood`, 4},
		{"t_${(0..3)}", `".." is not understood`, 6},
		{"t_${k.substring()}", "substring() has 0 arguments here", 17},
		{"t_${'a\\'b'}", "the quote is not closed", 4},
		{"t_${'''a'''}", "three quotes", 4},
		{"t_$k_${k}", `'$' is not understood outside of ${…}`, 2},
		{`t_\${k}`, `'\\' is not understood outside of ${…}`, 2},
		{`t_"${k}`, "a double quote", 2},
		{"t_${(Integer) - 1}", `"-" is not understood`, 14},
		{"t_${12x}", `"12x" is not understood`, 4},
		{"t_${08}", `"08" is not understood`, 4},
		{"t_${0xFFFFFFFF}", `"0xFFFFFFFF" is not understood`, 4},
		{"t_${}", `"}" is not understood`, 4},
		{"t_${k}" + strings.Repeat("x", 4096), "longer than 4096 bytes", 0},
		{"t_${" + strings.Repeat("(", 100) + "k" + strings.Repeat(")", 100) + "}", "nested too deep", -1},
		{"t_${" + strings.Repeat("- ", 300) + "k}", "nested too deep", -1},
		{"t_${" + strings.Repeat("\"${", 100) + "k", "nested too deep", -1},
	} {
		_, err := Compile(c.text, []string{"k"})
		var e *SyntaxError
		if !errors.As(err, &e) || !strings.Contains(e.Reason, c.want) || c.offset >= 0 && e.Offset != c.offset {
			t.Errorf("%s\nhave: %v, %+v\nwant: %s at %d", clip(c.text), err, e, c.want, c.offset)
		}
	}
	if _, err := Compile("t_${"+strings.Repeat("(", 50)+"k"+strings.Repeat(")", 50)+"}", []string{"k"}); err != nil {
		t.Errorf("have: %v\nwant: 50 brackets", err)
	}
}

// TestTemplate_Append_bounds has numbers and texts that would grow without end.
func TestTemplate_Append_bounds(t *testing.T) {
	for _, text := range []string{"${k ** 99999}", "${10G ** 1000 * 10G ** 1000}", "${1G << 99999}", "${'a'.padLeft(99999)}", "${String.format('%99999d', k)}",
		"${(k / 7).setScale(99999, 4)}", "${new BigInteger('" + strings.Repeat("9", 2000) + "')}"} {
		_, err := compute(text, OfLong(3))
		var e *EvalError
		if !errors.As(err, &e) {
			t.Errorf("%s\nhave: %v\nwant: an error", clip(text), err)
		}
	}
}

func TestTemplate_Unknown(t *testing.T) {
	template, err := Compile("${K % 2}${k}${other}${other}", []string{"k", "unused"})
	if err != nil || fmt.Sprint(template.Unknown()) != "[K other]" || !template.Uses(0) || template.Uses(1) {
		t.Errorf("have: %v, %v, %v, %v", template.Unknown(), template.Uses(0), template.Uses(1), err)
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
		{OfLong(5), BigInteger, "BigInteger 5"},
		{OfLong(5), BigDecimal, "BigDecimal 5"},
		{OfLong(5), String, "String 5"},
		{OfString("007"), Long, "Long 7"},
		{OfString(" 7"), Long, ""},
		{OfString("7.50"), BigDecimal, "BigDecimal 7.50"},
		{OfDouble(1.5), BigDecimal, "BigDecimal 1.5"},
		{OfDouble(1.5), Long, ""},
		{OfBool(true), Long, ""},
		{Value{}, Long, "null null"},
	} {
		v, err := c.v.Convert(c.class)
		have := fmt.Sprintf("%v %v", v.Class(), v)
		if err != nil {
			have = ""
		}
		if have != c.want {
			t.Errorf("%v %v as %v\nhave: %s, %v\nwant: %s", c.v.Class(), c.v, c.class, have, err, c.want)
		}
	}
}

func TestDateLayout(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	for pattern, want := range map[string]string{
		"yyyyMM": "202601", "yyyy_MM": "2026_01", "yy-MM-dd HH:mm:ss": "26-01-02 03:04:05", "yyyy-MM-dd'T'HH:mm:ss.SSS": "2026-01-02T03:04:05.678",
		"uuuu": "2026", "yyyyQ": "", "M": "", "yyyy'MST'": "", "EEE": "", "yyyySSS": "", "'": "", "2006": "",
	} {
		layout, ok := DateLayout(pattern)
		have := at.Format(layout)
		if !ok {
			have = ""
		}
		if have != want {
			t.Errorf("%s\nhave: %s\nwant: %s", pattern, have, want)
		}
	}
}
