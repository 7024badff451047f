package rule

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// collected is the way in which Groovy pads numbers: (1..12).collect{t ->
// t.toString().padLeft(2,'0')}.
var collected = regexp.MustCompile(`^\((.*)\)\s*\.\s*collect\s*\{\s*(?:(\w+)\s*->)?\s*(\w+)(?:\s*\.\s*toString\(\)|\s*\+\s*(?:''|""))?\s*\.\s*padLeft\(\s*(\d{1,2})\s*,\s*['"]0['"]\s*\)\s*\}$`)

// evaluate gives the values of what stands between ${ and }: a range, a list,
// or one value. It knows no more of Groovy than that.
func evaluate(expr string) ([]string, error) {
	if m := collected.FindStringSubmatch(expr); m != nil && (m[2] == m[3] || m[2] == "" && m[3] == "it") {
		values, err := numberRange(m[1])
		width, _ := strconv.Atoi(m[4])
		for i := range values {
			values[i] = pad(values[i], width)
		}
		return values, err
	}
	if inner, ok := between(expr, "[", "]"); ok {
		return list(inner)
	}
	if strings.Contains(expr, "..") && !strings.ContainsAny(expr, `'"`) {
		inner, ok := between(expr, "(", ")")
		if !ok {
			inner = expr
		}
		return numberRange(inner)
	}
	value, err := scalar(expr)
	if err != nil {
		return nil, fmt.Errorf("cannot expand ${%s}: write a range (${0..15}), a list (${['a','b']}) or a value", clip(expr))
	}
	return []string{value}, nil
}

func between(s, left, right string) (string, bool) {
	if len(s) < 2 || !strings.HasPrefix(s, left) || !strings.HasSuffix(s, right) {
		return "", false
	}
	return strings.TrimSpace(s[1 : len(s)-1]), true
}

// numberRange gives a..b, both ends included, downwards when a is the greater.
// An end that is written with leading zeros pads all numbers to its width:
// 00..15 is 00, 01, … 15.
func numberRange(expr string) ([]string, error) {
	from, to, _ := strings.Cut(expr, "..")
	from, to = strings.TrimSpace(from), strings.TrimSpace(to)
	to, exclusive := strings.CutPrefix(to, "<")
	a, errA := strconv.ParseInt(from, 10, 32)
	b, errB := strconv.ParseInt(strings.TrimSpace(to), 10, 32)
	if errors.Join(errA, errB) != nil || a < 0 || b < 0 {
		return nil, fmt.Errorf("cannot expand the range ${%s}: its ends are two integers that are not negative, as ${0..15}", clip(expr))
	}
	step := int64(1)
	if b < a {
		step = -1
	}
	count := (b-a)*step + 1
	if exclusive {
		count--
	}
	switch {
	case count > maxNodes:
		return nil, errTooManyNodes
	case count < 1:
		return nil, fmt.Errorf("the range ${%s} is empty", clip(expr))
	}
	width := paddedWidth(from, strings.TrimSpace(to))
	values := make([]string, count)
	for i := range values {
		values[i] = pad(strconv.FormatInt(a+int64(i)*step, 10), width)
	}
	return values, nil
}

// clip shortens a text for an error.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

func paddedWidth(ends ...string) int {
	width, padded := 0, false
	for _, end := range ends {
		width = max(width, len(end))
		padded = padded || len(end) > 1 && end[0] == '0'
	}
	if !padded {
		return 0
	}
	return width
}

func pad(s string, width int) string {
	return strings.Repeat("0", max(0, width-len(s))) + s
}

// list gives the values of a list, without what encloses it.
func list(inner string) ([]string, error) {
	var values []string
	for _, item := range strings.Split(inner, ",") {
		value, err := scalar(strings.TrimSpace(item))
		if err != nil {
			return nil, fmt.Errorf("cannot expand the list ${[%s]}: its items are texts or numbers, as ${['a','b']}", clip(inner))
		}
		values = append(values, value)
	}
	return values, nil
}

var bare = regexp.MustCompile(`^\d+$`)

// scalar gives a quoted text without its quotes, or a number as written.
func scalar(item string) (string, error) {
	for _, quote := range []string{"'", `"`} {
		if text, ok := between(item, quote, quote); ok && !strings.ContainsAny(text, `'"\$`) {
			return text, nil
		}
	}
	if !bare.MatchString(item) {
		return "", errors.New("neither a quoted text nor a number")
	}
	return item, nil
}
