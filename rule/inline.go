package rule

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

var errLongName = fmt.Errorf("a name is longer than %d bytes", maxName)

// product calls yield with each string that one item of an inline expression stands for:
// "ds_${0..1}.t_${['a','b']}" stands for four. The parts vary as digits do, the last one fastest.
func product(item string, budget *int, yield func(string) error) error {
	if !strings.Contains(item, "${") && *budget > 0 && len(item) <= 4*maxName {
		*budget--
		return yield(item) // most items of a rule that writes its tables one by one
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
			return errLongName // of data source, schema and table together
		}
		if err := combine(parts[1:], append(prefix, text...), yield); err != nil {
			return err
		}
	}
	return nil
}

// wildcards are ${*} and ${yyyyMM} in a data node. They stand for themselves.
var wildcards = regexp.MustCompile(`\$\{\s*(\*|[-_yMdHms]+)\s*\}`)

// inlineParts returns the strings that each part of an item stands for.
func inlineParts(item string) ([][]string, error) {
	marked := wildcards.ReplaceAllStringFunc(item, func(expr string) string {
		if inner := strings.TrimSpace(expr[2 : len(expr)-1]); isWildcard(inner) {
			return wildcard(inner)
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
	var e *expr.Error
	if errors.As(err, &e) && e.Offset >= 0 {
		return fmt.Errorf("cannot expand %q: %w; write a range (${0..15}), a list (${['a','b']}), a quoted string (${'x'}), "+
			"${*} for any number or a date (${yyyyMM})", clip(shown(item)), err)
	}
	return fmt.Errorf("cannot expand %q: %w", clip(shown(item)), err)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' }
