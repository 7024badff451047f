package rewrite_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/internal/tidb"
	"github.com/shardkey/shardkey/rewrite"
)

// checkPlan compares a plan with the second parser, with placeholders and with literals. It
// compares the facts that the second parser can't see with the statement.
func checkPlan(text string, opts rewrite.Options, p *rewrite.Plan) (tidb.Outcome, error) {
	if err := checkSplices(p); err != nil {
		return 0, err
	}
	if have, want := rewrite.CountPlaceholders(p.Query(), opts), rewrite.CountPlaceholders(text, opts)+p.NumKeys; have != want {
		return 0, fmt.Errorf("placeholders of the bind text\nhave: %d\nwant: %d", have, want)
	}
	if have := rewrite.CountPlaceholders(text, opts); have != p.NumArgs {
		return 0, fmt.Errorf("placeholders of the text\nhave: %d\nwant: %d", p.NumArgs, have)
	}
	if _, err := tidb.CheckKeys(text, opts, p, keysFor(p)); err != nil {
		return 0, fmt.Errorf("with literals: %w", err)
	}
	return tidb.CheckKeys(text, opts, p, nil)
}

// keysFor returns keys for a plan, with unusual strings for string keys.
func keysFor(p *rewrite.Plan) []rewrite.Keys {
	keys := make([]rewrite.Keys, len(p.Inserts))
	for s := range p.Splices() {
		if k := &keys[s.Insert]; s.HasKey && p.Inserts[s.Insert].Table.Strings {
			k.Values = append(k.Values, fmt.Sprintf("it's \\%d", k.Len()))
		} else if s.HasKey {
			k.Ints = append(k.Ints, int64(k.Len()+1))
		}
	}
	return keys
}

// wrapped matches the SQL around an expression that is the key.
var wrapped = regexp.MustCompile("^(SUBSTRING_INDEX\\(|COALESCE\\(CAST|\\(SELECT IF\\(|\\) AS DECIMAL\\(20\\)\\)|\\) AS `shardkey_given`)")

// checkSplices checks that a plan changes its statement only by the known forms of keys and
// columns.
func checkSplices(p *rewrite.Plan) error {
	for s := range p.Splices() {
		in := &p.Inserts[s.Insert]
		column := regexp.QuoteMeta(sqltoken.QuoteIdentifier(in.Table.Key))
		form := "^(, " + column + "| ?\\(?(`([^`]|``)+`(, )?)+\\)?|, `shardkey_key`|(~0 \\+ 1(, )?)+|, .*" + column + " = IF\\(.*)$"
		if s.HasKey {
			form = "^(, )?(" + column + " = )?(LAST_INSERT_ID\\(\\?\\)|\\? ?)$"
		}
		if s.Before == "" && !s.HasKey {
			return fmt.Errorf("an empty splice at %d", s.At)
		}
		if wrapped.MatchString(s.Before) {
			continue
		}
		text := s.Before + strings.Repeat("?", map[bool]int{true: 1}[s.HasKey]) + s.After
		if !regexp.MustCompile(form).MatchString(text) {
			return fmt.Errorf("splice\nhave: %q\nwant: %s", text, form)
		}
	}
	return nil
}

// TestGolden_secondReader checks the plans of all golden files, and that the
// second parser knows most of them.
func TestGolden_secondReader(t *testing.T) {
	seen := map[tidb.Outcome]int{}
	for _, c := range rewrite.GoldenCases(t) {
		for _, report := range []bool{false, true} {
			c.Options.ReportKeys = report
			plan, err := rewrite.Parse(c.Text, c.Options)
			if err != nil {
				continue
			}
			outcome, err := checkPlan(c.Text, c.Options, plan)
			if err != nil {
				t.Errorf("%s\n%s\n%v", c.Title, c.Text, err)
			}
			if len(plan.Inserts) > 0 {
				seen[outcome]++
			}
		}
	}
	if agreed, unknown := seen[tidb.OutcomeAgreed], seen[tidb.OutcomeUnknown]; agreed < 2*unknown {
		t.Errorf("have: %d agreed, %d unknown\nwant: most are known", agreed, unknown)
	}
}
