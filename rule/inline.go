package rule

import (
	"fmt"
	"regexp"
	"strings"
)

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
