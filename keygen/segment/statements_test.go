package segment

import (
	"context"
	"database/sql/driver"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/sqlerr"
	"github.com/shardkey/shardkey/internal/test/must"
)

// step is one statement of a script, with the answer of the mocked server.
type step struct {
	kind  string // exec, prepared, query, begin, commit or rollback
	query string
	args  []driver.Value // nil for any
	rows  [][]driver.Value
	id    int64 // LastInsertId
	n     int64 // RowsAffected
	err   error // returned instead of the other results
}

// expect adds the step to the server's expected statements. A query with an error returns it
// before its first row, or with late in place of its first row.
func (st step) expect(mock sqlmock.Sqlmock, late bool) {
	switch st.kind {
	case "begin":
		mock.ExpectBegin().WillReturnError(st.err)
	case "commit":
		mock.ExpectCommit().WillReturnError(st.err)
	case "rollback":
		mock.ExpectRollback()
	case "query":
		e := mock.ExpectQuery(st.query)
		if st.args != nil {
			e.WithArgs(st.args...)
		}
		if st.err != nil && !late {
			e.WillReturnError(st.err)
			return
		}
		columns := make([]string, 1)
		if len(st.rows) > 0 {
			columns = make([]string, len(st.rows[0]))
		}
		rows := sqlmock.NewRows(columns)
		for _, r := range st.rows {
			rows.AddRow(r...)
		}
		if late {
			rows.AddRow(make([]driver.Value, len(columns))...).RowError(0, st.err)
		}
		e.WillReturnRows(rows)
	default:
		var e *sqlmock.ExpectedExec
		if st.kind == "prepared" {
			e = mock.ExpectPrepare(st.query).ExpectExec()
		} else {
			e = mock.ExpectExec(st.query)
		}
		if st.args != nil {
			e.WithArgs(st.args...)
		}
		if st.err != nil {
			e.WillReturnError(st.err)
		} else {
			e.WillReturnResult(sqlmock.NewResult(st.id, st.n))
		}
	}
}

// play returns a server that answers according to the script.
func play(t *testing.T, script []step) *server {
	t.Helper()
	s, mock := mocked(t)
	for _, st := range script {
		st.expect(mock, false)
	}
	return s
}

// eachFails runs do once for each statement of the script, and makes that statement fail. do must
// return the error, and roll back an open transaction.
func eachFails(t *testing.T, script []step, do func(*server) error) {
	t.Helper()
	for i := range script {
		for _, late := range []bool{false, true} {
			if late && script[i].kind != "query" || script[i].kind == "rollback" {
				continue
			}
			s, mock := mocked(t)
			open := false
			for _, st := range script[:i] {
				st.expect(mock, false)
				open = (open || st.kind == "begin") && st.kind != "commit" && st.kind != "rollback"
			}
			failing := script[i]
			failing.err = errAway
			failing.expect(mock, late)
			if open && failing.kind != "commit" {
				mock.ExpectRollback()
			}
			must.Is(t, do(s), errAway, failing.kind, failing.query, "fails")
		}
	}
}

func row(values ...driver.Value) [][]driver.Value { return [][]driver.Value{values} }

