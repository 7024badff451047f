package rule

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// node is one actual table: its schema, where the data node has one, and name.
type node struct {
	schema, table string
}

// dataNodes calls yield with each actual table of an actualDataNodes
// expression. A node is "table", "dataSource.table" or
// "dataSource.schema.table"; the data source is nothing that the SQL of a
// statement could name, and is left out.
func dataNodes(text string, yield func(node) error) error {
	literal := false
	if kind, rest, ok := rowExpressionKind(text); ok {
		switch kind {
		case "GROOVY", "ESPRESSO":
		case "LITERAL":
			literal = true
		default:
			return fmt.Errorf("the row expression <%s> is not supported: write the actual tables with ranges and lists", kind)
		}
		text = rest
	}
	budget := maxNodes
	each := func(text string) error {
		n, err := parseNode(text)
		if err != nil {
			return err
		}
		return yield(n)
	}
	for _, item := range splitInline(text) {
		var err error
		if literal {
			err = each(item)
		} else {
			err = expandInline(item, &budget, each)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rowExpressionKind takes the <KIND> off an expression that begins with one.
func rowExpressionKind(text string) (kind, rest string, ok bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "<") {
		return "", text, false
	}
	kind, rest, ok = strings.Cut(text[1:], ">")
	return strings.ToUpper(kind), rest, ok
}

func parseNode(text string) (node, error) {
	parts := strings.Split(text, ".")
	for _, part := range parts {
		if part == "" || strings.ContainsAny(part, "{}$<> \t\r\n,") {
			return node{}, fmt.Errorf("%q is not a data node: write dataSource.table, with ${…} around ranges and lists", clip(text))
		}
	}
	switch len(parts) {
	case 1:
		return node{table: parts[0]}, nil
	case 2:
		return node{table: parts[1]}, nil
	case 3:
		return node{schema: parts[1], table: parts[2]}, nil
	}
	return node{}, fmt.Errorf("%q is not a data node: it has %d parts; write dataSource.table or dataSource.schema.table", clip(text), len(parts))
}

// maxNodes bounds the data nodes of one expression, so that a slip of the pen
// (${0..1000000000}) costs an error and not the memory.
const maxNodes = 1 << 20

var errTooManyNodes = fmt.Errorf("more than %d data nodes", maxNodes)

// bareRange is a range whose "$" was forgotten, as ShardingSphere's own test
// files have it. No table is called "t{0..8}": it is taken for what is meant.
var bareRange = regexp.MustCompile(`(^|[^$]){(\d+\.\.\d+)}`)

// splitInline splits an inline expression at the commas that stand outside of
// ${…}, and takes the blanks away.
func splitInline(text string) []string {
	text = strings.ReplaceAll(text, "$->{", "${")
	text = bareRange.ReplaceAllString(text, "$1$${$2}")
	var items []string
	depth, start := 0, 0
	for i := 0; i <= len(text); i++ {
		switch {
		case i == len(text) || text[i] == ',' && depth == 0:
			if item := strings.TrimSpace(text[start:i]); item != "" {
				items = append(items, item)
			}
			start = i + 1
		case text[i] == '{' && (depth > 0 || i > 0 && text[i-1] == '$'):
			depth++
		case text[i] == '}' && depth > 0:
			depth--
		}
	}
	return items
}

// expandInline calls yield with each text that one item of an inline expression
// stands for: "ds_${0..1}.t_${['a','b']}" stands for four. The parts vary as
// digits do, the last one fastest.
func expandInline(item string, budget *int, yield func(string) error) error {
	parts, err := inlineParts(item)
	if err != nil {
		return err
	}
	nodes := 1
	for _, part := range parts {
		if nodes *= len(part); nodes > *budget {
			return errTooManyNodes
		}
	}
	*budget -= nodes
	return product(parts, make([]byte, 0, 64), yield)
}

func product(parts [][]string, prefix []byte, yield func(string) error) error {
	if len(parts) == 0 {
		return yield(string(prefix))
	}
	for _, text := range parts[0] {
		if err := product(parts[1:], append(prefix, text...), yield); err != nil {
			return err
		}
	}
	return nil
}

// inlineParts cuts an item into plain texts (a part of one text) and
// expressions (a part of all their values).
func inlineParts(item string) ([][]string, error) {
	var parts [][]string
	for item != "" {
		i := strings.Index(item, "${")
		if i < 0 {
			return append(parts, []string{item}), nil
		}
		if i > 0 {
			parts = append(parts, []string{item[:i]})
		}
		end := closingBrace(item[i+2:])
		if end < 0 {
			return nil, fmt.Errorf("%q is not closed with }", clip(item[i:]))
		}
		values, err := evaluate(strings.TrimSpace(item[i+2 : i+2+end]))
		if err != nil {
			return nil, err
		}
		parts = append(parts, values)
		item = item[i+2+end+1:]
	}
	return parts, nil
}

func closingBrace(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return -1
}

// collected is the way in which Groovy pads numbers: (1..12).collect{t ->
// t.toString().padLeft(2,'0')}.
var collected = regexp.MustCompile(`^\((.*)\)\s*\.\s*collect\s*\{\s*(?:(\w+)\s*->)?\s*(\w+)(?:\s*\.\s*toString\(\)|\s*\+\s*(?:''|""))?\s*\.\s*padLeft\(\s*(\d{1,2})\s*,\s*['"]0['"]\s*\)\s*\}$`)

// evaluate returns the values of what stands between ${ and }: a range, a list,
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

// numberRange returns a..b, both ends included, downwards when a is the greater.
// An end that is written with leading zeros pads all numbers to its width:
// 00..15 is 00, 01, … 15.
func numberRange(expr string) ([]string, error) {
	from, to, _ := strings.Cut(expr, "..")
	from, to = strings.TrimSpace(from), strings.TrimSpace(to)
	to, exclusive := strings.CutPrefix(to, "<")
	a, errA := strconv.ParseInt(from, 10, 32)
	b, errB := strconv.ParseInt(strings.TrimSpace(to), 10, 32)
	if errors.Join(errA, errB) != nil || a < 0 || b < 0 {
		return nil, fmt.Errorf("cannot expand the range ${%s}: its ends must be two non-negative integers, as ${0..15}", clip(expr))
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

// list returns the values of a list, without what encloses it.
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

// scalar returns a quoted text without its quotes, or a number as written.
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
