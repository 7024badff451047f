package gormshardkey_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
)

// suiteRecord has the expected results of GORM's suite: comments, the tests that fail or are
// skipped, each with a reason, and a table with the number of tests that pass, by file and server.
const suiteRecord = "testdata/gormsuite.txt"

type suiteResults struct {
	head    []string                  // the lines above the table
	reasons map[string]string         // by "fails TestName" or "skipped TestName"
	servers []string                  // the columns
	counts  map[string]map[string]int // by server and file
}

func readSuiteRecord(t *testing.T) *suiteResults {
	t.Helper()
	text, err := os.ReadFile(suiteRecord)
	mustDo(t, err)
	r, err := parseSuiteRecord(string(text))
	mustDo(t, err)
	return r
}

func parseSuiteRecord(text string) (*suiteResults, error) {
	r := &suiteResults{reasons: map[string]string{}, counts: map[string]map[string]int{}}
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		fields := strings.Fields(line)
		switch {
		case r.servers == nil && (line == "" || strings.HasPrefix(line, "#")):
		case r.servers == nil && len(fields) > 2 && (fields[0] == "fails" || fields[0] == "skipped"):
			r.reasons[fields[0]+" "+fields[1]] = strings.Join(fields[2:], " ")
		case r.servers == nil && fields[0] == "file":
			r.servers = append([]string{}, fields[1:]...)
			for _, server := range r.servers {
				r.counts[server] = map[string]int{}
			}
			continue
		case r.servers != nil && len(fields) == 1+len(r.servers):
			for column, server := range r.servers {
				n, err := strconv.Atoi(fields[1+column])
				if err != nil {
					return nil, fmt.Errorf("%s:%d: %w", suiteRecord, i+1, err)
				}
				r.counts[server][fields[0]] = n
			}
		default:
			return nil, fmt.Errorf("%s:%d: expected a test with a reason or a row of the table, found %q", suiteRecord, i+1, line)
		}
		if r.servers == nil {
			r.head = append(r.head, line)
		}
	}
	return r, nil
}

func (r *suiteResults) skipped() []string {
	var names []string
	for what := range r.reasons {
		if name, ok := strings.CutPrefix(what, "skipped "); ok {
			names = append(names, name)
		}
	}
	return names
}

// compare compares the passing tests of a server with the record, or updates the record with
// -update.
func (r *suiteResults) compare(t *testing.T, server string, have map[string]int) {
	t.Helper()
	if *updateSuite {
		if !slices.Contains(r.servers, server) {
			r.servers = append(r.servers, server)
		}
		r.counts[server] = have
		mustDo(t, os.WriteFile(suiteRecord, []byte(r.String()), 0o600))
		return
	}
	want, ok := r.counts[server]
	if !ok {
		t.Logf("%s has no column %s", suiteRecord, server)
		return
	}
	for _, file := range r.files() {
		if have[file] != want[file] {
			t.Errorf("%s: %s\nhave: %d tests pass\nwant: %d", server, file, have[file], want[file])
		}
		delete(have, file)
	}
	for file, n := range have {
		t.Errorf("%s: %s\nhave: %d tests pass\nwant: a row in %s", server, file, n, suiteRecord)
	}
}

// files are the rows of the table, sorted.
func (r *suiteResults) files() []string {
	all := map[string]bool{}
	for _, counts := range r.counts {
		for file := range counts {
			all[file] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func (r *suiteResults) String() string {
	var b strings.Builder
	b.WriteString(strings.Join(r.head, "\n") + "\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "file\t"+strings.Join(r.servers, "\t"))
	for _, file := range r.files() {
		fmt.Fprint(w, file)
		for _, server := range r.servers {
			fmt.Fprintf(w, "\t%d", r.counts[server][file])
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush()
	return b.String()
}

// The record is of the version of GORM that gormshardkey requires, and in the form that -update
// writes.
func TestSuiteRecord(t *testing.T) {
	text, err := os.ReadFile(suiteRecord)
	mustDo(t, err)
	if have := readSuiteRecord(t).String(); have != string(text) {
		t.Errorf("have: %s\nwant: %s", text, have)
	}
	mod, err := os.ReadFile("go.mod")
	mustDo(t, err)
	required := regexp.MustCompile(`gorm\.io/gorm (\S+)`).FindSubmatch(mod)
	if required == nil || !strings.Contains(string(text), "the tests of GORM "+string(required[1])+" ") {
		t.Errorf("%s is not of GORM %s: run make gorm-suite with TESTFLAGS=-update", suiteRecord, required)
	}
}