// A transaction claims numbers from max_id on, or from 1 if max_id is below that. They are above
// earlier claims and in the range of max_id's type.
func TestLeaf_claimSwap(t *testing.T) {
	const n = 10
	for name, tt := range map[string]struct {
		maxID  [][]driver.Value
		least  int64 // 0 if nothing was claimed
		echoed int64
		rows   int64
		first  int64
		want   error
	}{
		"echoed":                 {row(700), 0, 710, 1, 700, nil},
		"not echoed":             {row(700), 0, 0, 1, 700, nil},
		"something else echoed":  {row(700), 0, 690, 1, 700, nil},
		"zero":                   {row(0), 0, 11, 1, 1, nil},
		"below zero":             {row(-5), 0, 11, 1, 1, nil},
		"where the last ended":   {row(700), 700, 710, 1, 700, nil},
		"below what was claimed": {row(699), 700, 0, 0, 0, errMovedBack},
		"up to the type's end":   {row(int64(math.MaxInt64 - n)), 0, math.MaxInt64, 1, math.MaxInt64 - n, nil},
		"beyond the type's end":  {row(int64(math.MaxInt64 - n + 1)), 0, 0, 0, 0, errExhausted},
		"changed in between":     {row(700), 0, 0, 0, 700, errRaced},
		"no row":                 {nil, 0, 0, 0, 0, errUnknownKey},
		"several rows":           {append(row(700), row(800)...), 0, 0, 0, 0, errBadRow},
	} {
		t.Run(name, func(t *testing.T) {
			script := []step{{kind: "begin"}, {kind: "query", query: selectRow, args: []driver.Value{"order"}, rows: tt.maxID}}
			if tt.first != 0 {
				script = append(script, step{kind: "exec", query: claimSwap, id: tt.echoed, n: tt.rows,
					args: []driver.Value{tt.first + n, "order", tt.maxID[0][0]}})
			}
			end := step{kind: "commit"}
			if tt.want != nil {
				end.kind = "rollback"
			}
			script = append(script, end)
			s := play(t, script)
			l := &leafRow{server: s, key: "order", least: tt.least}
			r, err := l.claim(t.Context(), s.conn, n)
			if tt.want != nil {
				if !errors.Is(err, tt.want) || r != (run{}) || l.least != tt.least {
					t.Errorf("\nhave: %v %v, claimed up to %d\nwant: %v", r, err, l.least, tt.want)
				}
			} else if err != nil || r != (run{tt.first, n, 1}) || l.least != tt.first+n || l.echoes != (tt.echoed == tt.first+n) {
				t.Errorf("\nhave: %v %v, echoes: %v\nwant: %d numbers from %d", r, err, l.echoes, n, tt.first)
			}
			if tt.want == nil {
				eachFails(t, script, func(s *server) error {
					l := &leafRow{server: s, key: "order", least: tt.least}
					_, err := l.claim(t.Context(), s.conn, n)
					return err
				})
			}
		})
	}
}

// If the server returns LAST_INSERT_ID, one statement claims. It contains the range of max_id,
// and is prepared once.
func TestLeaf_claimOne(t *testing.T) {
	s := play(t, []step{
		{kind: "prepared", query: claimOne, args: []driver.Value{10, "order", int64(math.MinInt64), int64(math.MaxInt64 - 10)}, id: 710, n: 1},
		{kind: "exec", query: claimOne, args: []driver.Value{20, "order", 710, int64(math.MaxInt64 - 20)}, id: 730, n: 1},
		{kind: "query", query: selectStep, rows: row(1)},
	})
	l := &leafRow{server: s, key: "order", echoes: true}
	for _, want := range []run{{700, 10, 1}, {710, 20, 1}} {
		if r, err := l.claim(t.Context(), s.conn, want.count); r != want || err != nil || !l.echoes {
			t.Errorf("\nhave: %v %v, echoes: %v\nwant: %v", r, err, l.echoes, want)
		}
	}
	if err := l.connected(t.Context(), s.conn); err != nil || l.one != nil {
		t.Errorf("a new connection\nhave: %v, the statement of the one before: %v\nwant: none", err, l.one)
	}
	eachFails(t, []step{{kind: "prepared", query: claimOne}}, func(s *server) error {
		l := &leafRow{server: s, key: "order", echoes: true}
		r, err := l.claim(t.Context(), s.conn, 10)
		if r != (run{}) || l.least != 0 {
			t.Errorf("have: %v, claimed up to %d\nwant: nothing", r, l.least)
		}
		return err
	})
	s, mock := mocked(t)
	mock.ExpectPrepare(claimOne).WillReturnError(errAway)
	l = &leafRow{server: s, key: "order", echoes: true}
	must.Is(t, must.Err(l.claim(t.Context(), s.conn, 10)), errAway)
}

// showServer is the query for a server's name, and uuid its answer on one server.
const showServer = "SHOW VARIABLES WHERE Variable_name IN ('version', 'version_comment', 'server_uuid', 'server_id', " +
	"'hostname', 'port', 'wsrep_on', 'wsrep_cluster_name', 'group_replication_group_name')"

func uuid(server string) step {
	return step{kind: "query", query: showServer, rows: append(row("version", "9.7"), row("server_uuid", server)...)}
}

