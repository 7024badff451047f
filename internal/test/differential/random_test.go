package differential

import (
	"cmp"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver"
	testmust "github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// seeds are the seeds of every run: the first ones, and those that once found a bug. make soak
// uses others.
var seeds = []uint64{1, 2, 3, 4}

// The number of worlds of a seed, and the number of statements that are compared in each.
const (
	worldsPerSeed      = 12
	statementsPerWorld = 166
)

// TestDifferential_random runs random statements on both sides. A failure reports the seed that
// reproduces it.
func TestDifferential_random(t *testing.T) { onEach(t, testDifferential_random) }

func testDifferential_random(t *testing.T) {
	sum := newTally(t)
	for _, seed := range seeds {
		runWorlds(t, sum, seed, worldsPerSeed)
	}
	sum.report(t)
}

// TestDifferential_soak runs TestDifferential_random with new seeds: for the duration of
// SHARDKEY_SOAK, or until it has compared as many statements if that is a number. With SHARDKEY_SEED
// the seeds count from that one; without SHARDKEY_SOAK it is the only one.
func TestDifferential_soak(t *testing.T) {
	limit, one := os.Getenv("SHARDKEY_SOAK"), os.Getenv("SHARDKEY_SEED")
	if limit == "" && one == "" {
		t.Skip("SHARDKEY_SOAK is not set: make soak runs this")
	}
	onEach(t, func(t *testing.T) { soakDifferential(t, limit, one) })
}

func soakDifferential(t *testing.T, limit, one string) {
	statements, notNumber := strconv.Atoi(limit)
	duration, err := time.ParseDuration(limit)
	if limit != "" && notNumber != nil && err != nil {
		t.Fatal(err)
	}
	sum, began := newTally(t), time.Now()
	sum.mostFound, sum.perWorld = 1000, 4*statementsPerWorld
	for round := uint64(0); ; round++ {
		seed := rand.Uint64() >> 1
		if one != "" {
			seed = round + must(strconv.ParseUint(one, 10, 64))(t)
		}
		runWorlds(t, sum, seed, worldsPerSeed)
		if limit == "" || sum.compared >= statements && time.Since(began) > duration {
			break
		}
	}
	sum.report(t)
}

// runWorlds compares random statements in random worlds.
func runWorlds(t *testing.T, sum *tally, seed uint64, worlds int) {
	t.Helper()
	for i := range worlds {
		t.Run(fmt.Sprintf("%d/%d", seed, i), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			newWorld(r, featuresOf(t), i).run(t, r, sum)
		})
	}
}

// run compares random statements in the world. It ends early after some differences.
func (w *world) run(t *testing.T, r *rand.Rand, sum *tally) {
	t.Helper()
	d := w.open(t, sum)
	defer d.close()
	g := newGenerator(r, w)
	most := sum.compared + sum.perWorld
	for cases := 0; sum.compared < most && cases < sum.perWorld; cases++ {
		c := g.statements()
		diff := d.run(c.steps)
		if diff != nil {
			w.judge(t, d, cmp.Or(d.again(c.steps), diff))
		}
	}
}

// again runs statements again, to find the one after which the tables differ. It counts nothing.
func (d *duel) again(steps []step) *difference {
	compared, refused := d.tally.compared, maps.Clone(d.tally.refused)
	d.each = true
	diff := d.run(steps)
	d.each, d.tally.compared, d.tally.refused = false, compared, refused
	return diff
}

// judge counts a difference, and fails the test if it isn't known.
func (w *world) judge(t *testing.T, d *duel, diff *difference) {
	t.Helper()
	if class := knownClass(w, diff); class != "" {
		d.tally.known[class]++
		return
	}
	class := diff.class()
	if d.tally.found[class]++; d.tally.found[class] > 1 || len(d.tally.found) > d.tally.mostFound {
		t.Fail()
		return
	}
	w.minimize(t, d, diff)
}

// place returns the databases for the shape, which live until the end of the whole test.
func (sum *tally) place(t *testing.T, w *world) *place {
	t.Helper()
	p := sum.places[w.shape.name]
	if p == nil {
		p = newPlace(sum.t)
		for i := range p.seconds {
			p.seconds[i] = must(mysql.ParseDSN(testserver.Database(sum.t)))(t).DBName
		}
		for _, s := range p.open(t, "", w.shape) {
			createCommon(t, s, w.features)
		}
		sum.places[w.shape.name] = p
	}
	return p
}

// open creates the world on both sides.
func (w *world) open(t *testing.T, sum *tally) *duel {
	t.Helper()
	d := &duel{t: t, world: w, sides: sum.place(t, w).open(t, w.params, w.shape), variant: w.variant, tally: sum, dirty: true, names: "utf8mb4"}
	if charset := setsCharset.FindStringSubmatch(w.params); charset != nil {
		d.names = charset[1]
	}
	d.open()
	if w.features.mariaDB {
		mustExec(t, d.control, "SET system_versioning_alter_history = KEEP")
	}
	for i := range d.sides {
		s := &d.sides[i]
		s.history = w.kind == versioned
		w.create(t, *s, d.control)
		if s.mode = w.mode; strings.Contains(w.params, "autocommit=0") {
			s.autocommit = "0"
		}
		s.tables = append(slices.Insert(s.tables, slices.Index(s.tables, "free"), "d"), "log") // triggers fill free and log
		s.tables = append(s.tables, "{second}.t")
		s.allKeys += " UNION ALL SELECT id, NULL FROM {db}.d UNION ALL SELECT id, s FROM {second}.t"
	}
	return d
}

