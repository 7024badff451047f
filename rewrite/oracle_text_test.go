package rewrite

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// checkRewritten holds a rewritten text to be the original when the key is
// taken off.
func (o *oracle) checkRewritten(text, rewritten string, mode Mode, p *Plan) error {
	before, err := o.parse(text, mode)
	if err != nil {
		return err
	}
	for i, tree := range inserts(before) {
		takeKeys(tree, &p.Inserts[i], false)
	}
	want, err := restore(before)
	if err != nil {
		return nil // what the parser reads and cannot print is not ours
	}
	after, err := o.parse(rewritten, mode)
	if err != nil {
		return fmt.Errorf("it does not parse: %w", err)
	}
	for i, tree := range inserts(after) {
		takeKeys(tree, &p.Inserts[i], true)
	}
	if have, err := restore(after); have != want {
		return fmt.Errorf("but for the key\nhave: %s\nwant: %s\n%v", have, want, err)
	}
	return nil
}

// takeKeys takes off a tree what is of the key: generated values become nil,
// and when they were added, they and their column go.
func takeKeys(tree *ast.InsertStmt, in *Insert, rewritten bool) {
	if in.Listed {
		tree.Columns = nil
	}
	if in.Refused || in.Source != nil || in.Rows() == 0 {
		return
	}
	added := in.keyPrefix != "" || in.headText != ""
	if in.Guarded && rewritten {
		tree.OnDuplicate = tree.OnDuplicate[:len(tree.OnDuplicate)-1]
	}
	if in.headText != "" && !strings.HasPrefix(in.headText, ",") {
		tree.Columns = nil // the text had none, or ()
	} else if rewritten && added {
		tree.Columns = tree.Columns[:len(tree.Columns)-1]
	}
	null := ast.NewValueExpr(nil, "", "")
	for i := range tree.Lists {
		row := &tree.Lists[i]
		kind, _ := in.Slot(i)
		switch {
		case added && rewritten:
			*row = (*row)[:len(*row)-1]
		case !added && kind == SlotFill:
			(*row)[in.keyIndex(columnsOf(tree, in))] = null
		}
	}
}

// checkSplices holds that the bind text is the text but for its splices, byte
// for byte, and that they are what they must be.
func checkSplices(text string, p *Plan) error {
	type splice struct {
		at, end int
		want    *regexp.Regexp
		exact   string // without want
	}
	var splices []splice
	for i := range p.Inserts {
		in := &p.Inserts[i]
		if in.Listed {
			splices = append(splices, splice{in.headAt, in.headAt, nil, in.headText})
		}
		if in.Refused || in.Source != nil {
			continue
		}
		if in.headText != "" {
			splices = append(splices, splice{in.headAt, in.headAt, headSplice, ""})
		}
		for row := range in.Rows() {
			if kind, _ := in.Slot(row); kind == SlotFill {
				splices = append(splices, splice{int(in.slots.at[row]), in.slots.end(row), keySplice, ""})
			}
		}
		if in.aliasAt >= 0 {
			splices = append(splices, splice{in.aliasAt, in.aliasAt, aliasSplice, ""})
		}
		if in.Guarded {
			splices = append(splices, splice{in.duplicateAt, in.duplicateAt, nil, ", " + in.guard()})
		}
	}
	rest, pos := p.BindText(), 0
	for _, s := range splices {
		if s.at < pos || s.end < s.at {
			return fmt.Errorf("splice at %d to %d behind %d", s.at, s.end, pos)
		}
		kept, ok := strings.CutPrefix(rest, text[pos:s.at])
		added := s.exact
		if s.want != nil {
			added = s.want.FindString(kept)
		}
		if !ok || added == "" || !strings.HasPrefix(kept, added) {
			return fmt.Errorf("at %d\nhave: %q\nwant: %q and then %v%s", pos, rest, text[pos:s.at], s.want, s.exact)
		}
		rest, pos = kept[len(added):], s.end
	}
	if rest != text[pos:] {
		return fmt.Errorf("at %d\nhave: %q\nwant: %q", pos, rest, text[pos:])
	}
	return nil
}

var (
	headSplice  = regexp.MustCompile("^(, `id`| \\((`[as]`, )*`id`\\)|(`[as]`, )*`id`)")
	keySplice   = regexp.MustCompile("^(, )?(`id` = )?(LAST_INSERT_ID\\(\\?\\)|\\?)")
	aliasSplice = regexp.MustCompile("^, `shardkey_key`")
)
