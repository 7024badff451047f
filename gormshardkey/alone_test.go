package gormshardkey_test

import (
	"fmt"
	"strings"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/shardkey/shardkey/gormshardkey"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// Owner has a unique code, a column with a default of the database, and children of each kind.
type Owner struct {
	ID    int64
	Code  string
	Value int
	Made  string `gorm:"default:(uuid())"`
	Card  *Card
	Pages []Page
	Marks []*Mark `gorm:"many2many:owner_marks"`
}

type Card struct {
	ID      int64
	OwnerID int64
	Code    string
}

type Page struct {
	ID      int64
	OwnerID int64
	Code    string
}

type Mark struct {
	ID   int64
	Code string
}

var ownerTables = []string{
	"owners (id BIGINT AUTO_INCREMENT PRIMARY KEY, code VARCHAR(40) UNIQUE, value INT, made VARCHAR(40) DEFAULT (uuid()))",
	"cards (id BIGINT AUTO_INCREMENT PRIMARY KEY, owner_id BIGINT, code VARCHAR(40) UNIQUE)",
	"pages (id BIGINT AUTO_INCREMENT PRIMARY KEY, owner_id BIGINT, code VARCHAR(40) UNIQUE)",
	"marks (id BIGINT AUTO_INCREMENT PRIMARY KEY, code VARCHAR(40) UNIQUE)",
	"owner_marks (owner_id BIGINT, mark_id BIGINT, PRIMARY KEY (owner_id, mark_id))",
}

// creations are the ways to create rows of which some exist.
var creations = []struct {
	name   string
	create func(db *gorm.DB, owners any) *gorm.DB
}{
	{"DoNothing", createWith(clause.OnConflict{DoNothing: true})},
	{"UpdateAll", createWith(clause.OnConflict{UpdateAll: true})},
	{"DoUpdates", createWith(clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"value"})})},
	{"Assignments", createWith(clause.OnConflict{DoUpdates: clause.Assignments(map[string]any{"value": 9})})},
	{"IGNORE", createWith(clause.Insert{Modifier: "IGNORE"})},
	{"Save", func(db *gorm.DB, owners any) *gorm.DB { return db.Save(owners) }},
	{"UpdateAll, FullSave", func(db *gorm.DB, owners any) *gorm.DB {
		return createWith(clause.OnConflict{UpdateAll: true})(db.Session(&gorm.Session{FullSaveAssociations: true}), owners)
	}},
}

func createWith(c clause.Expression) func(*gorm.DB, any) *gorm.DB {
	return func(db *gorm.DB, owners any) *gorm.DB { return db.Clauses(c).Create(owners) }
}

// existing reports for each of a batch's rows whether it exists. A batch of one is a struct.
var existing = []struct {
	name string
	rows []bool
}{
	{"one existing", []bool{true}},
	{"one new", []bool{false}},
	{"existing", []bool{true, true, true}},
	{"new", []bool{false, false, false}},
	{"mixed", []bool{false, true, false, true, false}},
}

// children gives an owner its children. Some of them exist, without an owner.
var children = []struct {
	name string
	give func(o *Owner, i int)
}{
	{"no children", func(*Owner, int) {}},
	{"has one", func(o *Owner, i int) { o.Card = &Card{Code: o.Code + "c"} }},
	{"has many", func(o *Owner, i int) { o.Pages = []Page{{Code: o.Code + "p1"}, {Code: o.Code + "p2"}} }},
	{"many2many", func(o *Owner, i int) {
		o.Marks = []*Mark{{Code: o.Code + "m1"}, {Code: o.Code + "m2"}, {Code: o.Code + "m3"}}
	}},
}

// score counts what a creation left in the structs and in the tables.
type score struct {
	elements, keys, defaults int // elements, and those whose key and default are the row's
	links, right, zero, lost int // foreign keys, those of the right row, those that are 0, missing ones
	err                      error
}