// setsCharset matches a character set in the parameters of a DSN.
var setsCharset = regexp.MustCompile(`(?:charset|collation)=([a-z0-9]+)`)

// restart lets AUTO_INCREMENT start again, after explicit keys.
func (d *duel) restart() {
	name := d.sides[0].database
	d.dirty = false
	mustExec(d.t, d.control, fmt.Sprintf("ALTER TABLE %s.%s AUTO_INCREMENT = 1000000; ALTER TABLE %[1]s.d AUTO_INCREMENT = 4000000; "+
		"ALTER TABLE %[3]s.t AUTO_INCREMENT = 1700000", name, d.world.base(), d.sides[0].second))
}

// restore creates the world again, through the connectors, whose facts about tables end.
func (d *duel) restore() {
	for i, s := range d.sides {
		mustExec(d.t, d.conns[i], "COMMIT") // without autocommit, the comparison of the tables began a transaction
		d.through(i, func(conn *sql.Conn) { d.world.create(d.t, s, conn) })
	}
}

// through calls do with another connection of a side, and closes that.
func (d *duel) through(i int, do func(*sql.Conn)) {
	conn := must(d.sides[i].db.Conn(d.t.Context()))(d.t)
	do(conn)
	_ = conn.Raw(func(any) error { return sqldriver.ErrBadConn })
	_ = conn.Close()
}

// elsewhere executes a step of another session, or ends the connections.
func (d *duel) elsewhere(st step) {
	for i, s := range d.sides {
		text := s.expand(st.text)
		if strings.Contains(text, "{id}") {
			d.kill(i)
			continue
		}
		if _, err := d.runs[i].ExecContext(d.t.Context(), "COMMIT"); err != nil { // DDL would wait for the transaction
			d.lost = d.lost || isLost(err)
		}
		if st.by == unseen {
			_, _ = d.control.ExecContext(d.t.Context(), text)
		} else {
			d.through(i, func(conn *sql.Conn) { _, _ = conn.ExecContext(d.t.Context(), text) })
		}
	}
}

// kill ends the connection of a side, and waits until the server has done it.
func (d *duel) kill(i int) {
	id := strings.Trim(ReadAll(d.t, d.runs[i], "SELECT CONNECTION_ID() LIMIT 1"), "[]")
	if d.lost = d.lost || strings.Contains(id, "error"); d.lost {
		return
	}
	mustExec(d.t, d.control, "KILL "+id)
	for ReadAll(d.t, d.control, "SELECT id FROM information_schema.processlist WHERE id = "+id) != "" {
	}
}

// reconnect replaces lost connections.
func (d *duel) reconnect() {
	d.lost, d.named, d.varied, d.moved, d.temporary = false, false, false, false, false
	for i := range d.conns {
		if d.txs[i] != nil {
			_ = d.txs[i].Rollback()
		}
		_ = d.conns[i].Close()
	}
	d.connect()
}

// isLost reports whether a connection doesn't exist any more.
func isLost(err error) bool {
	return errors.Is(err, sqldriver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, sql.ErrConnDone) ||
		slices.Contains([]int{1927, 3169, 4031}, errorNumber(err))
}

// tally counts what the random statements did.
type tally struct {
	compared              int
	refused, known, found map[string]int
	mostFound             int // classes that are minimized
	perWorld              int // statements
	t                     *testing.T
	places                map[string]*place
}

func newTally(t *testing.T) *tally {
	return &tally{t: t, perWorld: statementsPerWorld, places: map[string]*place{},
		refused: map[string]int{}, known: map[string]int{}, found: map[string]int{}, mostFound: 5}
}

// changing matches the parts of a refusal that differ from statement to statement.
var changing = regexp.MustCompile("'[^']*'|\"[^\"]*\"|`[^`]*`|[0-9]+|near .*?:")

func (sum *tally) refuse(err error) {
	var e *driver.StatementError
	errors.As(err, &e)
	text := cmp.Or(e.Message, fmt.Sprint(e.Err))
	sum.refused[e.Reason+": "+changing.ReplaceAllString(text, "…")]++
}

// mostRefused is the part of the statements that shardkey may refuse, in percent.
const mostRefused = 20

// report logs the counts, and fails if shardkey refused too many statements.
func (sum *tally) report(t *testing.T) {
	t.Helper()
	refused := 0
	for _, n := range sum.refused {
		refused += n
	}
	t.Logf("%d generated statements compared with AUTO_INCREMENT, %d refused", sum.compared, refused)
	for what, counts := range map[string]map[string]int{"refused": sum.refused, "known difference": sum.known, "found": sum.found} {
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			t.Logf("%s: %d × %s", what, counts[name], name)
		}
	}
	if refused*100 > mostRefused*(sum.compared+refused) {
		t.Errorf("have: %d of %d statements refused; want: at most %d %%", refused, sum.compared+refused, mostRefused)
	}
}

// TestDocs_generatedStatements compares the numbers in the pages with the numbers of statements
// that the tests generate on each server, which the READMEs round.
func TestDocs_generatedStatements(t *testing.T) {
	all := worldsPerSeed * statementsPerWorld * len(seeds)
	thousands := (all + 500) / 1000
	for file, want := range map[string]string{
		"docs/understand/tests.md": fmt.Sprintf("| generated statements compared with AUTO_INCREMENT | %d | %d | %d |", all, all, all),
		"README.md":                fmt.Sprintf("[%d,000 generated statements]", thousands),
		"README.zh.md":             fmt.Sprintf(" %d,000 条语句", thousands),
	} {
		testmust.Contain(t, string(must(os.ReadFile("../../../"+file))(t)), want, file, "without")
	}
}
