package workerid

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// layoutNote is the worker ID in Info.notes whose Holder has the layouts of the last process that
// changed it.
const layoutNote = 2

// UsedWith records the layout and epoch of a generator that uses the assigner's worker IDs. Keys of
// different layouts or epochs can be equal although their worker IDs differ.
func (a *assigner) UsedWith(layout string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Contains(a.layouts, layout) {
		a.layouts = append(a.layouts, layout)
		slices.Sort(a.layouts)
	}
}

// layoutSeparator is between two layouts in a note.
const layoutSeparator = "; "

// warnOfLayouts returns a warning if the layouts in a note are others than those of this process. More
// or fewer are no reason for a warning.
func (a *assigner) warnOfLayouts(noted string) string {
	a.mu.Lock()
	own := slices.Clone(a.layouts)
	a.mu.Unlock()
	theirs := strings.Split(noted, layoutSeparator)
	if len(own) == 0 || noted == "" || containsAll(theirs, own) || containsAll(own, theirs) {
		return ""
	}
	return fmt.Sprintf("namespace %s was used with %s, and this process uses %s; "+
		"keys of one column can repeat with two layouts or epochs. "+
		"Use the same for all generators of a table, and another namespace for other tables",
		a.config.Namespace, noted, strings.Join(own, layoutSeparator))
}

// otherLayouts notes the layouts of this process's generators. If another process noted others, it
// returns a warning. It isn't an error, because they may be of other tables. A process that uses
// more or fewer generators is no reason for a warning.
func (a *assigner) otherLayouts(ctx context.Context) string {
	a.mu.Lock()
	own := slices.Clone(a.layouts)
	a.mu.Unlock()
	text := strings.Join(own, layoutSeparator)
	if a.info.notes == nil || text == "" || len(text) > 200 { // see Record.Holder
		return ""
	}
	noted, err := a.info.notes.Get(ctx, layoutNote)
	if err != nil || !noted.IsZero() && containsAll(strings.Split(noted.Holder, layoutSeparator), own) {
		return "" // the next operation returns the error
	}
	now := a.now()
	next := Record{Owner: newToken(), ReservedUntil: now, Holder: text, Since: now}
	_, _ = a.info.notes.CompareAndSet(ctx, layoutNote, noted, next)
	return a.warnOfLayouts(noted.Holder)
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}