func (s score) String() string {
	if s.err != nil {
		return "error: " + s.err.Error()
	}
	text := fmt.Sprintf("keys %d/%d defaults %d/%d", s.keys, s.elements, s.defaults, s.elements)
	if s.links > 0 {
		text += fmt.Sprintf(" foreign keys %d/%d (0: %d, lost: %d)", s.right, s.links, s.zero, s.lost)
	}
	return text
}

// shapes are forms of the created value and of the session.
var shapes = []struct {
	name    string
	session gorm.Session
	dest    func(owners []Owner) any
	known   bool // the structs have keys
	batches bool
}{
	{name: "pointers", dest: func(owners []Owner) any { return pointersTo(owners) }},
	{name: "an array", dest: func(owners []Owner) any { return (*[5]Owner)(owners) }},
	{name: "explicit keys", known: true},
	{name: "batches", batches: true},
	{name: "PrepareStmt", session: gorm.Session{PrepareStmt: true}},
	{name: "SkipDefaultTransaction", session: gorm.Session{SkipDefaultTransaction: true, DisableNestedTransaction: true}},
}

func pointersTo(owners []Owner) (pointers []*Owner) {
	for i := range owners {
		pointers = append(pointers, &owners[i])
	}
	return pointers
}

// attempt is a way to create rows.
type attempt struct {
	exist  []bool
	known  bool
	give   func(*Owner, int)
	dest   func([]Owner) any
	create func(*gorm.DB, any) *gorm.DB
}

// aloneAndOurs are worlds of GORM alone, over go-sql-driver and AUTO_INCREMENT, and of the plugin.
type aloneAndOurs struct {
	alone, ours *world
	attempts    int
	table       strings.Builder
}

func newAloneAndOurs(t *testing.T) *aloneAndOurs {
	t.Helper()
	return &aloneAndOurs{alone: aloneWorld(t), ours: pluginWorld(t)}
}

// compare fails the test unless the plugin is right wherever GORM is, and has all foreign keys.
func (c *aloneAndOurs) compare(t *testing.T, name string, a attempt) {
	t.Helper()
	c.attempts++
	prefix := fmt.Sprintf("n%d-", c.attempts)
	alone, ours := c.alone.score(t, prefix, a), c.ours.score(t, prefix, a)
	fmt.Fprintf(&c.table, "%-45s | %-60s | %s\n", name, alone, ours)
	if ours.keys < alone.keys || ours.defaults < alone.defaults || ours.zero > 0 ||
		(ours.err != nil) != (alone.err != nil) || ours.err == nil && ours.right < ours.links {
		t.Errorf("%s\nhave: %s\nGORM alone: %s", name, ours, alone)
	}
}

func (c *aloneAndOurs) log(t *testing.T) {
	t.Helper()
	t.Logf("%-45s | %-60s | %s\n%s", "", "GORM alone", "plugin", &c.table)
}

func TestLikeGORMAlone(t *testing.T) {
	if testserver.Each(t, TestLikeGORMAlone) {
		return
	}
	c := newAloneAndOurs(t)
	for _, creation := range creations {
		for _, batch := range existing {
			for _, kind := range children {
				name := fmt.Sprintf("%s, %s, %s", creation.name, batch.name, kind.name)
				c.compare(t, name, attempt{exist: batch.rows, give: kind.give, create: creation.create})
			}
		}
	}
	c.log(t)
}

func TestLikeGORMAlone_shapes(t *testing.T) {
	if testserver.Each(t, TestLikeGORMAlone_shapes) {
		return
	}
	c := newAloneAndOurs(t)
	for _, creation := range creations {
		for _, shape := range shapes {
			create := func(db *gorm.DB, owners any) *gorm.DB {
				db = db.Session(&shape.session)
				if shape.batches {
					db = db.Session(&gorm.Session{CreateBatchSize: 2})
				}
				return creation.create(db, owners)
			}
			give := func(o *Owner, i int) {
				for _, kind := range children[1+i%2:] { // every other owner has no card
					kind.give(o, i)
				}
			}
			c.compare(t, creation.name+", "+shape.name,
				attempt{[]bool{true, false, true, false, true}, shape.known, give, shape.dest, create})
		}
	}
	c.log(t)
}

