package rule

import (
	"fmt"
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
			return fmt.Errorf("the row expression <%s> is not known here: write the actual tables with ranges and lists", kind)
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