// A new connection reads the row's step, and compares the server with the recorded one. A
// different server causes a gap, which is recorded with its name.
func TestLeaf_connected(t *testing.T) {
	key, note := []driver.Value{"order"}, noteKey("order")
	noted := func(server driver.Value) step {
		return step{kind: "query", query: selectServer, args: []driver.Value{note}, rows: row(server)}
	}
	none := step{kind: "query", query: selectServer, args: []driver.Value{note}}
	readStep := step{kind: "query", query: selectStep, args: key, rows: row(1000)}
	insert := step{kind: "exec", query: insertServer, args: []driver.Value{note, "new"}, n: 1}
	begin, commit := step{kind: "begin"}, step{kind: "commit"}
	update := step{kind: "exec", query: updateServer, args: []driver.Value{"new", note, "old"}, n: 1}
	raise := step{kind: "exec", query: raiseMax, args: []driver.Value{77, "order"}, n: 1}
	answer := func(st step, number uint16) step { st.err = &mysql.MySQLError{Number: number}; return st }
	var logged strings.Builder
	for name, tt := range map[string]struct {
		gap    int64
		script []step
		want   error
		warns  string
	}{
		"no gap":          {0, []step{readStep}, nil, ""},
		"step of 1":       {0, []step{{kind: "query", query: selectStep, args: key, rows: row(1)}}, nil, ""},
		"step of 0":       {0, []step{{kind: "query", query: selectStep, args: key, rows: row(0)}}, errBadRow, ""},
		"no row":          {0, []step{{kind: "query", query: selectStep, args: key}}, errUnknownKey, ""},
		"several rows":    {0, []step{{kind: "query", query: selectStep, args: key, rows: append(row(1), row(2)...)}}, errBadRow, ""},
		"the same server": {77, []step{uuid("new"), noted("new"), readStep}, nil, ""},
		"without a name":  {77, []step{uuid(""), readStep}, nil, ""},
		"not noted yet":   {77, []step{uuid("new"), none, insert, readStep}, nil, ""},
		"another server":  {77, []step{uuid("new"), noted("old"), begin, update, raise, commit, readStep}, nil, "raised by 77"},
		"noted by another": {77, []step{uuid("new"), noted("old"), begin,
			{kind: "exec", query: updateServer, args: update.args}, {kind: "rollback"}, readStep}, nil, ""},
		"noted meanwhile":  {77, []step{uuid("new"), none, answer(insert, sqlerr.DuplicateKey), noted("new"), readStep}, nil, ""},
		"may not read":     {77, []step{uuid("new"), answer(none, sqlerr.TableDenied), readStep}, nil, "GRANT SELECT, INSERT, UPDATE"},
		"may not insert":   {77, []step{uuid("new"), none, answer(insert, sqlerr.TableDenied), readStep}, nil, "GRANT SELECT, INSERT, UPDATE"},
		"no description":   {77, []step{uuid("new"), answer(none, sqlerr.UnknownColumn), readStep}, nil, "GRANT SELECT, INSERT, UPDATE"},
		"may not read any": {77, []step{uuid("new"), answer(none, sqlerr.ColumnDenied), readStep}, nil, "GRANT SELECT, INSERT, UPDATE"},
	} {
		t.Run(name, func(t *testing.T) {
			logged.Reset()
			s := play(t, tt.script)
			newRow := func(s *server) *leafRow {
				s.warning.Store("")
				s.logger = slog.New(slog.NewTextHandler(&logged, nil))
				return &leafRow{server: s, key: "order", gap: tt.gap}
			}
			l := newRow(s)
			if tt.gap > 0 {
				s.warning.Store("of the connection before")
			}
			if err := l.connected(t.Context(), s.conn); !errors.Is(err, tt.want) || tt.want == nil && (err != nil || l.step() < 1) {
				t.Errorf("\nhave: %v, step %d\nwant: %v", err, l.step(), tt.want)
			}
			if w := s.warning.Load().(string); !strings.Contains(w, tt.warns) || (w == "") != (tt.warns == "") {
				t.Errorf("\nhave: warning %q\nwant: %q", w, tt.warns)
			}
			must.Equal(t, strings.Contains(logged.String(), "gap=77"), name == "another server", "logged", &logged)
			if slices.ContainsFunc(tt.script, func(st step) bool { return st.err != nil }) {
				return
			}
			eachFails(t, tt.script, func(s *server) error { return newRow(s).connected(t.Context(), s.conn) })
		})
	}
}

const readSettings = "SELECT @@auto_increment_increment, @@auto_increment_offset, VERSION()"

// columnRow returns the answer to SHOW COLUMNS for the AUTO_INCREMENT column.
func columnRow(name, typ string) [][]driver.Value {
	return append(row("stub", "char(1)", "NO", "UNI", "", ""), row(name, typ, "NO", "PRI", nil, "auto_increment")...)
}

