package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"go/importer"
	"go/types"
	"reflect"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// countingValuer counts its calls by database/sql.
type countingValuer struct{ asked *int }

func (v countingValuer) Value() (driver.Value, error) { *v.asked++; return int64(5), nil }

// oddValuer returns a value that no driver accepts.
type oddValuer struct{}

func (oddValuer) Value() (driver.Value, error) { return struct{}{}, nil }

// uses are typical uses of a database. Each runs with the underlying driver alone and with the
// wrapper. The underlying driver must receive the same calls, and the program the same results.
var uses = []struct {
	name string
	run  func(ctx context.Context, db *sql.DB, say func(...any))
}{
	{"exec", func(ctx context.Context, db *sql.DB, say func(...any)) {
		res, err := db.ExecContext(ctx, "UPDATE t SET a = 1")
		say(err)
		id, err := res.LastInsertId()
		n, err2 := res.RowsAffected()
		say(id, err, n, err2)
	}},
	{"exec with arguments", func(ctx context.Context, db *sql.DB, say func(...any)) {
		_, err := db.ExecContext(ctx, "UPDATE t SET a = ?, b = ?, c = ?", 1, "x", []byte("y"))
		say(err)
	}},
	{"valuer", func(ctx context.Context, db *sql.DB, say func(...any)) {
		asked := 0
		_, err := db.ExecContext(ctx, "UPDATE t SET a = ?", countingValuer{&asked})
		say(asked, err)
		rows, err := db.QueryContext(ctx, "SELECT ?", countingValuer{&asked})
		say(asked, err)
		rows.Close()
	}},
	{"types of arguments", func(ctx context.Context, db *sql.DB, say func(...any)) {
		for _, arg := range []any{uint64(1) << 63, fakedb.Wide{N: 3}, fakedb.Removed{}, nil, struct{}{}, true, sql.Named("a", 1), sql.NullString{}, oddValuer{}} {
			_, err := db.ExecContext(ctx, "UPDATE t SET a = ?", arg)
			say(err)
			fakeOf(db).Faults = []fakedb.Fault{{At: "SELECT", Err: fakedb.Err}}
			_, err = db.QueryContext(ctx, "SELECT ?", arg)
			fakeOf(db).Faults = nil
			say(err)
			st, err := db.PrepareContext(ctx, "UPDATE t SET a = ?")
			say(err)
			_, err = st.ExecContext(ctx, arg)
			say(err)
			say(st.Close())
		}
	}},
	{"wrong count of arguments", func(ctx context.Context, db *sql.DB, say func(...any)) {
		for _, args := range [][]any{{}, {1}, {1, 2, 3}} {
			_, err := db.ExecContext(ctx, "UPDATE t SET a = ?, b = ?", args...)
			say(err)
			st, err := db.PrepareContext(ctx, "UPDATE t SET a = ?, b = ?")
			say(err)
			_, err = st.ExecContext(ctx, args...)
			say(err)
			st.Close()
		}
	}},
	{"rows", func(ctx context.Context, db *sql.DB, say func(...any)) {
		for _, args := range [][]any{nil, {1}} {
			rows, err := db.QueryContext(ctx, "SELECT c"+strings.Repeat(" ?", len(args)), args...)
			say(err)
			types, err := rows.ColumnTypes()
			say(types[0].DatabaseTypeName(), types[0].ScanType(), err)
			for more := true; more; more = rows.NextResultSet() {
				for rows.Next() {
					var n int
					say(rows.Scan(&n), n)
				}
			}
			say(rows.Err(), rows.Close())
		}
	}},
	{"errors", func(ctx context.Context, db *sql.DB, say func(...any)) {
		fakeOf(db).Faults = []fakedb.Fault{{At: "FAIL", Times: -1, Err: fakedb.Err}}
		_, err := db.ExecContext(ctx, "FAIL")
		say(err, err == fakedb.Err)
		_, err = db.ExecContext(ctx, "FAIL ?", 1)
		say(err, err == fakedb.Err)
		_, err = db.QueryContext(ctx, "FAIL ?", 1)
		say(err, err == fakedb.Err)
		_, err = db.PrepareContext(ctx, "FAIL")
		say(err, err == fakedb.Err)
	}},
	{"bad connection", func(ctx context.Context, db *sql.DB, say func(...any)) {
		base := fakeOf(db)
		for _, bad := range []int{1, 2, 3} {
			base.Faults = []fakedb.Fault{{At: "xec", Times: bad, Err: driver.ErrBadConn}}
			_, err := db.ExecContext(ctx, "UPDATE t SET a = ?", 1)
			say(err, err == driver.ErrBadConn)
		}
		base.Faults = nil
	}},
	{"transactions", func(ctx context.Context, db *sql.DB, say func(...any)) {
		for _, opts := range []*sql.TxOptions{nil, {ReadOnly: true}, {Isolation: sql.LevelSerializable}} {
			tx, err := db.BeginTx(ctx, opts)
			say(err)
			if err != nil {
				continue
			}
			_, err = tx.ExecContext(ctx, "UPDATE t SET a = ?", 1)
			say(err, tx.Commit())
		}
	}},
	{"prepared across connections", func(ctx context.Context, db *sql.DB, say func(...any)) {
		st, err := db.PrepareContext(ctx, "UPDATE t SET a = ?")
		say(err)
		tx, err := db.BeginTx(ctx, nil)
		say(err)
		_, err = st.ExecContext(ctx, 1) // on a second connection
		say(err)
		_, err = tx.StmtContext(ctx, st).ExecContext(ctx, 2)
		say(err, tx.Rollback(), st.Close())
	}},
	{"ping", func(ctx context.Context, db *sql.DB, say func(...any)) { say(db.PingContext(ctx)) }},
}

