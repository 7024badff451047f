package driver

import (
	"bytes"
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/sqltext"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/spi"
)

// Where a server makes no temporary table, the rows of an INSERT … SELECT are copied:
// they are read to their end, as a connection cannot be written to before, and
// inserted as values with their keys. Where one INSERT does not hold them all, these
// are one transaction, or stand behind a savepoint of the transaction that there is.

const (
	// copiedAtOnce and copiedBytes bound one INSERT of copied rows.
	copiedAtOnce = 5000
	copiedBytes  = 1 << 20
)

// copyRun is one execution of an INSERT … SELECT in this way.
type copyRun struct {
	selectRun
	refused error // the server's, where a temporary table was tried

	buffer  rowBuffer
	gene    int          // the column of the query that the keys' gene is of; −1 for none
	fits    []spi.KeyFit // the keys with the gene of each row that needs one
	missing int          // rows that need a key, where the query returns it
	limit   int          // bytes of an INSERT
	given   []any        // the keys that the query returned, for WithKeys
	last    any          // that of the last row
	inside  bool         // in the user's transaction, behind our savepoint
	outside bool         // in a transaction of ours

	from, to int // the rows of the INSERT at hand
	made, at int // the generated keys before it, and after it
	more     bool
	row      copiedRow // the first of the next one
	affected int64
	insertID int64
	existed  bool   // a row of an upsert existed
	dropped  []bool // generated keys that are not in the table; nil: all are
}

// beginCopy reads the query's rows and inserts all but those of the last INSERT, which
// it makes ready. refused is why there is no temporary table, where that was
// tried.
func beginCopy(ctx context.Context, run *selectRun, refused error) (running, error) {
	r := &copyRun{selectRun: *run, refused: refused}
	for _, step := range []func(context.Context) error{r.knowLastID, r.syncLastID, r.readRows, r.makeKeys, r.syncLastID, r.insertAll} {
		if err := step(ctx); err != nil {
			return nil, r.failed(ctx, err)
		}
	}
	return r, nil
}

// refuse is the error for rows that cannot be copied.
func (r *copyRun) refuse(reason string, err error) error {
	reason = "cannot be filled by copying its rows: " + reason
	if r.refused != nil {
		reason += "; and the server makes no temporary table"
		err = cmp.Or(err, r.refused)
	}
	return &InsertSelectError{Table: r.quoted(), Reason: reason, Err: err}
}

// readRows runs the query and keeps its rows as text.
func (r *copyRun) readRows(ctx context.Context) error {
	if r.in.Source.KeyIndex >= 0 { // nothing can be asked while the rows are read
		if r.table.kind() == rewrite.KindUnknown {
			if err := r.table.learnKind(ctx); err != nil {
				return err
			}
		}
		if _, err := r.sqlMode(ctx); err != nil {
			return err
		}
	}
	if r.gene = -1; r.table.genes != nil {
		var err error
		if r.gene, err = r.geneColumn(ctx); err != nil {
			return err
		}
	}
	facts, err := r.copyingFacts(ctx)
	if err != nil {
		return err
	}
	if wrong := facts.wrong(); wrong != "" {
		return r.refuse(wrong, nil)
	}
	r.limit = facts.packet
	rows, err := r.openQuery(ctx)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns := rows.Columns()
	if len(columns) != len(r.in.Source.Columns) {
		_ = rows.Close()
		return cmp.Or(r.ownWords(ctx, len(columns)), r.refuse(fmt.Sprintf("the query returns %d columns for %d", len(columns), len(r.in.Source.Columns)), nil))
	}
	types, err := columnTypes(rows, len(columns))
	if err != nil {
		return r.refuse(err.Error(), nil)
	}
	if parses, err := r.parsesTime(ctx); err != nil || parses && slices.ContainsFunc(types, isDate) {
		return cmp.Or(err, r.refuse("with parseTime=true dates of a query are read by their columns' names, which must differ; and the query must be one that stands in FROM ( … )", nil))
	}
	if err := r.keepRows(ctx, rows, columns, types); err != nil {
		return err
	}
	if r.in.MentionsLastID && r.rows > 0 {
		r.lastID.moved() // the query may have called LAST_INSERT_ID(expr)
	}
	return cmp.Or(rows.Close(), r.buffer.rewind())
}

