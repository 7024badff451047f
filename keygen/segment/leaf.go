package segment

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/sqlerr"
	"github.com/shardkey/shardkey/internal/sqlstate"
	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
	"github.com/shardkey/shardkey/spi"
)

// Defaults and bounds of LEAF_SEGMENT's properties.
const (
	defaultMaxStep = 1_000_000 // as in Leaf
	defaultReserve = time.Minute

	largestStep = 1 << 30
	largestGap  = 1 << 40
	gapSteps    = 10  // default of failover-gap, in steps of the largest size
	maxBizTag   = 128 // characters
)

func init() {
	spi.RegisterKeyGenerator("LEAF_SEGMENT", newLeaf)
	spi.RegisterKeyGenerator("TICKET", newTicket)
}

// newLeaf returns a generator with these properties. Without leaf.jdbc.url and dsn it uses the
// connector's own database. If there is no connector, the first key returns an error. newLeaf
// itself doesn't, because a rule is also checked without a connector.
func newLeaf(p spi.Props) (spi.KeyGenerator, error) {
	row := &leafRow{key: p.String("leaf.key", "")}
	if want := wrongKey(row.key); want != "" {
		return nil, p.Wrong("leaf.key", want)
	}
	prop, cfg, err := leafAddress(p)
	if err != nil {
		return nil, err
	}
	s := settings{
		words: leafWords(row.key),
		state: sqlstate.Table{Kind: sqlstate.Segments, Name: "leaf_alloc", Key: row.key},
		ahead: true, clock: p.Clock(), logger: p.Logger(),
	}
	if s.minStep, err = p.Int("min-step", 0, 1, largestStep); err != nil {
		return nil, err
	}
	if s.maxStep, err = p.Int("max-step", max(defaultMaxStep, s.minStep), 1, largestStep); err != nil {
		return nil, err
	}
	if s.maxStep < s.minStep {
		return nil, p.Wrong("max-step", fmt.Sprintf("an integer in %d..%d", s.minStep, largestStep))
	}
	s.limit = s.maxStep
	var errs [3]error
	s.reserve, errs[0] = p.Duration("reserve", defaultReserve, 0, 24*time.Hour)
	s.timeout, errs[1] = p.Duration("timeout", 5*time.Second, time.Millisecond, math.MaxInt64)
	row.gap, errs[2] = p.Int("failover-gap", gapSteps*max(s.maxStep, defaultMaxStep), 0, largestGap)
	if err := cmp.Or(errs[:]...); err != nil {
		return nil, err
	}
	if cfg == nil {
		return newGenerator(s, nil), nil
	}
	if row.server, err = newServer(prop, cfg, s); err != nil {
		return nil, err
	}
	row.server.claim = row
	return newGenerator(s, []*server{row.server}), nil
}

func leafWords(key string) words {
	return words{
		title:   fmt.Sprintf("LEAF_SEGMENT %q, leaf_alloc", key),
		address: "leaf.jdbc.url or dsn",
		grant:   "SELECT, UPDATE ON leaf_alloc",
		end:     "max_id cannot be raised within its type; make it bigint, or correct its value",
		ddl: "CREATE TABLE leaf_alloc (biz_tag varchar(128) NOT NULL DEFAULT '', " +
			"max_id bigint NOT NULL DEFAULT 1, step int NOT NULL, description varchar(256) DEFAULT NULL, " +
			"update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, " +
			"PRIMARY KEY (biz_tag)) ENGINE=InnoDB",
	}
}

// wrongKey returns the valid form of a key, or "" if the key is valid.
func wrongKey(key string) (want string) {
	switch {
	case key == "":
		return "the biz_tag of a row in leaf_alloc"
	case strings.Contains(key, "/"):
		return "a biz_tag without a slash"
	case len([]rune(key)) > maxBizTag:
		return fmt.Sprintf("a biz_tag of at most %d characters", maxBizTag)
	}
	return ""
}

// leafAddress returns the configuration of the database connection, and the property that names the
// database. cfg is nil if no property does.
func leafAddress(p spi.Props) (prop string, cfg *mysql.Config, err error) {
	url, dsn := p.Secret("leaf.jdbc.url").Reveal(), p.Secret("dsn").Reveal()
	if !p.Has("leaf.jdbc.url") && !p.Has("dsn") {
		dsn = p.HostDSN().Reveal()
	}
	user, password := p.String("leaf.jdbc.username", ""), p.Secret("leaf.jdbc.password").Reveal()
	switch {
	case url != "" && dsn != "":
		return "", nil, &spi.PropError{Name: "dsn", Want: "no value when leaf.jdbc.url is set"}
	case url != "":
		prop = "leaf.jdbc.url"
		cfg, err = parseJDBC(url)
	case dsn != "":
		prop = "dsn"
		cfg, err = mysqldb.ParseDSN("dsn", dsn, "user:pass@tcp(127.0.0.1:3306)/leaf")
	}
	if cfg == nil || err != nil {
		return "", nil, err
	}
	if user != "" {
		cfg.User = user
	}
	if password != "" {
		cfg.Passwd = password
	}
	return prop, cfg, nil
}