// rowsOf returns a server of a kind whose queries have two result sets of one row each.
func rowsOf(kind fakedb.Kind) *fakedb.Server {
	s := &fakedb.Server{Kind: kind, Result: fakedb.Result{ID: 7, Affected: 1}}
	s.Query = func(string) (driver.Rows, error) {
		row := func(v int64) *fakedb.Rows {
			return &fakedb.Rows{Names: []string{"c"}, Values: [][]driver.Value{{v}}}
		}
		rows := row(0)
		rows.Another, rows.OnClose = row(1), func() { s.Calls = append(s.Calls, "rows close") }
		return rows, nil
	}
	return s
}

// fakeOf returns the fake server of a database that runUse opened.
func fakeOf(db *sql.DB) *fakedb.Server {
	switch d := db.Driver().(type) {
	case fakedb.Driver:
		return d.Server
	case *wrapped:
		return d.base.(fakedb.Driver).Server
	}
	return nil
}

func TestPassThrough_callsOfBase(t *testing.T) {
	for _, kind := range fakedb.Kinds {
		for _, use := range uses {
			t.Run(string(kind)+"/"+use.name, func(t *testing.T) {
				plain := rowsOf(kind)
				want := runUse(sql.OpenDB(plain), use.run)
				for _, server := range []string{session.ServerOther, session.ServerMySQL} {
					ours := rowsOf(kind)
					connector := must(NewConnector(ours, testRule(t), Config{Server: server}))(t)
					learnServer(t, connector)
					ours.Calls = nil
					have := runUse(sql.OpenDB(connector), use.run)
					equalSlices(t, have, want, server, "the program saw")
					equalSlices(t, ours.Calls, plain.Calls, server, "the base saw")
					if ours.Conns != 0 || ours.Stmts != 0 || ours.Closed != 1 {
						t.Errorf("%s, left: %d connections, %d statements, %d Close", server, ours.Conns, ours.Stmts, ours.Closed)
					}
				}
			})
		}
	}
}

// learnServer makes a connector know the kind of its server, as after its first INSERT.
func learnServer(t *testing.T, connector *Connector) {
	c := must(connector.Connect(t.Context()))(t).(*conn)
	must(c.session.Server(t.Context()))(t)
	noError(t, c.Close())
}

// runUse runs a use and returns what it says. It closes the database.
func runUse(db *sql.DB, use func(context.Context, *sql.DB, func(...any))) (seen []string) {
	defer db.Close()
	use(context.Background(), db, func(v ...any) { seen = append(seen, fmt.Sprint(v...)) })
	return seen
}

func lines(s []string) string { return "\n\t" + strings.Join(s, "\n\t") }

