package differential

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// class returns a key for differences that are likely the same one.
func (d *difference) class() string {
	text := strings.ToUpper(d.last().text + d.last().read)
	verb := firstVerb.FindString(text)
	var words []string
	for _, word := range []string{"IGNORE", "ON DUPLICATE", "SELECT", "RETURNING", ";"} {
		if strings.Contains(text, word) {
			words = append(words, word)
		}
	}
	return fmt.Sprintf("%s, %s %s", d.kind(), verb, strings.Join(words, " "))
}

var firstVerb = regexp.MustCompile(`\b(INSERT|REPLACE|SELECT|UPDATE|DELETE|SET|CALL|SHOW|DO|BEGIN|START|COMMIT|ROLLBACK|SAVEPOINT)\b`)

// kind returns what must stay when a difference is minimized.
func (d *difference) kind() string {
	return fmt.Sprintf("%s (plain %d, shardkey %d)", d.field, errorNumber(d.plain.err), errorNumber(d.ours.err))
}

// mostTrials is the number of times that a case runs to be minimized.
const mostTrials = 250

// minimize removes what a difference doesn't need, and fails the test with the rest. It uses the
// world of d for worlds with fewer triggers, so it opens it again.
func (w *world) minimize(t *testing.T, d *duel, full *difference) {
	t.Helper()
	try := func(d *duel, steps []step) *difference {
		diff := d.again(steps)
		if diff == nil || diff.kind() != full.kind() || knownClass(w, diff) != "" {
			return nil
		}
		return diff
	}
	diff := try(d, full.steps)
	if diff == nil {
		t.Errorf("%s: %s\nit did not repeat\n%s", t.Name(), w, full)
		return
	}
	w, d, diff = w.withFewerTriggers(t, d, diff, try)
	defer d.close()
	for trials, again := 0, true; again; {
		again = false
		for steps := range smaller(diff.steps) {
			if trials++; trials > mostTrials {
				break
			}
			if next := try(d, steps); next != nil {
				diff, again = next, true
				break
			}
		}
	}
	var texts []string
	for _, st := range diff.steps {
		texts = append(texts, st.text, st.read)
	}
	objects, text := slices.Concat(functions, views, w.triggers), strings.Join(texts, " ")
	for _, o := range slices.Backward(objects) { // an object needs only earlier ones
		if o.kind == "TRIGGER" || strings.Contains(text, o.name) {
			text += o.ddl
			diff.ddl = slices.Insert(diff.ddl, 0, o.create())
		}
	}
	t.Errorf("%s: %s\n%s", t.Name(), w, diff)
}

func (w *world) String() string {
	return fmt.Sprintf("%s, sql_mode %s, d (v %s, w %s)", w.variant, w.mode, w.columns[0], w.columns[1])
}

// withFewerTriggers removes the triggers that a difference doesn't need, and opens the world again.
func (w *world) withFewerTriggers(t *testing.T, d *duel, diff *difference, try func(*duel, []step) *difference) (*world, *duel, *difference) {
	choices := [][]object{nil}
	for i := range w.triggers {
		choices = append(choices, w.triggers[i:i+1])
	}
	for i := range w.triggers {
		for j := range i {
			choices = append(choices, []object{w.triggers[j], w.triggers[i]})
		}
	}
	for _, triggers := range choices {
		fewer := *w
		fewer.triggers = triggers
		less := fewer.open(t, d.tally)
		if next := try(less, diff.steps); next != nil {
			return &fewer, less, next
		}
		less.close()
	}
	return w, w.open(t, d.tally), diff
}

// smaller returns the steps with one less, or with a part of a text less.
func smaller(steps []step) func(yield func([]step) bool) {
	return func(yield func([]step) bool) {
		for i := range steps {
			if len(steps) > 1 && !yield(slices.Concat(steps[:i], steps[i+1:])) {
				return
			}
		}
		for i, st := range steps {
			if st.read != "" {
				less := st
				less.read = ""
				if !yield(replaced(steps, i, less)) {
					return
				}
			}
			for less := range smallerStep(st) {
				if !yield(replaced(steps, i, less)) {
					return
				}
			}
		}
	}
}

func replaced(steps []step, i int, st step) []step {
	all := slices.Clone(steps)
	all[i] = st
	return all
}

// smallerStep returns the step without some of its tokens: the longest parts first.
func smallerStep(st step) func(yield func(step) bool) {
	return func(yield func(step) bool) {
		tokens := sqlToken.FindAllString(st.text, -1)
		for size := len(tokens) / 2; size > 0; size = min(size/2, size-1) {
			for from := len(tokens) - size; from >= 0; from -= max(1, size/2) {
				if !balanced(tokens[from : from+size]) {
					continue
				}
				if !yield(without(st, tokens, from, from+size)) {
					return
				}
			}
		}
	}
}

var sqlToken = regexp.MustCompile("(?s)\\s+|'(?:[^'\\\\]|''|\\\\.)*'|\"(?:[^\"\\\\]|\"\"|\\\\.)*\"|`[^`]*`|/\\*.*?\\*/|--[^\n]*|#[^\n]*|\\w+|.")

// balanced reports whether the tokens have complete brackets.
func balanced(tokens []string) bool {
	open := 0
	for _, token := range tokens {
		switch token {
		case "(":
			open++
		case ")":
			if open--; open < 0 {
				return false
			}
		}
	}
	return open == 0 && strings.TrimSpace(strings.Join(tokens, "")) != ""
}

func without(st step, tokens []string, from, to int) step {
	arg, args := 0, []any{}
	for i, token := range tokens {
		if token != "?" {
			continue
		}
		if arg < len(st.args) && (i < from || i >= to) {
			args = append(args, st.args[arg])
		}
		arg++
	}
	st.text = strings.Join(slices.Concat(tokens[:from], tokens[to:]), "")
	st.args = args
	return st
}
