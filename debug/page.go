package debug

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/rule"
)

// page is what the page shows, and its JSON form.
type page struct {
	Time       time.Time       `json:"time"`
	Process    string          `json:"process"`
	State      state           `json:"state"`
	Connectors []connectorView `json:"connectors"`
	Chosen     int             `json:"-"` // the boxes' connector, from 1
	Key        string          `json:"-"`
	Statement  string          `json:"-"`
	Decoded    *decoded        `json:"decoded,omitempty"`
	Plan       *planned        `json:"plan,omitempty"`
}

// state is how something is, from good to bad.
type state int

const (
	good state = iota
	warned
	failing
)

// Word is the state's name, in JSON and as the class of its colours.
func (s state) Word() string { return [...]string{"ok", "warning", "failing"}[s] }

// Sign stands before what the state says, for those who see no colours.
func (s state) Sign() string { return [...]string{"✓", "▲", "✕"}[s] }

func (s state) MarshalText() ([]byte, error) { return []byte(s.Word()), nil }

// connectorView is one connector.
type connectorView struct {
	Number     int             `json:"-"`
	Name       string          `json:"name"`
	State      state           `json:"state"`
	Says       []string        `json:"says"`
	Warnings   []string        `json:"warnings,omitempty"` // of the rule
	Stats      driver.Stats    `json:"stats"`
	Generators []generatorView `json:"-"`
	Charts     []chart         `json:"-"`
	Tables     []tableView     `json:"-"`
	MoreTables int64           `json:"-"`
	Figures    []figure        `json:"-"`
}

// figure is a name and what it is now.
type figure struct{ Name, Value string }

// tableView is a table of the rule.
type tableView struct {
	rule.Table
	Stats    driver.TableStats
	Nodes    string
	Sharding string
	Settings string
}

const (
	// maxTables is how many tables of a rule the page lists: the busiest.
	maxTables = 200
	// otherTables is the name of the sum over all others, in JSON.
	otherTables = "_OTHER"
	// maxWarnings is how many of the rule's warnings the page lists.
	maxWarnings = 100
)

// shown is a connector with what the handler has seen of it.
type shown struct {
	connector *driver.Connector
	history   history
}

// look makes the view of a connector of this moment.
func (s *shown) look(number int, now time.Time) connectorView {
	stats, of := s.connector.Stats(), s.connector.Rule()
	v := connectorView{Number: number, Name: stats.Rule.Name, Stats: stats}
	if stats.Database != "" {
		v.Name += " · " + stats.Database
	}
	warnings := of.Warnings()
	for _, w := range warnings[:min(maxWarnings, len(warnings))] {
		v.Warnings = append(v.Warnings, w.Error())
	}
	if more := len(warnings) - len(v.Warnings); more > 0 {
		v.Warnings = append(v.Warnings, fmt.Sprintf("… and %d more, which shardkey check lists", more))
	}
	series, said := s.history.add(now, stats), map[string]bool{}
	for _, g := range stats.Generators {
		one := viewGenerator(g, stats.Tables, series)
		v.Generators = append(v.Generators, one)
		if v.State = max(v.State, one.State); one.State != good && !said[one.Says] {
			v.Says = append(v.Says, one.headline())
			said[one.Says] = true // an assigner has the same to say as those that use it
		}
	}
	if e := stats.Rule.ReloadError; e != "" {
		v.State = max(v.State, warned)
		v.Says = append(v.Says, "the rule's file has changed and cannot be taken; the earlier rule holds: "+e)
	}
	if len(v.Says) == 0 {
		v.Says = []string{"keys can be made"}
	}
	v.Charts = charts(series)
	v.Figures = figures(stats)
	v.tables(of.Tables())
	return v
}

// tables fills in the rule's busiest tables, as many as the page lists. Of the others,
// the figures have the sum.
func (v *connectorView) tables(all []rule.Table) {
	listed := busiest(v.Stats.Tables, maxTables)
	v.MoreTables = int64(len(v.Stats.Tables) - len(listed))
	for _, i := range listed {
		if i >= len(all) {
			break // another rule's
		}
		t := all[i]
		row := tableView{Table: t, Nodes: nodes(t), Settings: settings(t)}
		if t.Sharding != nil {
			row.Sharding = t.Sharding.String()
		}
		if v.Stats.Tables[i].Table == t.Logical {
			row.Stats = v.Stats.Tables[i]
		}
		v.Tables = append(v.Tables, row)
	}
	if v.MoreTables > 0 {
		v.Stats.Tables = withOthers(v.Stats.Tables, listed)
	}
}

// busiest returns the indexes of the n tables that were used most, in their order.
func busiest(tables []driver.TableStats, n int) []int {
	indexes := make([]int, len(tables))
	for i := range indexes {
		indexes[i] = i
	}
	if len(indexes) > n {
		used := func(i int) int64 { return tables[i].Keys + tables[i].Errors }
		slices.SortStableFunc(indexes, func(a, b int) int { return cmp.Compare(used(b), used(a)) })
		indexes = indexes[:n]
		slices.Sort(indexes)
	}
	return indexes
}

