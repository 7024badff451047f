package differential

import (
	"cmp"
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

// minimize removes the statements that a difference doesn't need, and fails the test with the rest.
func (w *world) minimize(t *testing.T, d *duel, full *difference) {
	t.Helper()
	try := func(steps []step) *difference {
		diff := d.again(steps)
		if diff == nil || diff.kind() != full.kind() || knownClass(w, diff) != "" {
			return nil
		}
		return diff
	}
	diff := try(full.steps)
	if diff == nil {
		t.Errorf("%s: %s\nit did not repeat\n%s", t.Name(), w, full)
		return
	}
	for again := true; again; {
		again = false
		for steps := range smaller(diff.steps) {
			if next := try(steps); next != nil {
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
	return fmt.Sprintf("%s, %s t, sql_mode %s, d (v %s, w %s)", w.variant, cmp.Or(w.kind, "ordinary"), w.mode, w.columns[0], w.columns[1])
}

// smaller returns the steps with one less, or without the reader of one.
func smaller(steps []step) func(yield func([]step) bool) {
	return func(yield func([]step) bool) {
		for i, st := range steps {
			if len(steps) > 1 && !yield(slices.Concat(steps[:i], steps[i+1:])) {
				return
			}
			if st.read != "" {
				less := slices.Clone(steps)
				less[i].read = ""
				if !yield(less) {
					return
				}
			}
		}
	}
}