// columnTypes are the types of a query's columns, as the base names them.
func columnTypes(rows driver.Rows, n int) ([]string, error) {
	named, ok := rows.(driver.RowsColumnTypeDatabaseTypeName)
	types := make([]string, n)
	for i := range types {
		if ok {
			types[i] = named.ColumnTypeDatabaseTypeName(i)
		}
		if types[i] == "" {
			return nil, errors.New("the base driver does not tell the types of a query's columns")
		}
	}
	return types, nil
}

// keepRows reads all rows.
func (r *copyRun) keepRows(ctx context.Context, rows driver.Rows, columns, types []string) error {
	values := make([]driver.Value, len(columns))
	var text []byte
	for {
		switch err := rows.Next(values); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if r.rows++; r.rows > maxSourceRows {
			return r.checkRows()
		}
		row, keyFrom, keyTo := text[:0], -1, -1
		for i, v := range values {
			if i > 0 {
				row = append(row, ',')
			}
			if i == r.in.Source.KeyIndex {
				keyFrom = len(row)
				missing, err := r.keepGiven(ctx, v)
				if err != nil {
					return err
				}
				if missing {
					keyTo = keyFrom
					continue
				}
			}
			var err error
			if row, err = appendValue(row, v, types[i]); err != nil {
				return r.refuse(fmt.Sprintf("column %s: %v", sqltext.QuoteIdentifier(columns[i]), err), nil)
			}
			if i == r.in.Source.KeyIndex {
				keyTo = len(row)
			}
		}
		if keyFrom < 0 {
			row = append(row, ',')
			keyFrom, keyTo = len(row), len(row)
		}
		if r.gene >= 0 && keyFrom == keyTo {
			fit, err := r.fitOfRow(ctx, len(r.fits), values[r.gene])
			if err != nil {
				return err
			}
			r.fits = append(r.fits, fit)
		}
		if err := r.buffer.add(copiedRow{row[:keyFrom], row[keyFrom:keyTo], row[keyTo:]}); err != nil {
			return r.refuse(fmt.Sprintf("its rows take more than %d MiB, and no temporary file can be written", copiedInMemory>>20), err)
		}
		text = row
	}
}

// keepGiven reports whether the key that the query returned for a row asks for one.
func (r *copyRun) keepGiven(ctx context.Context, v driver.Value) (missing bool, err error) {
	if missing, err = r.isMissing(ctx, r.table, v); err != nil {
		return missing, err
	}
	if r.last = nil; missing {
		r.missing++
	} else {
		r.last = boundKey(r.table.kind(), v)
	}
	switch {
	case r.out == nil:
	case missing:
		r.given = append(r.given, toGenerate{})
	default:
		r.given = append(r.given, r.last)
	}
	return missing, nil
}

// toGenerate stands for a key that is to be generated.
type toGenerate struct{}

// openQuery runs the query as a prepared statement, whose answers have all digits of a
// number. What it reads is locked as INSERT … SELECT locks it, where the query and the
// server let it.
func (r *copyRun) openQuery(ctx context.Context) (driver.Rows, error) {
	server, err := r.server(ctx)
	if err != nil {
		return nil, err
	}
	parses, err := r.parsesTime(ctx)
	if err != nil {
		return nil, err
	}
	query := func(lock string) string { return r.in.Source.Query + lock }
	if parses {
		if query, err = r.datesAsText(ctx, query); err != nil {
			return nil, err
		}
	}
	if server.shareLocks && r.in.Source.Lockable {
		rows, err := r.openPrepared(ctx, query(" LOCK IN SHARE MODE"))
		if !isServerError(err, syntaxError, notSupported, tableDenied, columnDenied, notLocked, lockedForReading, noFeature) {
			return rows, err
		}
	}
	return r.openPrepared(ctx, query(""))
}

const (
	lockedForReading = 1099
	noFeature        = 1295
)

func (r *copyRun) openPrepared(ctx context.Context, query string) (driver.Rows, error) {
	return r.base.queryOnce(ctx, query, r.queryArgs(), 0)
}