func aloneWorld(t *testing.T) *world {
	t.Helper()
	w := ownerWorld(t)
	w.DB = must.Get(gorm.Open(mysql.Open(w.dsn), &gorm.Config{Logger: logger.Discard}))(t)
	closeAtEnd(t, w.DB)
	return w
}

func pluginWorld(t *testing.T) *world {
	t.Helper()
	w := ownerWorld(t)
	w.dsn += "?shardkeyRule=" + registerRule(t)
	w.DB = must.Get(gorm.Open(mysql.New(mysql.Config{DriverName: "shardkey", DSN: w.dsn}),
		&gorm.Config{Logger: logger.Discard}, gormshardkey.Plugin{}))(t)
	closeAtEnd(t, w.DB)
	return w
}

func ownerWorld(t *testing.T) *world {
	t.Helper()
	w := &world{dsn: testserver.Database(t)}
	w.plain = must.Open(t, "mysql", w.dsn)
	for _, table := range ownerTables {
		must.Get(w.plain.Exec("CREATE TABLE " + table))(t)
	}
	return w
}

// score creates owners, and compares them with their rows.
func (w *world) score(t *testing.T, prefix string, a attempt) (s score) {
	t.Helper()
	owners := make([]Owner, len(a.exist))
	for i, exists := range a.exist {
		o := &owners[i]
		o.Code, o.Value = fmt.Sprint(prefix, i), i
		if exists {
			w.exists(t, "owners", o.Code)
		}
		if a.known {
			o.ID = lastGapped.Add(7)
			must.Get(w.plain.Exec("UPDATE owners SET id = ? WHERE code = ?", o.ID, o.Code))(t)
		}
		a.give(o, i)
		if len(o.Marks) > 1 {
			w.exists(t, "marks", o.Marks[1].Code) // not the first nor the last
		}
	}
	dest := any(&owners)
	if a.dest != nil {
		dest = a.dest(owners)
	} else if len(owners) == 1 {
		dest = &owners[0]
	}
	s.err = a.create(w.DB, dest).Error
	for _, o := range owners {
		id := w.keyByCode(t, "owners", "id", o.Code)
		s.elements++
		s.keys += count(fmt.Sprint(o.ID) == id)
		s.defaults += count(o.Made == w.keyByCode(t, "owners", "made", o.Code))
		if o.Card != nil {
			s.link(id, w.keyByCode(t, "cards", "owner_id", o.Card.Code))
		}
		for _, p := range o.Pages {
			s.link(id, w.keyByCode(t, "pages", "owner_id", p.Code))
		}
		for _, m := range o.Marks {
			var n int
			must.Do(t, w.plain.QueryRow("SELECT COUNT(*) FROM owner_marks WHERE owner_id = ? AND mark_id = (SELECT id FROM marks WHERE code = ?)", id, m.Code).Scan(&n))
			s.links, s.right, s.lost = s.links+1, s.right+n, s.lost+1-n
		}
	}
	must.Do(t, w.plain.QueryRow("SELECT ? + COUNT(*) FROM owner_marks WHERE owner_id = 0 OR mark_id = 0", s.zero).Scan(&s.zero))
	must.Get(w.plain.Exec("DELETE FROM owner_marks WHERE owner_id = 0 OR mark_id = 0"))(t)
	return s
}

// exists inserts a row.
func (w *world) exists(t *testing.T, table, code string) {
	t.Helper()
	must.Get(w.plain.Exec("INSERT INTO "+table+" (id, code) VALUES (?, ?)", lastGapped.Add(7), code))(t)
}

// link counts the foreign key of a child of a row.
func (s *score) link(key, foreign string) {
	s.links++
	s.right += count(foreign == key)
	s.zero += count(foreign == "0")
	s.lost += count(foreign == "no row")
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

func (w *world) keyByCode(t *testing.T, table, column, code string) string {
	t.Helper()
	return w.find(t, table, column, "code", code)
}