// TestConnect_missingInterfaces checks that a connection or statement without methods that take contexts
// is an error, and is closed.
func TestConnect_missingInterfaces(t *testing.T) {
	type (
		noExec struct {
			driver.Conn
			driver.QueryerContext
			driver.ConnPrepareContext
			driver.ConnBeginTx
		}
		noBegin struct {
			driver.Conn
			driver.ExecerContext
			driver.QueryerContext
			driver.ConnPrepareContext
		}
	)
	for want, hide := range map[string]func(driver.Conn) driver.Conn{
		"driver.ExecerContext": func(c driver.Conn) driver.Conn {
			return noExec{c, c.(driver.QueryerContext), c.(driver.ConnPrepareContext), c.(driver.ConnBeginTx)}
		},
		"driver.ConnBeginTx": func(c driver.Conn) driver.Conn {
			return noBegin{c, c.(driver.ExecerContext), c.(driver.QueryerContext), c.(driver.ConnPrepareContext)}
		},
	} {
		server := &fakedb.Server{}
		under := opener{server.Driver(), func() (driver.Conn, error) {
			c, err := server.Connect(t.Context())
			return hide(c), err
		}}
		err := sql.OpenDB(mustConnector(t, under, testRule(t))).PingContext(t.Context())
		isError(t, err, errors.ErrUnsupported)
		failsWith(t, err, "doesn't implement "+want)
		equal(t, server.Conns, 0, want, "connections left")
	}

	closed := 0
	server := &fakedb.Server{Stmt: func(string) (driver.Stmt, error) { return oldStmt{closed: &closed}, nil }}
	conn := openConn(t, server, testRule(t))
	_, err := conn.PrepareContext(t.Context(), "SELECT LAST_INSERT_ID()")
	isError(t, err, errors.ErrUnsupported)
	failsWith(t, err, "doesn't implement driver.StmtExecContext")
	equal(t, closed, 1, "statements closed")
}

// oldStmt is a statement of a driver without contexts.
type oldStmt struct {
	driver.Stmt
	closed *int
}

func (s oldStmt) Close() error { *s.closed++; return nil }

// TestPassThrough_interfacesInRaw checks the type assertions that go-sql-driver's README
// recommends for Raw.
func TestPassThrough_interfacesInRaw(t *testing.T) {
	for _, kind := range fakedb.Kinds {
		base := &fakedb.Server{Kind: kind}
		db, connector := openFake(t, base, testRule(t))
		conn := must(db.Conn(context.Background()))(t)
		err := conn.Raw(func(c any) error {
			equal(t, ConnectorOf(c), connector, kind, "ConnectorOf is")
			if _, ok := c.(interface{ Unwrap() driver.Conn }).Unwrap().(interface{ Connector() *Connector }); ok {
				t.Errorf("%s: Unwrap returns ours", kind)
			}
			if _, err := c.(oldExecer).Exec("UPDATE t", nil); err != nil && err != driver.ErrSkip {
				t.Errorf("%s: Exec: %v", kind, err)
			}
			rows, err := c.(oldQueryer).Query("SELECT 1", nil)
			if err != nil && err != driver.ErrSkip {
				t.Errorf("%s: Query: %v", kind, err)
			}
			if err == nil {
				_ = rows.Close()
			}
			return oldStatement(c.(driver.Conn))
		})
		if err = errors.Join(err, conn.Close(), db.Close()); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if base.Stmts != 0 || base.Conns != 0 {
			t.Errorf("%s: %d statements, %d connections left", kind, base.Stmts, base.Conns)
		}
	}
}

func oldStatement(c driver.Conn) error {
	st, err := c.Prepare("SELECT ?")
	if err != nil {
		return err
	}
	old := st.(interface {
		Exec(args []driver.Value) (driver.Result, error)
		Query(args []driver.Value) (driver.Rows, error)
	})
	_, err = old.Exec([]driver.Value{int64(1)})
	rows, err2 := old.Query([]driver.Value{int64(1)})
	if err2 == nil {
		_ = rows.Close()
	}
	return errors.Join(err, err2, st.Close())
}