// leafRow claims numbers by raising max_id in a row of leaf_alloc.
type leafRow struct {
	*server
	key string
	gap int64 // added to max_id if the server has changed; 0 for none

	base  int64     // the row's step
	least int64     // end of the claimed numbers; 0 before the first claim
	one   *sql.Stmt // claimOne, prepared on the connection
	// echoes reports whether the server returns LAST_INSERT_ID(expr) of an UPDATE in its OK packet.
	echoes bool
}

const (
	selectStep = "SELECT step FROM leaf_alloc WHERE biz_tag = ?"
	// claimOne claims numbers in one statement, on servers that echo.
	claimOne = "UPDATE leaf_alloc SET max_id = LAST_INSERT_ID(max_id + ?) " +
		"WHERE biz_tag = ? AND max_id >= ? AND max_id <= ?"
	selectRow = "SELECT IF(max_id > 9223372036854775807, 9223372036854775807, max_id) FROM leaf_alloc WHERE biz_tag = ? FOR UPDATE"
	// claimSwap is the second statement of the transaction. Comparing max_id makes it correct even
	// if the storage engine ignores FOR UPDATE.
	claimSwap = "UPDATE leaf_alloc SET max_id = LAST_INSERT_ID(?) WHERE biz_tag = ? AND max_id = ?"
)

// connected compares the server with the previous one. It also reads the row's step, which an
// operator may have changed.
func (l *leafRow) connected(ctx context.Context, conn *sql.Conn) error {
	l.one = nil
	if err := l.compareServer(ctx, conn); err != nil {
		return err
	}
	steps, err := integers(ctx, conn, selectStep, l.key)
	if err != nil {
		return err
	}
	if l.base, err = l.onlyRow(steps); err == nil && l.base < 1 {
		err = l.storeError(errBadRow, "expected a step of 1 or more, found %d; correct the row, for example to 1000", l.base)
	}
	return err
}

func (l *leafRow) step() int64 { return l.base }

func (l *leafRow) claim(ctx context.Context, conn *sql.Conn, n int64) (run, error) {
	least := int64(math.MinInt64)
	if l.least > 0 {
		least = l.least
	}
	var first int64
	var err error
	if l.echoes {
		first, err = l.claimOne(ctx, conn, n, least)
	}
	if first == 0 && err == nil {
		first, err = l.claimSwap(ctx, conn, n, least)
	}
	if err != nil {
		return run{}, err
	}
	l.least = first + n
	return run{first, n, 1}, nil
}

// claimOne claims numbers in one statement. It returns 0 if it claimed nothing that can be handed
// out. The transaction then claims the numbers or finds the reason.
func (l *leafRow) claimOne(ctx context.Context, conn *sql.Conn, n, least int64) (first int64, err error) {
	if l.one == nil {
		// A prepared statement needs one round trip. Its query contains no values, so the
		// connection's character set doesn't matter.
		if l.one, err = conn.PrepareContext(ctx, claimOne); err != nil {
			return 0, err
		}
	}
	res, err := l.one.ExecContext(ctx, n, l.key, least, math.MaxInt64-n)
	if err != nil {
		return 0, err
	}
	switch rows, _ := res.RowsAffected(); {
	case rows == 0:
		return 0, nil
	case rows > 1:
		return 0, l.notUnique()
	}
	if end, _ := res.LastInsertId(); end > n && end-n >= least {
		return end - n, nil
	}
	// Another server at the same address, which doesn't echo. The numbers that were just claimed
	// become a gap.
	l.echoes = false
	return 0, nil
}

// errRaced is the error if another client changed the row between read and write.
var errRaced = errors.New("another client changed the row of leaf_alloc")

