package driver

import (
	"database/sql/driver"
	"slices"
	"testing"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/rewrite"
)

// Where the statement itself reads it, only the server knows what LAST_INSERT_ID() is
// when no generated key was inserted.
func TestLastID_readByTheStatement(t *testing.T) {
	s := session.New(nil, new(session.Cache))
	s.LastID.Told(7)
	e := &execution{session: &s, plan: &plan{Plan: &rewrite.Plan{Statements: 1}}}
	e.keepLastID(&insertion{target: &target{in: &rewrite.Insert{MentionsLastID: true}, table: &table{}}}, said{}, noneInserted, 0, false)
	if s.LastID.Known() {
		t.Errorf("have: %+v\nwant: not known", s.LastID)
	}
}

// A bound key asks for a generated one as AUTO_INCREMENT has it: by its kind and
// the session's sql_mode.
func TestTable_isMissing(t *testing.T) {
	const zeroStays, emptyIsNull = "NO_AUTO_VALUE_ON_ZERO", "EMPTY_STRING_IS_NULL"
	for _, c := range []struct {
		kind  rewrite.Kind
		mode  string
		bound driver.Value
		want  bool
	}{
		{rewrite.KindInteger, "", nil, true},
		{rewrite.KindInteger, zeroStays, []byte(nil), true},
		{rewrite.KindInteger, "", int64(0), true},
		{rewrite.KindInteger, "", uint64(0), true},
		{rewrite.KindInteger, "", "0", true},
		{rewrite.KindInteger, "", []byte("00"), true},
		{rewrite.KindInteger, "", false, true},
		{rewrite.KindInteger, "", 0.4, true},
		{rewrite.KindInteger, zeroStays, int64(0), false},
		{rewrite.KindInteger, zeroStays, "0", false},
		{rewrite.KindInteger, "", int64(7), false},
		{rewrite.KindInteger, "", "7", false},
		{rewrite.KindInteger, emptyIsNull + "," + zeroStays, "", true},
		{rewrite.KindText, "", nil, true},
		{rewrite.KindText, zeroStays, "", true},
		{rewrite.KindText, "", []byte{}, true},
		{rewrite.KindText, "", "0", false},
		{rewrite.KindText, "", int64(0), false},
	} {
		keys := &table{}
		keys.setKind(c.kind)
		lying := &lyingBase{rows: func(string) (driver.Rows, error) {
			return answer{[]string{"mode", "charset"}, [][]driver.Value{{c.mode, "utf8mb4"}}}.rows(), nil
		}}
		conn := base.New(mustConnect(t, lying), nil)
		s := session.New(&conn, new(session.Cache))
		if have, err := keys.isMissing(t.Context(), &s, c.bound, &rewrite.Insert{}, 0); err != nil || have != c.want {
			t.Errorf("%#v, kind %v, mode %v\nhave: %v, %v\nwant: %v", c.bound, c.kind, c.mode, have, err, c.want)
		}
	}
}

func TestInsertion_changedNothing(t *testing.T) {
	for _, c := range []struct {
		in   rewrite.Insert
		said said
		want bool
	}{
		{rewrite.Insert{}, said{affected: 0}, false},
		{rewrite.Insert{Ignore: true}, said{affected: 0, id: 5}, false},
		{rewrite.Insert{}, said{affected: 1}, true},
		{rewrite.Insert{}, said{affected: unknownCount}, true},
	} {
		equal(t, (&insertion{target: &target{in: &c.in}}).changed(c.said, false), c.want, c.in, "v", c.said, "v")
	}
}

func TestConsecutive_integers(t *testing.T) {
	for _, c := range []struct {
		keys []int64
		want bool
	}{{nil, true}, {[]int64{7}, true}, {[]int64{7, 8, 9}, true}, {[]int64{7, 8, 10}, false}, {[]int64{7, 7}, false}, {[]int64{9, 8}, false}} {
		equal(t, areConsecutive(&rewrite.Keys{Ints: c.keys}), c.want, c.keys)
	}
}

// Keys that are bound stand in their rows, integers and others.
func TestExecution_boundKeysOfTheirRows(t *testing.T) {
	for table, want := range map[string][]driver.Value{
		"t_order": {"a", int64(5), "b", int64(6), "c", int64(7)},
		"t_text":  {"a", "key0", "b", "key1", "c", "key2"},
	} {
		c := newAnswering(t, "direct", nil, "other").conn
		p := must(c.planFor(t.Context(), "INSERT INTO "+table+" (a) VALUES (?), (?), (?)"))(t)
		e := &execution{plan: p, session: &c.session, user: base.Named([]driver.Value{"a", "b", "c"}), first: insertion{target: &p.targets[0]}, result: &result{}}
		if e.first.keys.Values = []any{"key0", "key1", "key2"}; table == "t_order" {
			e.first.keys = rewrite.Keys{Ints: []int64{5, 6, 7}}
		}
		args, err := e.bindArgs(true)
		var have []driver.Value
		for _, arg := range args {
			have = append(have, arg.Value)
		}
		if err != nil || !slices.Equal(have, want) {
			t.Errorf("%s\nhave: %v, %v\nwant: %v", table, have, err, want)
		}
	}
}

// Of a text whose keys are written, those take their places that are not bound in
// place of an argument.
func TestExecution_literalKeysOfTheirRows(t *testing.T) {
	plan := must(rewrite.Parse("INSERT INTO t (id, a) VALUES (?, 1), (DEFAULT, 2), (?, 3), (NULL, 4)", rewrite.Options{
		Tables: func(_, _ string) *rewrite.Table {
			return &rewrite.Table{KeyColumn: "id", Kind: rewrite.KindInteger}
		},
	}))(t)
	e := &execution{first: insertion{target: &target{in: &plan.Inserts[0]}, filled: []bool{true, false, false, false}, keys: rewrite.Keys{Ints: []int64{11, 12, 13}}}}
	have := e.fillKeys(nil)[0]
	if have.Len() != 2 || have.At(0) != int64(12) || have.At(1) != int64(13) {
		t.Errorf("have: %+v\nwant: 12, 13", have)
	}
}