// datesAsText looks which columns of the query are dates: the base makes a time.Time of
// these, which has no 2024-00-00, nor an hour that its location left out. It returns
// a query that makes text of them.
func (r *copyRun) datesAsText(ctx context.Context, plain func(lock string) string) (func(lock string) string, error) {
	const alias = "AS `shardkey_rows`"
	rows, err := r.openPrepared(ctx, "SELECT * FROM ("+r.in.Source.Query+") "+alias+" LIMIT 0")
	if isServerError(err, syntaxError, duplicateColumn) {
		return plain, nil // it is refused if there are dates
	}
	if err != nil {
		return nil, err
	}
	columns := append([]string(nil), rows.Columns()...)
	types, typesErr := columnTypes(rows, len(columns))
	if err := rows.Close(); err != nil {
		return nil, err
	}
	if typesErr != nil {
		return nil, r.refuse(typesErr.Error(), nil)
	}
	dates := false
	for i, column := range columns {
		if columns[i] = sqltext.QuoteIdentifier(column); isDate(types[i]) {
			columns[i], dates = "CAST("+columns[i]+" AS CHAR)", true
		}
	}
	if !dates {
		return plain, nil
	}
	return func(lock string) string {
		if r.in.Source.Unlimited { // else its order may be dropped
			lock = allRows + lock
		}
		return "SELECT " + strings.Join(columns, ", ") + " FROM (" + plain(lock) + ") " + alias
	}, nil
}

const duplicateColumn = 1060

// isDate reports whether the base makes a time.Time of a type's values with parseTime.
func isDate(typ string) bool { return typ == "DATE" || typ == "DATETIME" || typ == "TIMESTAMP" }

// parsesTime reports whether the base makes a time.Time of dates. It is asked once in a
// connector.
func (s *session) parsesTime(ctx context.Context) (bool, error) {
	if known := s.servers.parsesTime.Load(); known != nil {
		return *known, nil
	}
	row, err := s.queryRow(ctx, "SELECT CAST('2000-01-02' AS DATE) LIMIT 1")
	if err != nil {
		return false, err
	}
	parses := false
	for _, v := range row {
		_, is := v.(time.Time)
		parses = parses || is
	}
	s.servers.parsesTime.Store(&parses)
	return parses, nil
}

// noLimit is the sql_select_limit that is none.
const noLimit = "18446744073709551615"

// copyingFacts are what copying rows depends on in a session.
type copyingFacts struct {
	charset string // one that is not utf8mb4, empty when all are
	limit   string // sql_select_limit, where it holds
	packet  int    // how large an INSERT may be
}

// copyingFacts asks for them, once in a session.
func (s *session) copyingFacts(ctx context.Context) (*copyingFacts, error) {
	if s.copying != nil {
		return s.copying, nil
	}
	row, err := s.queryRow(ctx, "SELECT @@character_set_client, @@character_set_connection, @@character_set_results, @@sql_select_limit, @@max_allowed_packet LIMIT 1")
	switch {
	case err != nil:
		return nil, err
	case len(row) != 5:
		return nil, fmt.Errorf("%w: the server answers %d columns about its character sets", ErrUnsupportedStatement, len(row))
	}
	const rest = 4 << 10 // for what stands around the rows
	facts := &copyingFacts{}
	for _, v := range row[:3] {
		if charset := text(v); !strings.EqualFold(charset, "utf8mb4") {
			facts.charset = cmp.Or(charset, "NULL")
		}
	}
	limit := text(row[3])
	if limit == "0" { // for none, in Vitess
		if one, err := s.queryRow(ctx, "SELECT 1"); err != nil {
			return nil, err
		} else if len(one) == 1 {
			limit = noLimit
		}
	}
	if limit != noLimit && limit != "9223372036854775807" {
		facts.limit = cmp.Or(limit, "not known")
	}
	packet, _ := strconv.Atoi(text(row[4]))
	if own := packetOf(s.servers.dsn.Reveal()); own > 0 {
		packet = min(packet, own)
	}
	facts.packet = max(min(packet-rest, copiedBytes), 1)
	s.copying = facts
	return facts, nil
}

