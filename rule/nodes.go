package rule

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

// node is one actual table. source and schema are empty if the data node doesn't have them.
type node struct {
	source, schema, table string
}

// dataNodes calls yield for each actual table of an actualDataNodes expression. A node is "table",
// "dataSource.table" or "dataSource.schema.table".
func dataNodes(text string, yield func(node) error) error {
	literal := false
	if kind, rest, ok := strings.Cut(strings.TrimSpace(text), ">"); ok && strings.HasPrefix(kind, "<") {
		switch kind = strings.ToUpper(kind[1:]); kind {
		case "GROOVY", "ESPRESSO":
		case "LITERAL":
			literal = true
		case "INTERVAL":
			return intervalNodes(rest, yield)
		default:
			return fmt.Errorf("the row expression <%s> is not supported; write the actual tables with ranges and lists", kind)
		}
		text = rest
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && !unicode.IsSpace(r) }); i >= 0 {
		return fmt.Errorf("expected printable characters, found %+[2]q in %[1]q", expr.Clip(text), text[i])
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

func parseNode(text string) (node, error) {
	var room [3]string
	parts := room[:0]
	for part := range strings.SplitSeq(text, ".") {
		parts = append(parts, part)
		if reason := wrongName(part); reason != "" {
			return node{}, fmt.Errorf("invalid data node %q: %s", expr.Clip(shown(text)), reason)
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
	return node{}, fmt.Errorf("invalid data node %q: found %d parts; write dataSource.table or "+
		"dataSource.schema.table", expr.Clip(shown(text)), len(parts))
}

// wrongName returns the error in the name of a data source, schema or actual table, and how to fix
// it. It returns "" for a correct name.
func wrongName(name string) string {
	if len(name) > maxName {
		return "the name is too long"
	}
	if isSimple(name) {
		return "" // nearly every name takes this branch, and a rule may have millions
	}
	plain := name
	if isPattern(name) {
		plain = strings.ReplaceAll(name, wildMark+"*"+wildMark, "")
	}
	switch i := strings.IndexFunc(plain, isInvisible); {
	case name == "":
		return "write dataSource.table, with ${…} around ranges and lists"
	case i >= 0:
		return fmt.Sprintf("expected printable characters, found %+q", []rune(plain[i:])[0])
	case strings.Contains(plain, ";"):
		return "separate data nodes with commas"
	case strings.ContainsAny(plain, "`'\""):
		return "write names without quotes"
	case strings.ContainsAny(plain, "*?[]()"):
		return "unsupported pattern; write ${*} for any number, for example ds.t_order_${*}"
	case strings.ContainsAny(plain, "{}$<>,"):
		return "write dataSource.table, with ${…} around ranges and lists"
	}
	return ""
}

// maxName is the maximum length of a name, in bytes. Servers accept at most 64 characters.
const maxName = 256

func isSimple(name string) bool {
	for i := range len(name) {
		if c := name[i]; !isLetter(c) && !isDigit(c) && c != '-' {
			return false
		}
	}
	return name != ""
}

// isInvisible reports whether r is a space, a control character or another invisible character, for
// example a zero-width space.
func isInvisible(r rune) bool {
	return r != rune(wildMark[0]) && (unicode.IsSpace(r) || !unicode.IsPrint(r))
}

// maxNodes bounds the data nodes of one expression, so that a typing error such as ${0..1000000000}
// gives an error instead of using all memory.
const maxNodes = 1 << 20

var errTooManyNodes = fmt.Errorf("more than %d data nodes", maxNodes)

// bareRange matches a range without "$", which occurs in ShardingSphere's own test files. It is
// expanded too, since no table has a name such as "t{0..8}".
var bareRange = regexp.MustCompile(`(^|[^$]){(\d+\.\.\d+)}`)

// splitInline splits an inline expression at the commas outside of ${…}, and trims spaces.
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

var errLongName = fmt.Errorf("a name is longer than %d bytes", maxName)

// product calls yield for each string that an item of an inline expression stands for. For example,
// "ds_${0..1}.t_${['a','b']}" stands for four strings. The last part varies fastest.
func product(item string, budget *int, yield func(string) error) error {
	if !strings.Contains(item, "${") && *budget > 0 && len(item) <= 4*maxName {
		*budget--
		return yield(item) // fast path for rules that list tables one by one
	}
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
	return combine(parts, make([]byte, 0, 64), yield)
}

func combine(parts [][]string, prefix []byte, yield func(string) error) error {
	if len(parts) == 0 {
		return yield(string(prefix))
	}
	for _, text := range parts[0] {
		if len(prefix)+len(text) > 4*maxName {
			return errLongName // the sum of data source, schema and table
		}
		if err := combine(parts[1:], append(prefix, text...), yield); err != nil {
			return err
		}
	}
	return nil
}

// wildcards matches ${*} and date patterns such as ${yyyyMM} in a data node.
var wildcards = regexp.MustCompile(`\$\{\s*(\*|[-_yMdHms]+)\s*\}`)

// inlineParts returns the strings of each part of an item.
func inlineParts(item string) ([][]string, error) {
	marked := wildcards.ReplaceAllStringFunc(item, func(expr string) string {
		inner := strings.TrimSpace(expr[2 : len(expr)-1])
		if _, isDate := dateExpr(inner); inner == "*" || isDate && inner[0] != '_' {
			return wildMark + inner + wildMark
		}
		return expr
	})
	t, err := expr.Compile(marked, "")
	if err != nil {
		return nil, notExpanded(item, err)
	}
	parts, err := t.Names()
	if err != nil {
		return nil, notExpanded(item, err)
	}
	return parts, nil
}

func notExpanded(item string, err error) error {
	if errors.Is(err, expr.ErrTooMany) {
		return errTooManyNodes
	}
	if e, ok := errors.AsType[*expr.Error](err); ok && e.Offset >= 0 {
		return fmt.Errorf("cannot expand %q: %w; write a range (${0..15}), a list (${['a','b']}), a quoted string (${'x'}), "+
			"${*} for any number or a date (${yyyyMM})", expr.Clip(shown(item)), err)
	}
	return fmt.Errorf("cannot expand %q: %w", expr.Clip(shown(item)), err)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' }