// claimSwap claims numbers in a transaction, as Leaf does. It also finds out whether the server
// echoes.
func (l *leafRow) claimSwap(ctx context.Context, conn *sql.Conn, n, least int64) (int64, error) {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	values, err := integers(ctx, tx, selectRow, l.key)
	if err != nil {
		return 0, err
	}
	maxID, err := l.onlyRow(values)
	if err != nil {
		return 0, err
	}
	switch {
	case maxID < least:
		return 0, l.storeError(errMovedBack, "max_id is %d, but all numbers below %d were claimed before; "+
			"set max_id above all numbers that any process has claimed", maxID, least)
	case maxID > math.MaxInt64-n:
		return 0, l.storeError(errExhausted, "%s", l.end)
	}
	first := max(maxID, 1) // a key is at least 1
	res, err := tx.ExecContext(ctx, claimSwap, first+n, l.key, maxID)
	if err != nil {
		return 0, err
	}
	if rows, _ := res.RowsAffected(); rows != 1 {
		return 0, errRaced
	}
	if err := tx.Commit(); err != nil {
		return 0, err
	}
	echoed, _ := res.LastInsertId()
	l.echoes = echoed == first+n
	return first, nil
}

func (l *leafRow) onlyRow(values []int64) (int64, error) {
	switch len(values) {
	case 0:
		return 0, l.storeError(errUnknownKey, "leaf_alloc has no row for this key; "+
			"run INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('%s', 1, 1000), with max_id above all keys in use", l.key)
	case 1:
		return values[0], nil
	}
	return 0, l.notUnique()
}

func (l *leafRow) notUnique() error {
	return l.storeError(errBadRow, "leaf_alloc has several rows for this key; make biz_tag the primary key")
}

// integers returns the integers in the only column of a query.
func integers(ctx context.Context, q mysqldb.Querier, query string, args ...any) (values []int64, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v int64
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, rows.Err()
}

// If an asynchronous replica becomes the primary, it may lack the last claims that the old server
// acknowledged. An additional row of leaf_alloc therefore has the name of the server in its
// description. On the first connection to another server, max_id is raised by a gap, so that the
// numbers of lost claims aren't handed out again.

const (
	selectServer = "SELECT description FROM leaf_alloc WHERE biz_tag = ?"
	insertServer = "INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES (?, 1, 1, ?)"
	updateServer = "UPDATE leaf_alloc SET description = ? WHERE biz_tag = ? AND description = ?"
	raiseMax     = "UPDATE leaf_alloc SET max_id = max_id + ? WHERE biz_tag = ?"
)

// noteKey returns the biz_tag of the row with the server's name for a key. Keys contain no slash.
func noteKey(key string) string {
	const prefix = "shardkey/server/"
	if len([]rune(prefix+key)) > maxBizTag {
		sum := sha256.Sum256([]byte(key))
		return prefix + hex.EncodeToString(sum[:])
	}
	return prefix + key
}

// compareServer compares the server of a new connection with the recorded server.
func (l *leafRow) compareServer(ctx context.Context, conn *sql.Conn) error {
	if l.gap == 0 {
		return nil
	}
	l.warning.Store("")
	err := l.compareNote(ctx, conn)
	switch mysqldb.Number(err) {
	case sqlerr.TableDenied, sqlerr.ColumnDenied, sqlerr.UnknownColumn:
		l.warning.Store(fmt.Sprintf("cannot record the server of leaf_alloc, so a failover to a replica without "+
			"the last claims would not be noticed: %v; GRANT SELECT, INSERT, UPDATE ON leaf_alloc", err))
		return nil
	}
	return err
}

func (l *leafRow) compareNote(ctx context.Context, conn *sql.Conn) error {
	server, err := mysqldb.ServerID(ctx, conn)
	if err != nil || server == "" {
		return err
	}
	noted, err := l.notedServer(ctx, conn)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = conn.ExecContext(ctx, insertServer, noteKey(l.key), server)
		if mysqldb.Number(err) != sqlerr.DuplicateKey {
			return err
		}
		noted, err = l.notedServer(ctx, conn)
	}
	if err != nil || noted == server {
		return err
	}
	return l.leaveGap(ctx, conn, noted, server)
}

func (l *leafRow) notedServer(ctx context.Context, conn *sql.Conn) (string, error) {
	var noted sql.NullString
	err := conn.QueryRowContext(ctx, selectServer, noteKey(l.key)).Scan(&noted)
	return noted.String, err
}

// leaveGap raises max_id and records the server in one transaction. If several processes try, one
// of them succeeds.
func (l *leafRow) leaveGap(ctx context.Context, conn *sql.Conn, noted, server string) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	res, err := tx.ExecContext(ctx, updateServer, server, noteKey(l.key), noted)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return err // another process was faster
	}
	if _, err := tx.ExecContext(ctx, raiseMax, l.gap, l.key); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	l.warning.Store(fmt.Sprintf("leaf_alloc has moved to another server, and max_id was raised by %d. "+
		"No number repeats if this server lacks fewer claimed numbers than that "+
		"and no process uses the old server any more", l.gap))
	l.logger.Warn("shardkey: leaf_alloc failed over, numbers continue after a gap",
		"key", l.key, "store", l.name, "gap", l.gap)
	return nil
}