// A new connection reads the server's settings and the table's column. Settings that would let
// two servers return the same number are an error.
func TestTicket_connected(t *testing.T) {
	settings := func(increment, offset int64) step {
		return step{kind: "query", query: readSettings, rows: row(increment, offset, "9.7")}
	}
	columns := step{kind: "query", query: "SHOW COLUMNS FROM `t`", rows: columnRow("i`d", "int")}
	for name, tt := range map[string]struct {
		want    int64 // offset property
		others  []int64
		script  []step
		offset  int64
		refused bool   // refused for its settings
		says    string // part of the error, or "" for none
		noLock  bool
	}{
		"right":                 {0, nil, []step{settings(3, 2), columns}, 2, false, "", false},
		"the last offset":       {0, nil, []step{settings(3, 3), columns}, 3, false, "", false},
		"offset of the rule":    {2, nil, []step{settings(3, 2), columns}, 2, false, "", false},
		"servers of 1 and 3":    {0, []int64{1, 3}, []step{settings(3, 2), columns}, 2, false, "", false},
		"not the rule's offset": {1, nil, []step{settings(3, 2)}, 0, true, "expected 1, found 2", false},
		"increment too small":   {0, nil, []step{settings(2, 2)}, 0, true, "expected 3, found 2", false},
		"increment too large":   {0, nil, []step{settings(4, 2)}, 0, true, "expected 3, found 4", false},
		"offset beyond it":      {0, nil, []step{settings(3, 4)}, 0, true, "expected at most auto_increment_increment 3, found 4", false},
		"another one's offset":  {0, []int64{1, 2}, []step{settings(3, 2), columns}, 0, true, "offset is 2, as on other2", false},
		"no column":             {0, nil, []step{settings(3, 2), {kind: "query", query: columns.query, rows: columnRow("", "")[:1]}}, 0, false, "no AUTO_INCREMENT column", false},
		"TiDB": {0, nil, []step{{kind: "query", query: readSettings, rows: row(3, 2, "8.0.11-TiDB-v8")}, columns},
			2, false, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := play(t, tt.script)
			peers := &[]*ticketTable{}
			newTable := func(s *server) *ticketTable {
				table := &ticketTable{server: s, table: "`t`", increment: 3, want: tt.want, peers: peers, offset: 9, noLock: !tt.noLock, column: "`other`"}
				*peers = []*ticketTable{table}
				for _, o := range tt.others {
					*peers = append(*peers, &ticketTable{server: &server{name: "other" + string(rune('0'+o))}, offset: o})
				}
				return table
			}
			table := newTable(s)
			err := table.connected(t.Context(), s.conn)
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) || errors.Is(err, errSettings) != tt.refused {
				t.Errorf("\nhave: %v\nwant: %q, for its settings: %v", err, tt.says, tt.refused)
			}
			must.Equal(t, table.offset, tt.offset, "offset")
			if err == nil && (table.column != "`i``d`" || table.limit != math.MaxInt32 || table.noLock != tt.noLock) {
				t.Errorf("\nhave: column %s, end %d, locks none: %v\nwant: the quoted column, int's end, %v",
					table.column, table.limit, table.noLock, tt.noLock)
			}
			for _, other := range (*peers)[1:] {
				must.Equal(t, other.offset == 0, strings.Contains(tt.says, other.name), other.name, "is forgotten")
			}
			eachFails(t, tt.script, func(s *server) error { return newTable(s).connected(t.Context(), s.conn) })
		})
	}
}