// A connection answers the pool like the underlying one, or like database/sql's default if that
// has neither interface.
func TestConn_answersThePoolAsTheBase(t *testing.T) {
	for _, kind := range fakedb.Kinds {
		c := openConn(t, &fakedb.Server{Kind: kind}, testRule(t))
		plain, _ := (&fakedb.Server{Kind: kind}).Connect(t.Context())
		var wantReset error
		if r, ok := plain.(driver.SessionResetter); ok {
			wantReset = r.ResetSession(t.Context())
		}
		wantValid := true
		if v, ok := plain.(driver.Validator); ok {
			wantValid = v.IsValid()
		}
		reset, valid := c.ResetSession(t.Context()), c.IsValid()
		if reset != wantReset || valid != wantValid {
			t.Errorf("%s\nhave: %v, valid %v\nwant: %v, %v", kind, reset, valid, wantReset, wantValid)
		}
	}
}

func TestPrepared_argumentCount(t *testing.T) {
	for _, kind := range fakedb.Kinds {
		fake := &fakedb.Server{Kind: kind}
		c, _ := fake.Connect(context.Background())
		b := must(base.New(c, nil))(t)
		args := base.Named([]driver.Value{int64(1), int64(2), int64(3)})
		_, err := b.Do(context.Background(), &base.Request{Text: "UPDATE t SET a = ?, b = ?", Args: args, User: 2})
		_, err2 := b.Do(context.Background(), &base.Request{Text: "SELECT ?, ?", Args: args, User: 2, Rows: true})
		if kind != fakedb.Skipping { // the others leave it to the server
			if err != nil || err2 != nil {
				t.Errorf("%s: %v, %v", kind, err, err2)
			}
			continue
		}
		const want = "sql: expected 1 arguments, got 2"
		if fmt.Sprint(err) != want || fmt.Sprint(err2) != want || fake.Stmts != 0 {
			t.Errorf("%s, %d statements left\nhave: %v, %v\nwant: %s", kind, fake.Stmts, err, err2, want)
		}
	}
}

// A rewritten statement accepts the same types of arguments as the underlying connection or
// statement.
func TestPrepared_argumentTypes(t *testing.T) {
	for _, kind := range fakedb.Kinds {
		for _, arg := range []any{1, fakedb.Wide{N: 3}, oddValuer{}, struct{}{}} {
			base := &fakedb.Server{Kind: kind}
			plain, ours := sql.OpenDB(base), sql.OpenDB(mustConnector(t, base, taggedRule(t, "ruled", 0)))
			_, want := plain.Exec("INSERT INTO other (a) VALUES (?)", arg)
			_, have := ours.Exec("INSERT INTO ruled (a) VALUES (?)", arg)
			if (have == nil) != (want == nil) {
				t.Errorf("%s, %T\nhave: %v\nwant: %v", kind, arg, have, want)
			}
			_, _ = ours.Close(), plain.Close()
			equal(t, base.Stmts, 0, kind, arg, "statements left")
		}
	}
}

// TestPrepared_rowsAreAsBare checks that database/sql sees the same rows of a prepared statement
// as without the wrapper.
func TestPrepared_rowsAreAsBare(t *testing.T) {
	fake := rowsOf(fakedb.Skipping)
	rowsOfFake := func() driver.Rows { rows, _ := fake.Query(""); return rows }
	kinds := map[string]func() driver.Rows{
		"bare": func() driver.Rows { return struct{ driver.Rows }{rowsOfFake()} },
		"full": rowsOfFake,
	}
	for name, rows := range kinds {
		want := describeRows(t, rows)
		var ended []error
		have := describeRows(t, func() driver.Rows {
			return base.OnClose(rows(), func(_ base.Reading, err error) { ended = append(ended, err) })
		})
		equal(t, have, want, name)
		if len(ended) != 1 || ended[0] != nil {
			t.Errorf("%s: they ended with %v", name, ended)
		}
	}
	c, _ := fake.Connect(context.Background())
	b := must(base.New(c, nil))(t)
	r, err := b.Do(context.Background(), &base.Request{Text: "SELECT ?", Args: base.Named([]driver.Value{int64(1)}), User: 1, Rows: true})
	if err != nil || fake.Stmts != 1 {
		t.Fatalf("have: %v, %d statements\nwant: one", err, fake.Stmts)
	}
	if err := r.Rows.Close(); err != nil || fake.Stmts != 0 {
		t.Errorf("have: %v, %d statements\nwant: none after the rows", err, fake.Stmts)
	}
}