// packetOf is the largest message that go-sql-driver sends, 0 where it is not known.
func packetOf(dsn string) int {
	cfg, err := parseBase(dsn)
	if dsn == "" || err != nil {
		return 0
	}
	return cfg.MaxAllowedPacket
}

// wrong says why rows cannot be copied in the session, empty when they can.
func (f *copyingFacts) wrong() string {
	switch {
	case f.charset != "":
		return fmt.Sprintf("texts would lose letters, as a character set of the session is %q; SET NAMES utf8mb4", f.charset)
	case f.limit != "":
		return fmt.Sprintf("rows would be left out, as sql_select_limit is %s; SET sql_select_limit = DEFAULT", f.limit)
	}
	return ""
}

// makeKeys generates a key for each row that needs one.
func (r *copyRun) makeKeys(ctx context.Context) error {
	n := int(r.rows)
	if r.in.Source.KeyIndex >= 0 {
		n = r.missing
	}
	if n == 0 {
		return r.key.learn(ctx, r.session)
	}
	if err := r.generate(ctx, n, r.fits); err != nil {
		return err
	}
	var err error
	r.carries, err = r.carriesKey(ctx)
	return err
}

// insertAll sends all INSERTs but the last.
func (r *copyRun) insertAll(ctx context.Context) error {
	if r.rows == 0 {
		n := len(r.in.Source.Columns)
		if r.in.Source.KeyIndex < 0 {
			n++
		}
		r.sent = sending{base: &r.base, text: r.in.Text("SELECT NULL" + strings.Repeat(", NULL", n-1) + " FROM DUAL WHERE FALSE"), args: r.tailArgs()}
		return nil
	}
	var err error
	if r.row, err = r.buffer.next(); err != nil {
		return err
	}
	for {
		text, err := r.nextInsert()
		if err != nil {
			return err
		}
		r.sent = sending{base: &r.base, text: r.in.Text(text), args: r.tailArgs()}
		if !r.more {
			return nil
		}
		if r.in.Returning {
			return r.refuse(fmt.Sprintf("with RETURNING its rows must fit into one INSERT of %d bytes and %d rows; insert them in parts", r.limit, copiedAtOnce), nil)
		}
		if err := r.startTransaction(ctx); err != nil {
			return err
		}
		res, err := r.sent.exec(ctx)
		if err == nil && res == nil {
			err = errNoAnswer
		}
		if err != nil {
			return err
		}
		r.inserted(ctx, res)
	}
}

// nextInsert returns the values of the next INSERT.
func (r *copyRun) nextInsert() (string, error) {
	r.from, r.made = r.to, r.at
	values := []byte("VALUES ")
	for {
		if r.to > r.from {
			values = append(values, ',')
		}
		values = append(append(values, '('), r.row.before...)
		if len(r.row.key) > 0 {
			values = append(values, r.row.key...)
		} else {
			var err error
			if values, err = r.appendKey(values); err != nil {
				return "", err
			}
			r.at++
		}
		values = append(append(values, r.row.after...), ')')
		r.to++
		var err error
		switch r.row, err = r.buffer.next(); {
		case err == io.EOF:
			r.more = false
			return r.asSource(values), nil
		case err != nil:
			return "", err
		case len(values)+r.row.size() > r.limit, r.to-r.from >= copiedAtOnce:
			r.more = true
			return r.asSource(values), nil
		}
	}
}

// asSource makes of one row of values a query: without strict mode the server takes a
// NULL for a column that has none in INSERT … SELECT and in VALUES of many rows, and
// refuses it in VALUES of one. (Vitess is told values: it need not look which shards.)
func (r *copyRun) asSource(values []byte) string {
	if r.to-r.from > 1 || r.isVitess() || !bytes.Contains(values, []byte("NULL")) {
		return string(values)
	}
	return "SELECT " + string(values[len("VALUES ("):len(values)-len(")")]) + " FROM DUAL"
}

