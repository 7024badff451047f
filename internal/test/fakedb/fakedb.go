// Package fakedb is a database/sql driver for tests. Its server answers like MySQL, records the
// statements it receives, and fails on demand.
//
//	server := &fakedb.Server{Faults: []fakedb.Fault{
//		{At: "INSERT", Err: driver.ErrBadConn, Done: true},
//	}}
//	db := sql.OpenDB(server)
//
// In this example, the server executes the first INSERT, but the connection returns an error.
package fakedb

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/go-sql-driver/mysql"
)

// Err is an error that no real driver or server returns.
var Err = errors.New("fakedb: refused")

// Kind selects the optional interfaces of database/sql/driver that a server's connections and
// statements implement.
type Kind string

// The kinds. All kinds also have the methods of Minimal.
const (
	Direct    Kind = ""          // all interfaces; executes statements with arguments directly
	Skipping  Kind = "skipping"  // all interfaces; returns ErrSkip for arguments, as go-sql-driver does
	Minimal   Kind = "minimal"   // the methods with contexts
	StmtCheck Kind = "stmtcheck" // statements with a NamedValueChecker
	ConnCheck Kind = "conncheck" // connections with a NamedValueChecker
	Resetter  Kind = "resetter"  // a SessionResetter
	Validator Kind = "validator" // a Validator
	Uncounted Kind = "uncounted" // statements whose NumInput is -1
)

// Kinds lists all kinds.
var Kinds = []Kind{Direct, Skipping, Minimal, StmtCheck, ConnCheck, Resetter, Validator, Uncounted}

// Server is a driver.Connector. Its zero value executes every statement, with one row affected for
// each row of values, and has no version, so the driver can't identify it.
type Server struct {
	Kind Kind

	Version, Comment string      // results of SELECT VERSION() and the like
	Mode             string      // sql_mode
	Columns          [][2]string // names and types of the columns of every table
	Statements       int         // max_prepared_stmt_count, if positive
	Result           Result      // result of each execution; zero means the default

	// Exec, Query and Stmt replace the default answers and prepared statements. If they return
	// driver.ErrSkip, the default applies.
	Exec  func(query string) (driver.Result, error)
	Query func(query string) (driver.Rows, error)
	Stmt  func(query string) (driver.Stmt, error)

	// Faults are used up. A call gets the first fault whose At is part of it.
	Faults []Fault
	// Quiet records no calls, and answers with as little work as possible.
	Quiet bool

	mu sync.Mutex
	// Calls are the method calls, with their queries and arguments.
	Calls []string
	// Sent are the statements that took effect.
	Sent []Statement
	// Conns and Stmts count open connections and statements, Prepared prepared statements, and
	// Closed calls of Close.
	Conns, Stmts, Prepared, Closed int
}

// Statement is an executed statement.
type Statement struct {
	Query string
	Args  []driver.Value
}

func (st Statement) String() string { return fmt.Sprint(st.Query, " ", st.Args) }

// Fault changes the outcome of some calls.
type Fault struct {
	At    string // part of an entry of Calls
	Skip  int    // number of such calls that succeed first
	Times int    // number of calls that fail; 0 means 1, -1 means all
	Err   error  // error that the calls return
	Panic any    // value that the calls panic with
	Done  bool   // the statement takes effect nevertheless
}

// Result is a server's result of an execution.
type Result struct {
	ID, Affected int64
	AffectedErr  error
}

func (re Result) LastInsertId() (int64, error) { return re.ID, nil }

func (re Result) RowsAffected() (int64, error) { return re.Affected, re.AffectedErr }

func (s *Server) note(format string, args ...any) (f Fault, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := fmt.Sprintf(format, args...)
	s.Calls = append(s.Calls, call)
	for i := range s.Faults {
		f := &s.Faults[i]
		if !strings.Contains(call, f.At) {
			continue
		}
		if f.Skip--; f.Skip >= 0 {
			break
		}
		found := *f
		if f.Times > 1 {
			f.Times--
		} else if f.Times >= 0 {
			s.Faults = slices.Delete(s.Faults, i, i+1)
		}
		return found, true
	}
	return f, false
}

// call records a call and applies its fault.
func (s *Server) call(format string, args ...any) (done bool, err error) {
	f, ok := s.note(format, args...)
	if ok && f.Panic != nil {
		panic(f.Panic)
	}
	return !ok || f.Done || f.Err == nil, f.Err
}

// Count returns the number of calls with this beginning.
func (s *Server) Count(call string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.Calls {
		if strings.HasPrefix(c, call) {
			n++
		}
	}
	return n
}

// Queries returns the statements that took effect and contain part.
func (s *Server) Queries(part string) (queries []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sent := range s.Sent {
		if strings.Contains(sent.Query, part) {
			queries = append(queries, sent.Query)
		}
	}
	return queries
}

// Forget removes the recorded calls and statements.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Calls, s.Sent, s.Prepared = nil, nil, 0
}

func (s *Server) add(n *int, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n += by
}

func (s *Server) Connect(context.Context) (driver.Conn, error) {
	c := &conn{s}
	if s.Quiet {
		return c, nil
	}
	if _, err := s.call("connect"); err != nil {
		return nil, err
	}
	s.add(&s.Conns, 1)
	switch s.Kind {
	case Direct, Skipping:
		return &fullConn{checkConn{c}}, nil
	case ConnCheck:
		return &checkConn{c}, nil
	case Resetter:
		return &resetConn{c}, nil
	case Validator:
		return &validConn{c}, nil
	}
	return c, nil
}

// Driver returns a driver without OpenConnector. Its connections are connections of the server.
func (s *Server) Driver() driver.Driver { return Driver{s} }

