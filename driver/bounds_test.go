package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/rewrite"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// countingSource makes the keys 0, 1, 2, … and notes how many were asked for at a time, and
// whether a turn was held.
type countingSource struct {
	next  int64
	sizes []int
	held  []bool
	of    turns
	err   error
	after func(n int)
}

func (s *countingSource) make(_ context.Context, n int) ([]int64, error) {
	if s.err != nil {
		return nil, s.err
	}
	keys := make([]int64, n)
	for i := range keys {
		keys[i] = s.next
		s.next++
	}
	s.sizes, s.held = append(s.sizes, n), append(s.held, len(s.of) > 0)
	if s.after != nil {
		s.after(n)
	}
	return keys, nil
}

// Draws without success grow, up to a batch of 1,024, and end after 4,096 keys and eight for each
// target. From 256 keys on the draw has its turn.
func TestDraw_noFit(t *testing.T) {
	for _, tt := range []struct {
		targets, first, last int
	}{
		{0, 1, 4096}, {1, 1, 5120}, {200, 201, 5704}, {2000, 1024, 20480},
	} {
		var d draw[int64]
		d.name = "t"
		d.start(func(int64) bool { return false }, tt.targets)
		d.add(0)
		of := make(turns, 1)
		from := &countingSource{of: of}
		err := d.run(t.Context(), of, make([]int64, 1), from)
		var noFit *noFitError
		if !errors.As(err, &noFit) || !errors.Is(err, spi.ErrNoFittingKey) || noFit.drawn != tt.last || noFit.table != "t" {
			t.Errorf("one of %d\nhave: %v\nwant: without success after %d", tt.targets, err, tt.last)
		}
		if len(of) != 0 {
			t.Error("the turn is not released")
		}
		drawn := 0
		for i, n := range from.sizes {
			want := min(max(tt.first, drawn), maxBatch)
			if i == 0 {
				want = tt.first
			}
			if n != want {
				t.Errorf("one of %d, draw %d after %d keys\nhave: %d\nwant: %d", tt.targets, i, drawn, n, want)
			}
			drawn += n
			if held := drawn > maxFree; from.held[i] != held {
				t.Errorf("one of %d, %d keys\nhave: a turn: %v\nwant: %v", tt.targets, drawn, from.held[i], held)
			}
		}
		if text := err.Error(); !strings.Contains(text, fmt.Sprintf("none of the last %d keys belongs in t", tt.last)) {
			t.Errorf("have: %s", text)
		}
	}
	if text := (&noFitError{table: "t"}).Error(); !strings.Contains(text, "earlier attempt") {
		t.Errorf("have: %s\nwant: the earlier attempt", text)
	}
}