func (r *copyRun) appendKey(dst []byte) ([]byte, error) {
	tells := r.carries && r.at == 0
	if tells {
		dst = append(dst, "LAST_INSERT_ID("...)
	}
	key := r.keys.At(r.at)
	dst, ok := sqltext.AppendLiteral(dst, key)
	if !ok {
		return nil, fmt.Errorf("%w: INSERT … SELECT cannot be filled with a key of type %T", ErrUnsupportedStatement, key)
	}
	if tells {
		dst = append(dst, ')')
	}
	return dst, nil
}

// inserted notes what came of an INSERT.
func (r *copyRun) inserted(ctx context.Context, res driver.Result) {
	affected, err := res.RowsAffected()
	if err != nil {
		affected = unknownCount
	}
	id, _ := res.LastInsertId()
	r.note(ctx, affected, id)
}

// note is inserted for what the server said.
func (r *copyRun) note(ctx context.Context, affected, id int64) {
	rows := int64(r.to - r.from)
	existed := r.in.Guarded && id != 0
	r.existed = r.existed || existed
	if id != 0 {
		r.insertID = id
	}
	if affected != unknownCount {
		r.affected += affected
	}
	switch {
	case rows == 0:
	case r.in.Ignore && affected == 0:
		r.drop(r.made, func(int) bool { return false })
	case r.in.Ignore && affected != rows, r.in.OnDuplicate && (existed || !r.in.Guarded), r.in.Replace && affected != rows, r.key.isTriggered():
		from := r.made
		if r.in.Replace {
			from = 0 // rows of the INSERTs before may have been replaced
		}
		r.look(ctx, from)
	}
}

// drop notes which of the generated keys from one on are in the table.
func (r *copyRun) drop(from int, present func(i int) bool) {
	if r.dropped == nil {
		r.dropped = make([]bool, r.keys.Len())
	}
	for i := from; i < r.at; i++ {
		r.dropped[i] = !present(i)
	}
}

// look asks which of the generated keys are in the table. Those of which that cannot be
// asked are not reported.
func (r *copyRun) look(ctx context.Context, from int) {
	keys := make([]any, 0, r.at-from)
	for i := from; i < r.at; i++ {
		keys = append(keys, r.keys.At(i))
	}
	present, err := r.presentKeys(ctx, r.in, keys)
	r.drop(from, func(i int) bool { return err == nil && present[text(r.keys.At(i))] })
}

// among tells whether a generated key is in the table; nil: all are.
func (r *copyRun) among() func(i int) bool {
	if r.dropped == nil {
		return nil
	}
	return func(i int) bool { return !r.dropped[i] }
}

const (
	savepoint   = "shardkey_rows"
	noSuchPoint = 1305
)

// startTransaction makes what follows one: behind a savepoint where there is a
// transaction, which shows by its being there afterwards. (SET autocommit, as START
// TRANSACTION ends LOCK TABLES.)
func (r *copyRun) startTransaction(ctx context.Context) error {
	if r.inside || r.outside {
		return nil
	}
	err := r.send(ctx, "SAVEPOINT "+savepoint)
	if err == nil {
		err = r.send(ctx, "ROLLBACK TO SAVEPOINT "+savepoint)
	}
	switch {
	case err == nil:
		r.inside = true
		return nil
	case isFatal(ctx, err):
		return err
	case !isServerError(err, noSuchPoint):
		return r.refuse("more than one INSERT is needed, and the server has no savepoint to find out whether there is a transaction", err)
	}
	r.outside = true
	return r.send(ctx, "SET autocommit = 0")
}

// endTransaction makes what was inserted stay.
func (r *copyRun) endTransaction(ctx context.Context) error {
	switch {
	case r.inside:
		r.inside = false
		return r.send(ctx, "RELEASE SAVEPOINT "+savepoint)
	case r.outside:
		if err := r.send(ctx, "COMMIT"); err != nil {
			return err
		}
		r.outside = false
		r.leave()
	}
	return nil
}

// undo takes back what was inserted, also when the statement's context has ended. Where
// the server has ended the transaction itself, as after a deadlock, there is no
// savepoint any more.
func (r *copyRun) undo() {
	ctx := context.Background()
	switch {
	case r.inside:
		err := r.send(ctx, "ROLLBACK TO SAVEPOINT "+savepoint)
		if err == nil {
			err = r.send(ctx, "RELEASE SAVEPOINT "+savepoint)
		}
		if err != nil && !isServerError(err, noSuchPoint) {
			r.base.ruin()
		}
	case r.outside:
		if err := r.send(ctx, "ROLLBACK"); err != nil {
			r.base.ruin()
		}
		r.leave()
	}
	r.inside, r.outside = false, false
}