func (s *Server) Close() error { s.add(&s.Closed, 1); return nil }

// Driver opens connections of a server, with any name.
type Driver struct{ Server *Server }

func (d Driver) Open(name string) (driver.Conn, error) {
	_, _ = d.Server.note("open %s", name)
	return d.Server.Connect(context.Background())
}

func (s *Server) exec(method, query string, args []driver.NamedValue) (driver.Result, error) {
	done, err := s.call("%s %s %v", method, query, args)
	if done {
		s.mu.Lock()
		s.Sent = append(s.Sent, Statement{query, plain(args)})
		s.mu.Unlock()
	}
	if err != nil {
		return nil, err
	}
	if s.Exec != nil {
		if r, err := s.Exec(query); err != driver.ErrSkip {
			return r, err
		}
	}
	return cmp.Or(s.Result, Result{Affected: rowsOf(query)}), nil
}

// affected is the result of a quiet server.
type affected int64

func (n affected) RowsAffected() (int64, error) { return int64(n), nil }
func (n affected) LastInsertId() (int64, error) { return 0, nil }

// rowsOf returns the number of rows of values of the last statement of a query, 1 if it has none.
func rowsOf(query string) int64 {
	return 1 + int64(strings.Count(query[max(0, strings.LastIndex(query, "VALUES")):], "), ("))
}

func (s *Server) query(method, query string, args []driver.NamedValue) (driver.Rows, error) {
	if s.Quiet {
		return s.answer(query)
	}
	if _, err := s.call("%s %s %v", method, query, args); err != nil {
		return nil, err
	}
	if s.Query != nil {
		if r, err := s.Query(query); err != driver.ErrSkip {
			return r, err
		}
	}
	return s.answer(query)
}

func plain(args []driver.NamedValue) (values []driver.Value) {
	for _, a := range args {
		values = append(values, a.Value)
	}
	return values
}

// answer answers the driver's metadata queries, and other queries with no rows.
func (s *Server) answer(query string) (driver.Rows, error) {
	asks := func(begin string) bool { return strings.HasPrefix(query, begin) }
	var id int64
	switch {
	case asks("SELECT VERSION()"):
		return Row(s.Version, s.Comment), nil
	case asks("SELECT @@sql_mode"):
		return Row(s.Mode, "utf8mb4"), nil
	case asks("SELECT DATABASE(), "):
		return Row("app", s.Mode, "utf8mb4", "utf8mb4_bin"), nil
	case asks("SELECT DATABASE()"):
		return Row("app"), nil
	case asks("SELECT @@max_prepared_stmt_count"):
		return Row(int64(s.Statements)), nil
	case asks("SELECT @@character_set_client"):
		return Row("utf8mb4", "utf8mb4", "utf8mb4", "18446744073709551615", "67108864", "1", "2000-01-02"), nil
	case asks("SHOW VITESS_SHARDS"):
		return nil, &mysql.MySQLError{Number: 1064, Message: "You have an error in your SQL syntax"}
	case asks("SELECT LAST_INSERT_ID("):
		_, _ = fmt.Sscanf(query, "SELECT LAST_INSERT_ID(%d", &id)
		return Row(id), nil
	case asks("SELECT * FROM") && strings.HasSuffix(query, " LIMIT 0"):
		r := &Rows{}
		for _, c := range s.Columns {
			r.Names = append(r.Names, c[0])
		}
		return r, nil
	case asksTable(query):
		r := Row("1", "BASE TABLE", nil, nil, nil, nil, nil)
		for i, c := range s.Columns {
			key := ""
			if i == 0 {
				key = "PRI"
			}
			r.Values = append(r.Values, []driver.Value{"2", c[0], c[1], "utf8mb4_bin", "YES", key, ""})
		}
		return r, nil
	case asks("SHOW FULL COLUMNS"):
		r := &Rows{}
		for _, c := range s.Columns {
			r.Values = append(r.Values, []driver.Value{c[0], c[1], "utf8mb4_bin", "YES"})
		}
		return r, nil
	}
	return &Rows{}, nil
}

// asksTable reports whether a query asks about a table, its columns and its triggers.
func asksTable(query string) bool {
	return strings.HasPrefix(query, "(SELECT CAST(1 AS BINARY), CAST(TABLE_TYPE")
}

// Rows are the rows of a result, with column names if these matter.
type Rows struct {
	Names   []string
	Values  [][]driver.Value
	Another *Rows // the next result set
	OnClose func()
	read    int
}

// Row returns a result of one row with these values.
func Row(values ...driver.Value) *Rows { return &Rows{Values: [][]driver.Value{values}} }

func (rs *Rows) Columns() []string {
	if rs.Names == nil && len(rs.Values) > 0 {
		return make([]string, len(rs.Values[0]))
	}
	return rs.Names
}

func (rs *Rows) Close() error {
	if rs.OnClose != nil {
		rs.OnClose()
	}
	return nil
}

func (rs *Rows) Next(dest []driver.Value) error {
	if rs.read == len(rs.Values) {
		return io.EOF
	}
	copy(dest, rs.Values[rs.read])
	rs.read++
	return nil
}

func (rs *Rows) HasNextResultSet() bool { return rs.Another != nil }

func (rs *Rows) NextResultSet() error {
	if rs.Another == nil {
		return io.EOF
	}
	closing := rs.OnClose
	*rs = *rs.Another
	rs.OnClose = closing
	return nil
}

func (rs *Rows) ColumnTypeDatabaseTypeName(int) string { return "FAKE" }

type noRows struct{}

func (noRows) Columns() []string         { return nil }
func (noRows) Close() error              { return nil }
func (noRows) Next([]driver.Value) error { return io.EOF }