// A draw asks for what its longest lot needs, an odd number. What is found begins the count
// without success again, and nothing more is asked for when all rows have keys.
func TestDraw_batches(t *testing.T) {
	for _, tt := range []struct{ rows, targets, want int }{{1, 1, 1}, {2, 1, 3}, {1, 2, 3}, {3, 4, 13}, {1000, 2, 1024}, {512, 2, 1024}, {511, 2, 1023}} {
		var d draw[int64]
		d.start(nil, tt.targets)
		for i := range tt.rows {
			d.add(i)
		}
		if have := d.batch(); have != tt.want {
			t.Errorf("%d rows, one of %d\nhave: %d\nwant: %d", tt.rows, tt.targets, have, tt.want)
		}
	}
	// One in 3,000 belongs: more than 4,096 are without success altogether, but never at once.
	var d draw[int64]
	d.start(func(key int64) bool { return key%3000 == 2999 }, 1)
	to := make([]int64, 4)
	for i := range to {
		d.add(i)
	}
	of := make(turns, 1)
	from := &countingSource{of: of}
	if err := d.run(t.Context(), of, to, from); err != nil || !slices.Equal(to, []int64{2999, 5999, 8999, 11999}) {
		t.Errorf("have: %v, %v\nwant: every 3,000th", to, err)
	}
	from = &countingSource{}
	if err := d.run(t.Context(), of, nil, from); err != nil || from.sizes != nil {
		t.Errorf("without rows\nhave: %v, asked for %v\nwant: nothing", err, from.sizes)
	}
	away := errors.New("away")
	if err := d.run(t.Context(), of, to[:1], &countingSource{err: away}); !errors.Is(err, away) || len(of) != 0 {
		t.Errorf("have: %v\nwant: %v", err, away)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var none draw[int64]
	none.start(func(int64) bool { return false }, 1)
	none.add(0)
	from = &countingSource{after: func(int) { cancel() }}
	if err := none.run(ctx, of, to[:1], from); !errors.Is(err, context.Canceled) || len(from.sizes) != 1 {
		t.Errorf("have: %v after %v\nwant: the context's error after one", err, from.sizes)
	}
}

// decoder is a generator whose keys show their worker: the thousands.
type decoder struct{ spi.KeyGenerator }

func (decoder) DecodeKey(key int64) (spi.KeyParts, error) {
	if key < 0 {
		return spi.KeyParts{}, errors.New("no key")
	}
	return spi.KeyParts{WorkerID: key / 1000}, nil
}

// A draw without success is remembered if one worker made its keys.
func TestShard_noteHopeless(t *testing.T) {
	for _, tt := range []struct {
		first, last int64
		want        bool
	}{{1000, 1999, true}, {1999, 2000, false}, {-1, 0, false}, {-1, -2, false}, {0, 5, true}} {
		x := &shard{table: &table{rule: &rule.Table{Generator: decoder{}}}}
		x.noteMisfit(tt.first, tt.last)
		if noted := x.misfit.Load(); (noted != nil) != tt.want || noted != nil && *noted != tt.first/1000 {
			t.Errorf("%d to %d\nhave: %v\nwant: %v", tt.first, tt.last, noted, tt.want)
		}
	}
	x := &shard{table: &table{rule: &rule.Table{}}}
	if x.noteMisfit(0, 5); x.misfit.Load() != nil {
		t.Error("keys that show no worker are remembered")
	}
}

// Rows of one gene are one lot, of which one of so many keys is as there are genes.
func TestGeneRows_lots(t *testing.T) {
	for _, n := range []int{1, 2} {
		r := (&table{gene: &rule.Gene{Bits: 4}}).newGeneRows("t", n)
		for _, gene := range []int64{0, 5, 0, 15, 5} {
			r.add(gene)
		}
		lots := 3
		if n == 1 {
			lots = 5 // each row its own, where one was expected
		}
		if len(r.lots) != lots || r.targets != 16 || r.rows != 5 {
			t.Errorf("%d rows expected\nhave: %d lots of one of %d, %d rows\nwant: %d, 16, 5", n, len(r.lots), r.targets, r.rows, lots)
		}
		for key, want := range map[int64]bool{0: true, 16: true, 1: false, -16: false, 5: false} {
			if have := r.lots[0].belongs(key); have != want {
				t.Errorf("gene 0 of %d\nhave: %v\nwant: %v", key, have, want)
			}
		}
	}
}

// floats are values where a column of integers holds them as they are.
func TestShardValue_floats(t *testing.T) {
	for value, want := range map[driver.Value]any{
		0.0: int64(0), math.Copysign(0, -1): nil, 5.0: int64(5), -5.0: int64(-5), 0.5: nil, math.NaN(): nil,
		1e15 - 1: int64(1e15 - 1), 1e15: nil, -1e15 + 1: int64(-1e15 + 1), -1e15: nil, math.Inf(1): nil, math.Inf(-1): nil,
		true: int64(1), false: int64(0), int64(7): int64(7), "x": "x", nil: nil,
	} {
		have, ok := shardValue(value)
		if ok != (want != nil || value == nil) || ok && have != want {
			t.Errorf("%v\nhave: %v, %v\nwant: %v", value, have, ok, want)
		}
	}
}

// The first generated key is negative below 0, not at 0.
func TestInsertion_isNegative(t *testing.T) {
	for key, want := range map[int64]bool{-1: true, 0: false, 1: false} {
		for _, keys := range []rewrite.Keys{{Ints: []int64{key, -5}}, {Values: []any{key, int64(-5)}}} {
			if have := (&insertion{keys: keys}).isNegative(); have != want {
				t.Errorf("%v\nhave: %v\nwant: %v", keys, have, want)
			}
		}
	}
	if (&insertion{keys: rewrite.Keys{Values: []any{"-1"}}}).isNegative() {
		t.Error("a string is negative")
	}
}

// What LAST_INSERT_ID() must return after an insert, and whether the server has it, by what
// the statement was and came to. 7 is the first generated key, 3 what it was before, and 9
// the insert id that the server reported.
func TestExecution_keepLastID(t *testing.T) {
	type in = rewrite.Insert
	known := func(id uint64, synced bool) (l session.LastID) {
		if l.Set(id); synced {
			l.Told(id)
		}
		return l
	}
	var lost session.LastID
	lost.Lost()
	for name, tt := range map[string]struct {
		in       in
		carries  bool
		text     bool // the keys are strings
		verdict  verdict
		inserted bool
		want     session.LastID
	}{
		"inserted":                          {in{}, false, false, allInserted, true, known(7, false)},
		"inserted, a string":                {in{}, false, true, allInserted, true, known(3, true)},
		"inserted none":                     {in{}, false, false, noneInserted, false, known(3, true)},
		"carried":                           {in{}, true, false, allInserted, true, known(7, true)},
		"carried, another was first":        {in{}, true, false, unclear, false, known(3, false)},
		"carried, none inserted":            {in{}, true, false, noneInserted, false, known(3, false)},
		"carried, none inserted, IGNORE":    {in{Ignore: true}, true, false, noneInserted, false, known(3, false)},
		"mentions it":                       {in{MentionsLastID: true}, false, false, allInserted, true, known(7, false)},
		"mentions it, inserted none":        {in{MentionsLastID: true}, false, false, noneInserted, false, lost},
		"mentions it, a string":             {in{MentionsLastID: true}, false, true, allInserted, true, lost},
		"guarded, exists":                   {in{Guarded: true, OnDuplicate: true}, false, false, oneExists, false, known(3, false)},
		"guarded, inserted":                 {in{Guarded: true, OnDuplicate: true}, false, false, allInserted, true, known(7, false)},
		"guarded, none inserted":            {in{Guarded: true, OnDuplicate: true}, false, false, noneInserted, false, known(3, false)},
		"guarded, carried, inserted":        {in{Guarded: true, OnDuplicate: true}, true, false, allInserted, true, known(7, false)},
		"upsert, carried, none inserted":    {in{OnDuplicate: true}, true, false, noneInserted, false, known(3, false)},
		"upsert, inserted":                  {in{OnDuplicate: true}, false, false, allInserted, true, known(7, false)},
		"upsert, all, and no key was first": {in{OnDuplicate: true, Guarded: true}, false, false, allInserted, false, known(3, true)},
	} {
		var s session.Session
		s.LastID.Told(3)
		of := &table{}
		if of.setKind(rewrite.KindInteger); tt.text {
			of.setKind(rewrite.KindText)
		}
		k := &insertion{target: &target{in: &tt.in, table: of}, carries: tt.carries, keys: rewrite.Keys{Ints: []int64{7}}}
		(&execution{session: &s}).keepLastID(k, insertReport{id: 9}, tt.verdict, 7, tt.inserted)
		if s.LastID != tt.want {
			t.Errorf("%s\nhave: %+v\nwant: %+v", name, s.LastID, tt.want)
		}
	}
	// With an AUTO_INCREMENT column next to the key.
	var moved session.LastID
	moved.Told(3)
	moved.Moved()
	for name, tt := range map[string]struct {
		in      in
		carries bool
		verdict verdict
		want    session.LastID
	}{
		"inserted":              {in{}, false, allInserted, known(9, true)},
		"inserted, RETURNING":   {in{Returning: true}, false, allInserted, lost},
		"inserted, mentions it": {in{MentionsLastID: true}, false, allInserted, lost},
		"unclear":               {in{}, false, unclear, lost},
		"none":                  {in{}, false, noneInserted, known(3, true)},
		"none, carried":         {in{}, true, noneInserted, moved},
		"none, guarded":         {in{Guarded: true}, false, noneInserted, moved},
		"exists":                {in{}, false, oneExists, known(3, true)},
		"exists, guarded":       {in{Guarded: true}, false, oneExists, moved},
	} {
		var s session.Session
		s.LastID.Told(3)
		k := &insertion{target: &target{in: &tt.in}, carries: tt.carries}
		(&execution{session: &s}).keepBeside(k, insertReport{id: 9}, tt.verdict)
		if s.LastID != tt.want {
			t.Errorf("another column has the insert ID, %s\nhave: %+v\nwant: %+v", name, s.LastID, tt.want)
		}
	}
}

// A plan is cached up to its bounds, and the oldest ones leave when there are too many or
// they are too large together.
func TestPlanCache_bounds(t *testing.T) {
	c := newPlanCache(nil)
	p := &plan{Plan: new(rewrite.Plan)}
	size := p.Size()
	for n, want := range map[int]bool{maxLiteralBytes: true, maxLiteralBytes + 1: false} {
		if have := c.holds(planKey{text: strings.Repeat("x", n)}, p); have != want {
			t.Errorf("%d bytes without placeholders\nhave: %v\nwant: %v", n, have, want)
		}
	}
	with := func(n int) (planKey, *plan) {
		const prefix = "INSERT INTO t (a) VALUES (?"
		text := prefix + strings.Repeat(" ", n-len(prefix)-1) + ")"
		parsed, err := rewrite.Parse(text, rewrite.Options{Tables: func(string, string) *rewrite.Table { return &rewrite.Table{KeyColumn: "id"} }})
		if err != nil {
			t.Fatal(err)
		}
		return planKey{text: text}, &plan{Plan: parsed}
	}
	key, small := with(1000)
	overhead := small.Size() - 1000 // its Size counts the text that it may make
	n := (maxPlanBytes - overhead) / 2
	for _, more := range []int{0, 1} {
		key, p := with(n + more)
		if have, want := c.holds(key, p), len(key.text)+p.Size() <= maxPlanBytes; have != want || want != (more == 0) {
			t.Errorf("%d bytes and a plan of %d\nhave: %v\nwant: %v", len(key.text), p.Size(), have, more == 0)
		}
	}

	c.most = 3
	for i := range 5 {
		c.put(planKey{text: fmt.Sprint("text ", i)}, p)
	}
	c.put(planKey{text: "text 4"}, p) // again
	if entries, bytes := c.size(); entries != 3 || bytes != 3*(len("text 0")+size) {
		t.Errorf("have: %d plans of %d bytes\nwant: 3 of %d", entries, bytes, 3*(len("text 0")+size))
	}
	if c.get(planKey{text: "text 2"}) == nil || c.get(planKey{text: "text 1"}) != nil {
		t.Error("the oldest is not the one that left")
	}
	c.put(planKey{text: "text 5"}, p)
	if c.get(planKey{text: "text 2"}) == nil || c.get(planKey{text: "text 3"}) != nil {
		t.Error("one that was used left before one that was not")
	}
	for _, text := range []string{"text 2", "text 4", "text 5", "text 9"} {
		c.remove(planKey{text: text})
	}
	if entries, bytes := c.size(); entries != 0 || bytes != 0 {
		t.Errorf("have: %d plans of %d bytes\nwant: none", entries, bytes)
	}
	key, big := with(64 << 10)
	c.most = maxPlans
	each := len(key.text) + big.Size()
	for i := range maxPlansBytes/each + 3 {
		c.put(planKey{text: key.text[:len(key.text)-4] + fmt.Sprintf("%04d", i)}, big)
	}
	if entries, bytes := c.size(); entries != maxPlansBytes/each || bytes != entries*each {
		t.Errorf("have: %d plans of %d bytes\nwant: %d, as many as fit", entries, bytes, maxPlansBytes/each)
	}
}

// A result of each statement is used where the server gave one of each.
func TestExecution_perStatement(t *testing.T) {
	for _, tt := range []struct {
		statements         int
		affected, ids      []int64
		wantAffected, want []int64
	}{
		{2, []int64{1, 2}, []int64{7, 8}, []int64{1, 2}, []int64{7, 8}},
		{2, []int64{1, 2, 0}, []int64{7, 8, 0}, []int64{1, 2, 0}, []int64{7, 8, 0}},
		{2, []int64{2}, []int64{8}, []int64{unknownCount, 2}, []int64{0, 8}},
		{2, []int64{1, 2}, []int64{8}, []int64{unknownCount, 2}, []int64{0, 8}},
	} {
		e := &execution{plan: &plan{Plan: &rewrite.Plan{Statements: tt.statements}}}
		affected, ids := e.perStatement(results{tt.affected, tt.ids})
		if !slices.Equal(affected, tt.wantAffected) || !slices.Equal(ids, tt.want) {
			t.Errorf("%v, %v of %d statements\nhave: %v, %v\nwant: %v, %v", tt.affected, tt.ids, tt.statements, affected, ids, tt.wantAffected, tt.want)
		}
	}
}

// results are go-sql-driver's of several statements.
type results struct{ affected, ids []int64 }

var _ mysql.Result = results{}

func (r results) AllRowsAffected() []int64     { return r.affected }
func (r results) AllLastInsertIds() []int64    { return r.ids }
func (r results) RowsAffected() (int64, error) { return r.affected[len(r.affected)-1], nil }
func (r results) LastInsertId() (int64, error) { return r.ids[len(r.ids)-1], nil }

// A histogram's bounds grow from less than a microsecond to seconds, and a time counts for
// the first that it does not exceed.
func TestHistogram_bounds(t *testing.T) {
	if bounds[0] != 250*time.Nanosecond || bounds[len(bounds)-1] != 5*time.Second {
		t.Errorf("have: %v to %v\nwant: 250ns to 5s", bounds[0], bounds[len(bounds)-1])
	}
	for i, b := range bounds {
		if i > 0 && (b < 2*bounds[i-1] || b > 5*bounds[i-1]) {
			t.Errorf("have: %v after %v\nwant: two to five times it", b, bounds[i-1])
		}
		for more, at := range map[time.Duration]int{-1: i, 0: i, 1: i + 1} {
			var h histogram
			h.add(b + more)
			if s := h.stats(); s.Counts[at] != 1 || s.Sum != b+more || len(s.Counts) != len(bounds)+1 {
				t.Errorf("%v\nhave: %+v\nwant: counted in %d", b+more, s, at)
			}
		}
	}
}

// A connection remembers its last eight statements, none of them twice, but no long one.
func TestRecentTexts_bounds(t *testing.T) {
	var r recentTexts
	plans := map[string]*plan{}
	texts := []string{"a", "b", "a", "c", "d", "e", "f", "g", "h", strings.Repeat("x", maxRecent), strings.Repeat("x", maxRecent+1), ""}
	for _, text := range texts {
		plans[text] = new(plan)
		r.add(text, plans[text])
	}
	for i, text := range texts {
		want := text != "a" && len(text) <= maxRecent && text != ""
		if have, known := r.find(text); known != want || want && have != plans[text] {
			t.Errorf("statement %d of %d bytes\nhave: %v\nwant: %v", i, len(text), known, want)
		}
	}
	for i := range 100 {
		r.add(fmt.Sprint(i), nil)
	}
	for i := range 100 {
		if _, known := r.find(fmt.Sprint(i)); known != (i >= 92) {
			t.Errorf("statement %d of 100\nhave: %v", i, known)
		}
	}
	if _, known := r.find(""); known {
		t.Error("no statement is known")
	}
}

// A connection that closes its own objects returns their error.
func TestConn_closeReturnsErrors(t *testing.T) {
	c := must(must(NewConnector(&fakedb.Server{}, testRule(t)))(t).Connect(t.Context()))(t).(*conn)
	own := errors.New("own")
	c.closeWith(func() error { return own })
	if err := c.Close(); !errors.Is(err, own) {
		t.Errorf("have: %v\nwant: %v", err, own)
	}
}

// A log line of a refused statement has the attributes that are known.
func TestRefusals_attributes(t *testing.T) {
	for _, tt := range []struct {
		e    StatementError
		want []string
	}{
		{StatementError{Reason: "r"}, []string{"reason"}},
		{StatementError{Reason: "r", Table: "t", Row: 1, Column: "c", Line: 1, Char: 1, Near: "n"}, []string{"char", "column", "line", "near", "reason", "row", "table"}},
	} {
		var log jsonLog
		(&refusals{seen: map[refusedKey]*refusedLog{}}).log(log.logger(), &tt.e)
		line := log.take(t)[0]
		for _, name := range []string{"level", "msg", "time"} {
			delete(line, name)
		}
		if have := slices.Sorted(maps.Keys(line)); !slices.Equal(have, tt.want) {
			t.Errorf("have: %q\nwant: %q", have, tt.want)
		}
	}
}

// A statement may have 65,535 placeholders. With more of them the keys are literals.
func TestPlaceholders_limit(t *testing.T) {
	for _, tt := range []struct {
		rows     int
		literals bool
	}{{base.MaxPlaceholders / 3, false}, {base.MaxPlaceholders/3 + 1, true}} {
		s := &fakedb.Server{}
		c := must(NewConnector(s, generatorRule(t, new(counter), "t.id"), Config{Server: "other"}))(t)
		conn := must(c.Connect(t.Context()))(t).(*conn)
		query := "INSERT INTO t (a, b) VALUES (?, ?)" + strings.Repeat(", (?, ?)", tt.rows-1)
		args := make([]driver.Value, 2*tt.rows)
		if _, err := conn.Exec(query, args); err != nil {
			t.Errorf("%d rows: %v", tt.rows, err)
			continue
		}
		sent := s.Sent[len(s.Sent)-1]
		if have := len(sent.Args) == len(args); have != tt.literals {
			t.Errorf("%d rows, %d arguments\nhave: literals: %v\nwant: %v", tt.rows, len(sent.Args), have, tt.literals)
		}
		if _, err := conn.Prepare(query); errors.Is(err, ErrTooManyPlaceholders) != tt.literals {
			t.Errorf("prepared, %d rows\nhave: %v\nwant: too many: %v", tt.rows, err, tt.literals)
		}
		check(t, conn.Close())
	}
	// Arguments of the program alone may be too many, which the error does not call keys.
	s := &fakedb.Server{Kind: fakedb.Minimal}
	conn := must(must(NewConnector(s, generatorRule(t, new(counter), "t.id"), Config{Server: "other"}))(t).Connect(t.Context()))(t).(*conn)
	_, err := conn.Exec("INSERT INTO t (a) VALUES (?)"+strings.Repeat(", (?)", base.MaxPlaceholders), make([]driver.Value, base.MaxPlaceholders+1))
	if !errors.Is(err, ErrTooManyPlaceholders) || !strings.Contains(err.Error(), "65536 of the statement and 0 ") {
		t.Errorf("have: %v\nwant: 65536 of the statement", err)
	}
}

// countedStmt is a statement in which the server found another number of placeholders.
type countedStmt struct {
	driver.Stmt
	inputs int
}

func (s countedStmt) Close() error  { return nil }
func (s countedStmt) NumInput() int { return s.inputs }

// A statement in which the server finds another number of placeholders is refused.
func TestPlaceholders_foundByTheServer(t *testing.T) {
	for inputs, want := range map[int]bool{-1: true, 0: false, 1: false, 2: true, 3: false} {
		s := &fakedb.Server{Stmt: func(string) (driver.Stmt, error) { return countedStmt{inputs: inputs}, nil }}
		conn := must(must(NewConnector(s, generatorRule(t, new(counter), "t.id"), Config{Server: "other"}))(t).Connect(t.Context()))(t).(*conn)
		if _, err := conn.Prepare("INSERT INTO t (a) VALUES (?)"); (err == nil) != want || err != nil && !errors.Is(err, ErrUnsupportedStatement) {
			t.Errorf("%d placeholders\nhave: %v\nwant: prepared: %v", inputs, err, want)
		}
	}
}

// An INSERT … SELECT sends as many rows at once as a statement has placeholders for.
func TestInsertSelect_placeholders(t *testing.T) {
	const columns, tail = 19, 15 // with the key, (65,535 - 15) / 20 are 3,276 rows
	names, rows := make([]string, columns), &fakedb.Rows{Values: make([][]driver.Value, 3279)}
	for i := range names {
		names[i] = fmt.Sprint("c", i)
	}
	rows.Names = names
	for i := range rows.Values {
		rows.Values[i] = make([]driver.Value, columns)
	}
	s := &fakedb.Server{Query: func(query string) (driver.Rows, error) {
		if strings.Contains(query, "FROM src") {
			return rows, nil
		}
		return nil, driver.ErrSkip
	}}
	conn := must(must(NewConnector(s, generatorRule(t, new(counter), "t.id"), Config{Server: "other"}))(t).Connect(t.Context()))(t).(*conn)
	list := strings.Join(names, ", ")
	_, err := conn.Exec("INSERT INTO t ("+list+") SELECT "+list+" FROM src ON DUPLICATE KEY UPDATE c1 = ?"+strings.Repeat(" + ?", tail-1), make([]driver.Value, tail))
	noError(t, err)
	var have []int
	for _, sent := range s.Sent {
		if strings.HasPrefix(sent.Query, "INSERT") {
			have = append(have, (len(sent.Args)-tail)/(columns+1))
		}
	}
	if !slices.Equal(have, []int{3276, 3}) {
		t.Errorf("have: %d rows\nwant: 3276 and 3", have)
	}
}

// The keys of several INSERTs are literals, too, where one has them in its arguments.
func TestExecution_literalKeysOfSeveral(t *testing.T) {
	plan := must(rewrite.Parse("INSERT INTO t (a) VALUES (1); INSERT INTO t (id, a) VALUES (?, 1), (5, 2), (0, 3); INSERT INTO t (a) VALUES (2)", rewrite.Options{
		Tables: func(_, _ string) *rewrite.Table {
			return &rewrite.Table{KeyColumn: "id", Kind: rewrite.KindInteger}
		},
	}))(t)
	e := &execution{more: make([]insertion, 2)}
	for i := range 3 {
		e.insert(i).target, e.insert(i).keys = &target{in: &plan.Inserts[i]}, rewrite.Keys{Ints: []int64{int64(10 * i)}}
	}
	e.insert(1).filled = make([]bool, 3)
	have := e.fillKeys(nil)
	if len(have) != 3 || have[0].At(0) != int64(0) || have[1].Len() != 1 || have[1].At(0) != int64(10) || have[2].At(0) != int64(20) {
		t.Errorf("have: %+v\nwant: 0, 10, 20", have)
	}
	if n := e.keyCount(); n != 3 {
		t.Errorf("have: %d keys\nwant: 3", n)
	}
}

// A row that changed nothing does not count, where the server reports it as affected.
func TestInsertion_changed(t *testing.T) {
	upsert := func(rows int, s ...rowState) *insertion {
		in := must(rewrite.Parse("INSERT INTO t (a) VALUES (1)"+strings.Repeat(", (1)", rows-1)+" ON DUPLICATE KEY UPDATE a = 1", rewrite.Options{
			Tables: func(_, _ string) *rewrite.Table { return &rewrite.Table{KeyColumn: "id"} },
		}))(t).Inserts[0]
		return &insertion{target: &target{in: &in}, rows: &rowStates{states: s}}
	}
	const no, yes = rowNotInserted, rowInserted
	for _, tt := range []struct {
		k         *insertion
		affected  int64
		foundRows bool
		want      bool
	}{
		{upsert(1, no), 0, false, false}, {upsert(1, no), 1, false, false}, {upsert(1, no), 2, false, true},
		{upsert(1, no), 1, true, false}, {upsert(1, no), 2, true, true}, {upsert(1, yes), 1, true, true},
		{upsert(2, no, no), 1, false, true}, {upsert(2, no, no), 2, true, false}, {upsert(2, no, no), 3, true, true},
		{upsert(2, no, yes), 2, true, true}, {upsert(2, yes, yes), 0, true, false},
	} {
		if have := tt.k.changed(insertReport{affected: tt.affected}, tt.foundRows); have != tt.want {
			t.Errorf("%v, affected %d, with clientFoundRows: %v\nhave: %v\nwant: %v", tt.k.rows.states, tt.affected, tt.foundRows, have, tt.want)
		}
	}
}

// A plan whose columns match the statement is cached, another is not.
func TestPlanCache_plansWithColumns(t *testing.T) {
	s := &fakedb.Server{Columns: [][2]string{{"id", "bigint"}, {"a", "int"}}}
	db, c := openFake(t, s, generatorRule(t, &testGenerator{}, "t.id"), Config{Server: "other"})
	mustExec(t, db, "INSERT INTO t (a) VALUES (?)", 1) // the kind of keys is known now
	for query, want := range map[string]int{"INSERT INTO t VALUES (NULL, ?)": 1, "INSERT INTO t VALUES (NULL, ?, 3)": 0} {
		before, _ := c.rules.Load().plans.size()
		mustExec(t, db, query, 1)
		if after, _ := c.rules.Load().plans.size(); after-before != want {
			t.Errorf("%s\nhave: %d plans more\nwant: %d", query, after-before, want)
		}
	}
}

// Exactly as many bytes of plans as the limit are kept, and the hashes of as many statements.
func TestPlanCache_full(t *testing.T) {
	c, p := newPlanCache(nil), &plan{Plan: new(rewrite.Plan)}
	key := planKey{text: "text"}
	c.bytes = maxPlansBytes - len(key.text) - p.Size()
	if c.put(key, p); c.get(key) == nil {
		t.Error("a plan that just fits is dropped")
	}
	for i := range maxSeen - 1 {
		c.seen[uint64(i)] = struct{}{}
	}
	delete(c.seen, key.hash())
	delete(c.seen, planKey{text: "other"}.hash())
	for len(c.seen) < maxSeen-1 {
		c.seen[^uint64(len(c.seen))] = struct{}{}
	}
	if c.see(key); !c.isSeen(key) || len(c.seen) != maxSeen {
		t.Errorf("have: %d statements\nwant: %d", len(c.seen), maxSeen)
	}
	if c.see(planKey{text: "other"}); len(c.seen) != 1 {
		t.Errorf("have: %d statements\nwant: 1, after the others were dropped", len(c.seen))
	}
}

// fixedClock is a clock that stands.
type fixedClock struct{ spi.Clock }

func (fixedClock) Now() time.Time { return time.Unix(5, 0) }

// A connector reads its own clock.
func TestConnector_now(t *testing.T) {
	_, c := idleDB(t, testRule(t), WithClock(fixedClock{}))
	if have := c.now(); !have.Equal(time.Unix(5, 0)) {
		t.Errorf("have: %v\nwant: the time of its clock", have)
	}
}

// The name of a variable has letters, digits, '_', '-' and '.'.
func TestIsVariable(t *testing.T) {
	for c := range rune(0x100) {
		want := strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.", c)
		if have := isVariable("x" + string(c)); have != want {
			t.Errorf("%q\nhave: %v\nwant: %v", c, have, want)
		}
	}
	if isVariable("") {
		t.Error("no name is a variable")
	}
}

// Parameters are separated from the rest of a DSN, also in one that is wrong.
func TestSplitQuery_bounds(t *testing.T) {
	for _, tt := range []struct {
		text, head, query string
		found             bool
	}{
		{"/db?a=1", "/db", "a=1", true}, {"/db", "/db", "", false}, {"?shardkeyRule=x", "", "shardkeyRule=x", true},
		{"?a=1", "?a=1", "", false}, {"", "", "", false}, {"db?shardkeyRule=x", "db", "shardkeyRule=x", true},
	} {
		if head, query, found := splitQuery(tt.text); head != tt.head || query != tt.query || found != tt.found {
			t.Errorf("%q\nhave: %q, %q, %v\nwant: %q, %q, %v", tt.text, head, query, found, tt.head, tt.query, tt.found)
		}
	}
	for name, want := range map[string]bool{"shardkey": true, "ShardKeyRule": true, "shardke": false, "rule": false, "": false} {
		if have := isOurs(name); have != want {
			t.Errorf("%q\nhave: %v\nwant: %v", name, have, want)
		}
	}
}

// An error names three tables, and the number of the others.
func TestNotReadyError_tables(t *testing.T) {
	for n, want := range map[int]bool{1: false, 3: false, 4: true} {
		text := (&NotReadyError{Generator: "g", Tables: []string{"a", "b", "c", "d"}[:n], Err: errors.New("e")}).Error()
		if have := strings.Contains(text, "more"); have != want {
			t.Errorf("%d tables\nhave: %s\nwant: others: %v", n, text, want)
		}
	}
}

// The version is also that of the first module which the program requires.
func TestVersion_ofTheFirstModule(t *testing.T) {
	info := &debug.BuildInfo{Deps: []*debug.Module{{Path: modulePath, Version: "v1.2.3"}}}
	if have := versionOf(info); have != "v1.2.3" {
		t.Errorf("have: %q\nwant: v1.2.3", have)
	}
}

// Debug lines of several INSERTs count their keys, and those of failed ones have the error's type.
func TestLogSent_attributes(t *testing.T) {
	var log jsonLog
	s := &fakedb.Server{}
	db, _ := openFake(t, s, generatorRule(t, new(counter), "t.id", "u.id"), Config{Server: "other"}, WithLogger(log.debugLogger()))
	mustExec(t, db, "INSERT INTO t (a) VALUES (1), (2); INSERT INTO u (a) VALUES (1)")
	s.Faults = []fakedb.Fault{{At: "INSERT", Err: fakedb.Err}}
	if _, err := db.Exec("INSERT INTO t (a) VALUES (1)"); !errors.Is(err, fakedb.Err) {
		t.Errorf("have: %v", err)
	}
	var keys, errorTypes []any
	for _, line := range log.take(t) {
		keys, errorTypes = append(keys, line["keys"]), append(errorTypes, line["error_type"])
	}
	if !slices.Equal(keys, []any{3.0, 1.0}) || errorTypes[0] != nil || errorTypes[1] == nil {
		t.Errorf("have: %v keys, errors %v\nwant: 3 keys, and 1 with an error", keys, errorTypes)
	}
}

// NextKeys returns up to a million keys at once.
func TestNextKeys_most(t *testing.T) {
	_, c := idleDB(t, generatorRule(t, new(shardCounter), "t.id"))
	for n, want := range map[int]bool{0: false, 1: true, maxNextKeys: true, maxNextKeys + 1: false} {
		if keys, err := c.NextKeys(t.Context(), "t", n); (err == nil) != want || want && len(keys) != n {
			t.Errorf("%d keys\nhave: %d, %v", n, len(keys), err)
		}
	}
}

// A rule that replaces another logs nothing if the generators of both are closed without errors.
func TestConnector_setRuleLogsNothing(t *testing.T) {
	var log jsonLog
	_, c := idleDB(t, testRule(t), WithLogger(log.logger()))
	if noError(t, takeRule([]*Connector{c}, testRule(t))); log.Len() > 0 {
		t.Errorf("have: %s\nwant: nothing", log.String())
	}
}

// A plan without a connection assumes the DSN's sql_mode, or a server's default.
func TestPlan_modeOfTheDSN(t *testing.T) {
	for dsn, want := range map[string]bool{"": false, "/app": false, "/app?sql_mode=%27ANSI_QUOTES%27": true} {
		_, c := idleDB(t, generatorRule(t, new(shardCounter), "t.id"))
		c.host.DSN = spi.NewSecret(dsn)
		p, err := c.Plan("INSERT INTO t (id) VALUES (0)")
		noError(t, err)
		if have := strings.Contains(strings.Join(p.Assumes, "; "), "ANSI_QUOTES"); have != want {
			t.Errorf("%q\nhave: %q\nwant: ANSI_QUOTES: %v", dsn, p.Assumes, want)
		}
	}
}

// The message about a value without shard bits shows the cause once.
func TestTable_geneOfMessage(t *testing.T) {
	r := geneRule(t, "", "number")
	one := slices.IndexFunc(r.Tables(), func(t rule.Table) bool { return t.Logical == "t_one" })
	_, err := (&table{rule: &r.Tables()[one]}).geneOf(&rewrite.Insert{Name: "t_one"}, 0, "x")
	var place *rule.PlaceError
	if !errors.As(err, &place) || !strings.Contains(err.Error(), "no shard bits: "+place.Err.Error()) {
		t.Errorf("have: %v\nwant: the cause %v", err, place)
	}
}

// A rule in a variable that looks like a path is refused with both facts.
func TestEnvRule_path(t *testing.T) {
	t.Setenv("SHARDKEY_TEST_PATH", "/etc/rule.yaml")
	_, err := envRule("SHARDKEY_TEST_PATH")
	if err == nil || !strings.Contains(err.Error(), "variable SHARDKEY_TEST_PATH") || !strings.Contains(err.Error(), "path") {
		t.Errorf("have: %v\nwant: the variable, and a path", err)
	}
}

// A description shows the limit of the statement cache if it is known, also if it is 0.
func TestConnector_describesTheLimit(t *testing.T) {
	_, c := idleDB(t, testRule(t))
	if have := c.Describe(); strings.Contains(have, "kept of") {
		t.Errorf("have: %s\nwant: no limit", have)
	}
	conn := base.New(must((&fakedb.Server{}).Connect(t.Context()))(t), c.cache)
	if conn.SetLimit("0"); !strings.Contains(c.Describe(), "kept of 0") {
		t.Errorf("have: %s\nwant: a limit of 0", c.Describe())
	}
}

// A refused INSERT … SELECT shows the reason and the cause.
func TestInsertSelect_refuse(t *testing.T) {
	err := (&insertSelect{in: &rewrite.Insert{Name: "t"}}).refuse("the reason", errors.New("the cause"))
	if !strings.Contains(err.Error(), "the reason: the cause") {
		t.Errorf("have: %v\nwant: the reason and the cause", err)
	}
}
