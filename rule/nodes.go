package rule

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// node is one actual table: its data source and its schema, where the data node
// has them, and its name.
type node struct {
	source, schema, table string
}

// dataNodes calls yield with each actual table of an actualDataNodes
// expression. A node is "table", "dataSource.table" or
// "dataSource.schema.table".
func dataNodes(text string, yield func(node) error) error {
	literal := false
	if kind, rest, ok := rowExpressionKind(text); ok {
		switch kind {
		case "GROOVY", "ESPRESSO":
		case "LITERAL":
			literal = true
		case "INTERVAL":
			return intervalNodes(rest, yield)
		default:
			return fmt.Errorf("the row expression <%s> is not supported: write the actual tables with ranges and lists", kind)
		}
		text = rest
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && !unicode.IsSpace(r) }); i >= 0 {
		return fmt.Errorf("%q has the character %+q", clip(text), text[i])
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
			err = product(item, &budget, each)
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
	var room [3]string
	parts := room[:0]
	for part := range strings.SplitSeq(text, ".") {
		parts = append(parts, part)
		if reason := wrongName(part); reason != "" {
			return node{}, fmt.Errorf("%q is not a data node: %s", clip(shown(text)), reason)
		}
	}
	switch len(parts) {
	case 1:
		return node{table: parts[0]}, nil
	case 2:
		return node{source: parts[0], table: parts[1]}, nil
	case 3:
		return node{parts[0], parts[1], parts[2]}, nil
	}
	return node{}, fmt.Errorf("%q is not a data node: it has %d parts; write dataSource.table or "+
		"dataSource.schema.table", clip(shown(text)), len(parts))
}

// wrongName returns what is wrong with a name of a data source, schema or actual
// table, and the way out; empty when nothing is.
func wrongName(name string) string {
	if len(name) > maxName {
		return "it is too long for a name"
	}
	if isSimple(name) {
		return "" // nearly every name, in a rule that may have millions
	}
	plain := name
	if isPattern(name) {
		plain = strings.ReplaceAll(name, wildMark+"*"+wildMark, "")
	}
	switch i := strings.IndexFunc(plain, isInvisible); {
	case name == "":
		return "write dataSource.table, with ${…} around ranges and lists"
	case i >= 0:
		return fmt.Sprintf("it has the character %+q", []rune(plain[i:])[0])
	case strings.Contains(plain, ";"):
		return "separate data nodes with commas"
	case strings.ContainsAny(plain, "`'\""):
		return "write names without quotes"
	case strings.ContainsAny(plain, "*?[]()"):
		return "write ${*} for any number, as in ds.t_order_${*}; other patterns are not supported"
	case strings.ContainsAny(plain, "{}$<>,"):
		return "write dataSource.table, with ${…} around ranges and lists"
	}
	return ""
}

// maxName bounds a name, in bytes; the servers' own bound is 64 characters.
const maxName = 256

func isSimple(name string) bool {
	for i := range len(name) {
		if c := name[i]; !isLetter(c) && !isDigit(c) && c != '-' {
			return false
		}
	}
	return name != ""
}

// isInvisible reports whether r is a blank, a control character or another that
// is not seen in a name, such as a zero-width space.
func isInvisible(r rune) bool {
	return r != rune(wildMark[0]) && (unicode.IsSpace(r) || !unicode.IsPrint(r))
}

// maxNodes bounds the data nodes of one expression, so that a typing error
// (${0..1000000000}) costs an error and not the memory.
const maxNodes = 1 << 20

var errTooManyNodes = fmt.Errorf("more than %d data nodes", maxNodes)

// bareRange is a range whose "$" was forgotten, as ShardingSphere's own test
// files have it. No table is called "t{0..8}": it is read as a range.
var bareRange = regexp.MustCompile(`(^|[^$]){(\d+\.\.\d+)}`)

// splitInline splits an inline expression at the commas that stand outside of
// ${…}, and trims the blanks.
func splitInline(text string) []string {
	text = strings.ReplaceAll(text, "$->{", "${")
	if strings.Contains(text, "..") {
		text = bareRange.ReplaceAllString(text, "$1$${$2}")
	}
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

// clip shortens a text for an error.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