// leave makes the session's statements transactions of their own again.
func (r *copyRun) leave() {
	if err := r.send(context.Background(), "SET autocommit = 1"); err != nil {
		r.base.ruin()
	}
}

func (r *copyRun) send(ctx context.Context, query string) error {
	_, err := r.base.execOrPrepare(ctx, query, nil, 0)
	return err
}

func (r *copyRun) failed(ctx context.Context, err error) error {
	r.undo()
	_ = r.buffer.close()
	if r.carries || r.in.Guarded || r.in.MentionsLastID {
		r.lastID.moved()
	}
	_ = r.syncLastID(context.Background())
	return r.explain(err)
}

// settle finds the statement's result, as sourceRun.settle does.
func (r *copyRun) settle(ctx context.Context, base driver.Result) (driver.Result, error) {
	r.inserted(ctx, base)
	return r.end(ctx)
}

func (r *copyRun) end(ctx context.Context) (driver.Result, error) {
	if err := r.endTransaction(ctx); err != nil {
		return nil, r.failed(ctx, err)
	}
	defer r.buffer.close()
	inserted := r.among()
	id, ok := r.firstInserted(inserted)
	r.keepLastAfter(r.insertID, id, ok)
	_ = r.syncLastID(ctx) // else it is made right before a statement that mentions it
	if !ok && r.affected > 0 && inserted == nil && !r.existed {
		id = toInt64(r.last)
	}
	out := &sourceResult{Result: driver.RowsAffected(r.affected), id: id, run: &r.selectRun, inserted: inserted}
	if r.out != nil {
		out.keys = r.values()
		r.out.set(r.plan, out.keys)
	}
	return out, nil
}

// settleRows is settle for a statement that was sent for rows. Those of RETURNING are
// of the only INSERT that there is, and all is known once they are closed.
func (r *copyRun) settleRows(ctx context.Context, base driver.Rows) (driver.Rows, error) {
	if !r.in.Returning {
		if err := base.Close(); err != nil {
			return nil, r.failed(ctx, err)
		}
		r.note(ctx, unknownCount, 0)
		if _, err := r.end(ctx); err != nil {
			return nil, err
		}
		return base, nil
	}
	return &settledRows{closingRows: closingRows{Rows: base}, settle: func(err error) {
		ctx := context.Background() // the execution's own may have ended
		if err != nil {
			_ = r.failed(ctx, err)
			return
		}
		r.look(ctx, 0)
		_, _ = r.end(ctx)
	}}, nil
}

// values are the keys of all rows of the query, in its order. Keys that the query
// returned are known where all rows were inserted.
func (r *copyRun) values() []any {
	made := r.boxed(r.among())
	if r.in.Source.KeyIndex < 0 {
		return made
	}
	all := make([]any, len(r.given))
	next := 0
	for i, given := range r.given {
		switch {
		case given == toGenerate{}:
			all[i] = made[next]
			next++
		case r.dropped == nil:
			all[i] = given
		}
	}
	return all
}

// atRow is the end of a server's message that counts the rows of one INSERT.
var atRow = regexp.MustCompile(` at row ([0-9]+)$`)

// explain turns the server's error about an INSERT of copied rows into one about the
// statement.
func (r *copyRun) explain(err error) error {
	var my *mysql.MySQLError
	switch {
	case !errors.As(err, &my):
		return err
	case r.to > 0 && r.usesQuery(my):
		return r.queryInDuplicate(err)
	}
	if at := atRow.FindStringSubmatchIndex(my.Message); at != nil && r.from > 0 && err == error(my) {
		if n, bad := strconv.Atoi(my.Message[at[2]:at[3]]); bad == nil {
			renumbered := *my
			renumbered.Message = my.Message[:at[2]] + strconv.Itoa(r.from+n) + my.Message[at[3]:]
			err = &renumbered
		}
	}
	return r.plan.failed(err)
}