// withOthers returns the listed tables and the sum over the others.
func withOthers(tables []driver.TableStats, listed []int) []driver.TableStats {
	var some []driver.TableStats
	others := driver.TableStats{Table: otherTables}
	for i, t := range tables {
		if _, found := slices.BinarySearch(listed, i); found {
			some = append(some, t)
			continue
		}
		others.Keys += t.Keys
		others.Statements += t.Statements
		others.Rows += t.Rows
		others.Errors += t.Errors
		others.Generate = sum(others.Generate, t.Generate)
	}
	return append(some, others)
}

// nodes are a table's actual tables, in a few words.
func nodes(t rule.Table) string {
	const listed = 4
	names := slices.Clone(t.Actual[:min(listed, len(t.Actual))])
	if t.ActualCount > listed {
		names = append(names, fmt.Sprintf("… (%s)", count(int64(t.ActualCount))))
	}
	return strings.Join(append(names, t.Patterns...), ", ")
}

// settings are those of a table that are not the default.
func settings(t rule.Table) string {
	var set []string
	for _, s := range []struct {
		is   bool
		says string
	}{
		{t.ExplicitKeys == "keep", "explicit keys are kept"},
		{t.Consecutive, "keys of a statement are consecutive"},
		{t.Unlisted == "warn", "unlisted tables are logged"},
		{t.Unlisted == "pass", "unlisted tables pass"},
		{t.ShardGuard == "warn", "rows in a wrong table are logged"},
		{t.ShardGuard == "off", "rows in a wrong table pass"},
	} {
		if s.is {
			set = append(set, s.says)
		}
	}
	return strings.Join(set, "; ")
}

// figures are a connector's own.
func figures(s driver.Stats) []figure {
	var refused []string
	for _, reason := range sortedKeys(s.Refused) {
		refused = append(refused, fmt.Sprintf("%s %s", count(s.Refused[reason]), reason))
	}
	limit := count(s.Kept.Limit)
	switch s.Kept.Limit {
	case -1:
		limit = "not known yet"
	case 0:
		limit = "none: the server had no room"
	}
	watched := "not watched"
	if s.Rule.Watched {
		watched = "watched"
	}
	return []figure{
		{"Rule", fmt.Sprintf("%s, number %d of this connector, since %s, %s, %s failed reloads",
			cmp.Or(s.Rule.File, s.Rule.Name), s.Rule.Generation, clockTime(s.Rule.Since), watched, count(s.Rule.ReloadErrors))},
		{"Connections", count(int64(s.Connections))},
		{"Plans", fmt.Sprintf("%s in %s; %s found, %s made", count(int64(s.Plans.Entries)), bytesText(s.Plans.Bytes), count(s.Plans.Hits), count(s.Plans.Misses))},
		{"Prepared statements", fmt.Sprintf("%s kept (%s), at most %s; %s used again, %s prepared, %s closed",
			count(s.Kept.Open), s.Kept.Mode, limit, count(s.Kept.Hits), count(s.Kept.Misses), count(s.Kept.Dropped))},
		{"Second reader", fmt.Sprintf("%s agreed, %s not known to it, %s refused", count(s.Verification.Agreed), count(s.Verification.Unknown), count(s.Verification.Refused))},
		{"Refused statements", cmp.Or(strings.Join(refused, ", "), "none")},
	}
}

// process names this process as leases do, for a page that was opened through a load
// balancer.
func process() string {
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	return fmt.Sprintf("%s, process %d, %s", host, os.Getpid(), runtime.Version())
}

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string
)

// contentPolicy lets the browser run the page's own script and style, known by their
// hashes, and ask this address for newer figures; nothing else.
var contentPolicy = fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	hashOf(pageJS), hashOf(pageCSS))

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"count": count,
	"clock": clockTime,
	"css":   func() template.CSS { return template.CSS(pageCSS) }, //nolint:gosec // our own file
	"js":    func() template.JS { return template.JS(pageJS) },    //nolint:gosec // our own file
}).Parse(pageHTML))

// count writes a number with spaces between thousands.
func count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "−", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:] // a narrow space at which no line ends
	}
	return sign + digits
}

func clockTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func bytesText(n int) string {
	switch {
	case n < 1<<10:
		return strconv.Itoa(n) + " B"
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// seconds writes a duration as people say it.
func seconds(d time.Duration) string {
	switch {
	case d <= 0:
		return "0 s"
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	case d < time.Millisecond:
		return trimmed(float64(d)/float64(time.Microsecond)) + " µs"
	case d < time.Second:
		return trimmed(float64(d)/float64(time.Millisecond)) + " ms"
	case d < 2*time.Minute:
		return trimmed(d.Seconds()) + " s"
	case d < 2*time.Hour:
		return trimmed(d.Minutes()) + " min"
	case d < 48*time.Hour:
		return trimmed(d.Hours()) + " h"
	}
	return trimmed(d.Hours()/24) + " days"
}

// trimmed writes a number with three digits, more where it is above 999.
func trimmed(f float64) string {
	switch {
	case f >= 9999.5:
		return count(int64(f + 0.5))
	case f >= 99.95:
		return strconv.FormatFloat(f, 'f', 0, 64)
	case f >= 9.995:
		return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
	}
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(f, 'f', 2, 64), "0"), ".")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