// One number needs one REPLACE. Several are a block, or a REPLACE of several rows if the user
// can't lock tables. The generator remembers that it can't.
func TestTicket_claim(t *testing.T) {
	const one, block = "REPLACE INTO `t` (stub) VALUES ('a')", "LOCK TABLES `t` WRITE; SET autocommit = 0; " +
		"REPLACE INTO `t` (stub) VALUES ('a'); SET @shardkey_first = LAST_INSERT_ID(); " +
		"REPLACE INTO `t` (`id`, stub) VALUES (@shardkey_first + 0, 'a'); REPLACE INTO `t` (stub) VALUES ('a'); " +
		"COMMIT; UNLOCK TABLES; SET autocommit = 1"
	single := []step{{kind: "exec", query: one, id: 10, n: 1}}
	locked := []step{{kind: "exec", query: block}, {kind: "query", query: "SELECT @shardkey_first, LAST_INSERT_ID()", rows: row(10, 13)}}
	rows := func(n, last int64) []step {
		return []step{{kind: "begin"}, {kind: "exec", query: one + strings.Repeat(",('a')", int(n-1)), id: 10, n: n},
			{kind: "query", query: "SELECT `id` FROM `t` WHERE stub = 'a'", rows: row(last)}, {kind: "commit"}}
	}
	four := []step{{kind: "exec", query: strings.Replace(block, "+ 0", "+ 6", 1)}, {kind: "query", query: locked[1].query, rows: row(10, 19)}}
	scattered := slices.Clone(locked)
	scattered[1].rows = row(10, 16)
	denied := []step{{kind: "exec", query: block, err: &mysql.MySQLError{Number: sqlerr.DatabaseDenied}}}
	for name, tt := range map[string]struct {
		noLock bool
		n      int64
		script []step
		says   string // part of the error, or "" for none
	}{
		"one":                      {false, 1, single, ""},
		"one without locks":        {true, 1, single, ""},
		"two":                      {false, 2, locked, ""},
		"four":                     {false, 4, four, ""},
		"two without locks":        {true, 2, rows(2, 13), ""},
		"most without locks":       {true, maxRows, rows(maxRows, 10+3*(maxRows-1)), ""},
		"more without locks":       {true, maxRows + 1, nil, "or request at most 1000"},
		"numbers of another":       {false, 2, scattered, "expected the next number after 10, found 16"},
		"too few numbers":          {true, 2, rows(2, 10)[:4], errScattered.Error()},
		"the lock is refused":      {false, 2, slices.Concat(denied, rows(2, 13)), ""},
		"no number":                {false, 1, []step{{kind: "exec", query: one, n: 1}}, "no LAST_INSERT_ID"},
		"a number off the grid":    {false, 1, []step{{kind: "exec", query: one, id: 11, n: 1}}, "doesn't fit its auto_increment_increment"},
		"a number before the last": {false, 1, []step{{kind: "exec", query: one, id: 7, n: 1}}, "returned 7 after 7"},
	} {
		t.Run(name, func(t *testing.T) {
			newTable := func(s *server) *ticketTable {
				return &ticketTable{server: s, table: "`t`", column: "`id`", increment: 3, offset: 1, limit: noEnd, noLock: tt.noLock, last: 7}
			}
			s := play(t, tt.script)
			table := newTable(s)
			r, err := table.claim(t.Context(), s.conn, tt.n)
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("\nhave: %v\nwant: %q", err, tt.says)
			}
			if err == nil && (r != run{10, tt.n, 3} || table.last != 10+3*(tt.n-1)) {
				t.Errorf("\nhave: %v, last %d\nwant: %d from 10", r, table.last, tt.n)
			}
			if want := tt.noLock || name == "the lock is refused"; table.noLock != want {
				t.Errorf("have: locks none: %v\nwant: %v", table.noLock, want)
			}
			if err == nil && name != "the lock is refused" {
				eachFails(t, tt.script, func(s *server) error {
					_, err := newTable(s).claim(t.Context(), s.conn, tt.n)
					return err
				})
			}
		})
	}
}

// An error after the caller's context has ended has both reasons, each once.
func TestServer_explain(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		ctx  context.Context
		err  error
		want string
	}{
		{t.Context(), errAway, "connection refused"},
		{over, errAway, "context canceled: connection refused"},
		{over, context.Canceled, "context canceled"},
	} {
		s := &server{words: words{title: "TEST"}, name: "test"}
		err := s.explain(tt.ctx, tt.err)
		wantError(t, err, tt.err)
		if !strings.HasSuffix(err.Error(), ": "+tt.want) || strings.Count(err.Error(), "canceled") > 1 {
			t.Errorf("\nhave: %v\nwant: %s at the end", err, tt.want)
		}
	}
	for number, want := range map[uint16]string{
		sqlerr.UnknownTable: "create the table with DDL", sqlerr.NoDatabase: "set the database in the property ADDRESS",
		sqlerr.DatabaseDenied: "GRANT PRIVILEGES", sqlerr.TableDenied: "GRANT PRIVILEGES",
		sqlerr.AccessDenied: "check the user", sqlerr.ReadOnly: "accepts writes",
		sqlerr.OutOfRange: "AT ITS END", sqlerr.DuplicateKey: "AT ITS END",
	} {
		s := &server{words: words{title: "TEST", ddl: "DDL", address: "ADDRESS", grant: "PRIVILEGES", end: "AT ITS END"}, name: "test"}
		cause := &mysql.MySQLError{Number: number, Message: "refused"}
		err := s.explain(t.Context(), cause)
		wantError(t, err, cause)
		if !strings.Contains(err.Error(), want) || errors.Is(err, errExhausted) != (want == "AT ITS END") {
			t.Errorf("%d\nhave: %v\nwant: %s", number, err, want)
		}
	}
}