func describeRows(t *testing.T, open func() driver.Rows) string {
	t.Helper()
	db := sql.OpenDB(&fakedb.Server{Query: func(string) (driver.Rows, error) { return open(), nil }})
	defer db.Close()
	rows := must(db.Query("SELECT"))(t)
	defer rows.Close()
	var seen strings.Builder
	for more := true; more; more = rows.NextResultSet() {
		types := must(rows.ColumnTypes())(t)
		fmt.Fprintf(&seen, "%+v", *types[0])
		for rows.Next() {
			seen.WriteString(" row")
		}
	}
	_, _ = rows.Close(), rows.Close()
	return seen.String() + fmt.Sprint(rows.Err())
}

func drain(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

// If a Vitess session refuses everything until a ROLLBACK, the pool doesn't reuse its connection.
func TestRuined_connectionLeavesThePool(t *testing.T) {
	for _, refusal := range []struct {
		err         error
		connections int // after the next statement
	}{
		{&mysql.MySQLError{Number: 2002, Message: "VT15001: transaction error, issue ROLLBACK and retry the transaction: target: app.-40.primary"}, 2},
		{errors.Join(errors.New("traced"), &mysql.MySQLError{Number: 1105, Message: "VT09032: previous transaction failed"}), 2},
		{&mysql.MySQLError{Number: 1105, Message: "target: app.-40.primary: no healthy tablet available"}, 1},
	} {
		for _, kind := range []fakedb.Kind{fakedb.Resetter, fakedb.Validator, fakedb.Direct, fakedb.Skipping} {
			for _, d := range doors {
				for _, query := range []string{"UPDATE t SET a = ?", "INSERT INTO ruled (a) VALUES (?)"} {
					base := &fakedb.Server{Kind: kind}
					db, _ := openFake(t, base, generatorRule(t, new(shardCounter), "ruled.id"), Config{Server: "other"})
					db.SetMaxOpenConns(1)
					mustExec(t, db, "UPDATE t SET a = 1")
					base.Faults = []fakedb.Fault{{At: "xec", Times: -1, Err: refusal.err}, {At: "uery", Times: -1, Err: refusal.err}}
					isError(t, errOf(d.exec(t.Context(), db, query, 1)), refusal.err, refusal.err, kind, d.name)
					base.Faults = nil
					mustExec(t, db, "UPDATE t SET a = 1")
					equal(t, base.Count("connect"), refusal.connections, refusal.err, kind, d.name, "connections")
					_ = db.Close()
				}
			}
		}
	}
}

// knownInterfaces maps every interface of database/sql/driver to our types that implement it.
// TestDrift_interfacesOfDatabaseSQL fails if a new Go release adds an interface.
var knownInterfaces = map[string]struct {
	iface reflect.Type
	ours  []any // one value of each of our types that implements it
	why   string
}{
	"Driver":        {reflect.TypeFor[driver.Driver](), []any{Driver{}, &wrapped{}}, ""},
	"DriverContext": {reflect.TypeFor[driver.DriverContext](), []any{Driver{}, &wrapped{}}, ""},
	"Connector":     {reflect.TypeFor[driver.Connector](), []any{&Connector{}}, ""},

	"Conn":               {reflect.TypeFor[driver.Conn](), conns, ""},
	"ConnBeginTx":        {reflect.TypeFor[driver.ConnBeginTx](), conns, ""},
	"ConnPrepareContext": {reflect.TypeFor[driver.ConnPrepareContext](), conns, ""},
	"Execer":             {reflect.TypeFor[oldExecer](), conns, ""},
	"ExecerContext":      {reflect.TypeFor[driver.ExecerContext](), conns, ""},
	"NamedValueChecker":  {reflect.TypeFor[driver.NamedValueChecker](), append([]any{&stmt{}}, conns...), ""},
	"Pinger":             {reflect.TypeFor[driver.Pinger](), conns, ""},
	"Queryer":            {reflect.TypeFor[oldQueryer](), conns, ""},
	"QueryerContext":     {reflect.TypeFor[driver.QueryerContext](), conns, ""},
	"SessionResetter":    {reflect.TypeFor[driver.SessionResetter](), []any{&conn{}}, ""},
	"Validator":          {reflect.TypeFor[driver.Validator](), []any{&conn{}}, ""},

	"Stmt":             {reflect.TypeFor[driver.Stmt](), []any{&stmt{}}, ""},
	"StmtExecContext":  {reflect.TypeFor[driver.StmtExecContext](), []any{&stmt{}}, ""},
	"StmtQueryContext": {reflect.TypeFor[driver.StmtQueryContext](), []any{&stmt{}}, ""},
	"ColumnConverter":  {why: "deprecated: a NamedValueChecker converts"},

	"Rows":                           {reflect.TypeFor[driver.Rows](), []any{&base.Rows{}}, ""},
	"RowsNextResultSet":              {reflect.TypeFor[driver.RowsNextResultSet](), []any{&base.Rows{}}, ""},
	"RowsColumnTypeScanType":         {reflect.TypeFor[driver.RowsColumnTypeScanType](), []any{&base.Rows{}}, ""},
	"RowsColumnTypeDatabaseTypeName": {reflect.TypeFor[driver.RowsColumnTypeDatabaseTypeName](), []any{&base.Rows{}}, ""},
	"RowsColumnTypeLength":           {reflect.TypeFor[driver.RowsColumnTypeLength](), []any{&base.Rows{}}, ""},
	"RowsColumnTypeNullable":         {reflect.TypeFor[driver.RowsColumnTypeNullable](), []any{&base.Rows{}}, ""},
	"RowsColumnTypePrecisionScale":   {reflect.TypeFor[driver.RowsColumnTypePrecisionScale](), []any{&base.Rows{}}, ""},

	"RowsColumnScanner": {why: "new in Go 1.27; go-sql-driver doesn't implement it"},

	"Tx":             {why: "not wrapped"},
	"Result":         {why: "the base's, or the fill's own"},
	"Valuer":         {why: "of values, not of drivers"},
	"ValueConverter": {why: "of values, not of drivers"},
}

var conns = []any{&conn{}}

func TestDrift_interfacesOfDatabaseSQL(t *testing.T) {
	scope := must(importer.Default().Import("database/sql/driver"))(t).Scope()
	found := map[string]bool{"RowsColumnScanner": true} // Go 1.26 doesn't have it
	for _, name := range scope.Names() {
		typ, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || !typ.Exported() || !types.IsInterface(typ.Type()) || name == "Value" { // Value is any
			continue
		}
		found[name] = true
		k, ok := knownInterfaces[name]
		if !ok || (k.iface == nil) == (k.why == "") {
			t.Errorf("driver.%s: say which of our types has it, or why none does", name)
			continue
		}
		for _, own := range k.ours {
			if !reflect.TypeOf(own).Implements(k.iface) {
				t.Errorf("%T is no driver.%s", own, name)
			}
		}
	}
	for name := range knownInterfaces {
		equal(t, found[name], true, "database/sql/driver has", name)
	}
}

// TestDrift_interfacesOfBase checks that our types implement every interface of go-sql-driver's
// connection, statement, connector and driver.
func TestDrift_interfacesOfBase(t *testing.T) {
	connector := must(mysql.MySQLDriver{}.OpenConnector(testserver.Database(t)))(t)
	under := must(connector.Connect(t.Context()))(t)
	defer under.Close()
	prepared := must(under.Prepare("DO 0"))(t)
	defer prepared.Close()
	for _, of := range []struct{ base, ours any }{
		{under, &conn{}}, {prepared, &stmt{}}, {connector, &Connector{}}, {connector.Driver(), Driver{}},
	} {
		for name, k := range knownInterfaces {
			if k.iface != nil && reflect.TypeOf(of.base).Implements(k.iface) && !reflect.TypeOf(of.ours).Implements(k.iface) {
				t.Errorf("%T is a driver.%s, our %T is not", of.base, name, of.ours)
			}
		}
	}
}

// These are the deprecated interfaces of connections.
type (
	oldExecer interface {
		Exec(query string, args []driver.Value) (driver.Result, error)
	}
	oldQueryer interface {
		Query(query string, args []driver.Value) (driver.Rows, error)
	}
)
