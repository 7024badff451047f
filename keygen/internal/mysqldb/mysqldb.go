// Package mysqldb is what the generators and assigners that keep their state in
// MySQL share: addresses, the session that they need, and the server's errors.
package mysqldb

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/spi"
)

// ParseDSN reads a DSN in go-sql-driver's form and sets the session that our
// statements need. The error is a [*spi.PropError] for the property prop, whose
// example is a right value. It passes on only those of the driver's words that
// are fixed texts: the others quote parts of the DSN, and a password may be
// among them.
func ParseDSN(prop, dsn, example string) (*mysql.Config, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		want := "a DSN in go-sql-driver's form, as " + example
		if text := err.Error(); strings.HasPrefix(text, "invalid DSN: ") {
			want += " (" + text + ")"
		}
		return nil, &spi.PropError{Name: prop, Want: want}
	}
	if database, _, _ := strings.Cut(dsn[strings.LastIndexByte(dsn, '/')+1:], "?"); strings.ContainsAny(database, "@()") {
		// A password with a slash and no database after it: what is taken for the
		// database is the end of the password.
		return nil, &spi.PropError{Name: prop, Want: "a database after the last '/', which a password with a '/' needs as well, as " + example}
	}
	if strings.ContainsAny(cfg.Net, ":/?&=@() ") || cfg.Net != "unix" && strings.ContainsAny(cfg.Addr, "=@,/?") {
		// An address of another form, as JDBC's: what it calls a host may be anything.
		return nil, &spi.PropError{Name: prop, Want: "a DSN in go-sql-driver's form, as " + example}
	}
	OwnSession(cfg)
	return cfg, nil
}

// OwnSession fixes what an address may set otherwise. With autocommit off a
// claim would be rolled back after its numbers were handed out, and a lease
// never committed; without a strict mode a column that is too narrow would be
// cut off silently. What the driver would log, it returns as well.
func OwnSession(cfg *mysql.Config) {
	SetSession(cfg, map[string]string{"autocommit": "1", "sql_mode": "'STRICT_ALL_TABLES'"})
	cfg.MultiStatements = false
	cfg.Logger = &mysql.NopLogger{}
}

// SetSession sets session variables, named in small letters, in place of what the
// address says of them.
func SetSession(cfg *mysql.Config, variables map[string]string) {
	params := maps.Clone(variables)
	for name, value := range cfg.Params {
		if _, ours := variables[strings.ToLower(name)]; !ours {
			params[name] = value
		}
	}
	cfg.Params = params
}

// NewConnector makes the connector of a configuration. The error is a
// [*spi.PropError] for the property prop.
func NewConnector(prop string, cfg *mysql.Config) (driver.Connector, error) {
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, &spi.PropError{Name: prop, Want: "an address that go-sql-driver can use"}
	}
	return c, nil
}

// Name is a database's network, address and name, without user and password.
func Name(cfg *mysql.Config) string {
	return fmt.Sprintf("%s(%s)/%s", cfg.Net, cfg.Addr, cfg.DBName)
}

// QuoteTable quotes "table" or "schema.table" for a statement. It is false when
// text is neither.
func QuoteTable(text string) (quoted string, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) > 2 {
		return "", false
	}
	for i, part := range parts {
		// 64 characters is the server's limit:
		// https://dev.mysql.com/doc/refman/en/identifier-length.html
		if part == "" || len([]rune(part)) > 64 || strings.Contains(part, "\x00") {
			return "", false
		}
		parts[i] = QuoteName(part)
	}
	return strings.Join(parts, "."), true
}

// QuoteName quotes one identifier.
func QuoteName(name string) string {
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}

// Numbers of the servers' errors that have a way out of their own:
// https://dev.mysql.com/doc/mysql-errors/en/server-error-reference.html
const (
	ErrOutOfRangeMariaDB = 167
	ErrDBAccessDenied    = 1044
	ErrAccessDenied      = 1045
	ErrNoDatabase        = 1046
	ErrUnknownColumn     = 1054
	ErrDuplicateKey      = 1062
	ErrTableDenied       = 1142
	ErrColumnDenied      = 1143
	ErrNoSuchTable       = 1146
	ErrLockTimeout       = 1205
	ErrDeadlock          = 1213
	ErrNotSupported      = 1235
	ErrOutOfRangeColumn  = 1264
	ErrDataTruncated     = 1265
	ErrReadOnly          = 1290
	ErrWrongValue        = 1366
	ErrDataTooLong       = 1406
	ErrNoAutoIncrement   = 1467
	ErrOutOfRange        = 1690

	ErrReadOnlyTransaction = 1792
	ErrReadOnlyMode        = 1836
)

// Querier is what a question is asked of: a pool, a connection or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// ServerID names the server that answers, in at most 64 bytes: another one says another
// name, and the nodes of a Galera cluster or a group say one. It is empty where a
// server has no name of its own that it could be known by, as in TiDB and Vitess.
func ServerID(ctx context.Context, q Querier) (string, error) {
	rows, err := q.QueryContext(ctx, "SHOW VARIABLES WHERE Variable_name IN ('version', 'version_comment', 'server_uuid', 'server_id', 'hostname', 'port', "+
		"'wsrep_on', 'wsrep_cluster_name', 'group_replication_group_name')")
	if err != nil {
		return "", err
	}
	defer rows.Close()
	v := map[string]string{}
	for rows.Next() {
		var name, value sql.NullString
		if err := rows.Scan(&name, &value); err != nil {
			return "", err
		}
		v[strings.ToLower(name.String)] = value.String
	}
	if err := rows.Err(); err != nil {
		return "", err
	}
	return serverID(v), nil
}

// serverID makes the name of the server's variables.
func serverID(v map[string]string) string {
	version := strings.ToLower(v["version"] + " " + v["version_comment"])
	name := ""
	switch {
	case strings.Contains(version, "tidb"), strings.Contains(version, "vitess"):
		return ""
	case strings.EqualFold(v["wsrep_on"], "ON") && v["wsrep_cluster_name"] != "":
		name = "cluster " + v["wsrep_cluster_name"]
	case v["group_replication_group_name"] != "":
		name = "group " + v["group_replication_group_name"]
	case v["server_uuid"] != "":
		name = v["server_uuid"]
	case strings.Contains(version, "mariadb"): // which has no UUID in all its versions
		name = strings.Join([]string{v["hostname"], v["port"], v["server_id"]}, " ")
	}
	if len(name) > 64 {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:])
	}
	return name
}

// Number returns the number of the server's error in err's chain, 0 for none.
func Number(err error) uint16 {
	var server *mysql.MySQLError
	if errors.As(err, &server) {
		return server.Number
	}
	return 0
}

// IsDeadlock reports whether the server has cancelled a statement because of a
// lock; it may succeed when it is repeated.
func IsDeadlock(err error) bool {
	n := Number(err)
	return n == ErrDeadlock || n == ErrLockTimeout
}

// IsReadOnly reports whether the server takes no writes, as one that was the primary
// before a switchover. go-sql-driver's rejectReadOnly ends connections on the same
// errors.
func IsReadOnly(err error) bool {
	switch Number(err) {
	case ErrReadOnly, ErrReadOnlyTransaction, ErrReadOnlyMode:
		return true
	}
	return false
}

// IsRefused reports whether the server has answered with an error that it would repeat.
func IsRefused(err error) bool {
	return Number(err) != 0 && !IsDeadlock(err) && !IsReadOnly(err)
}

// IsBroken reports whether the connection was lost, so that the outcome is not
// known, rather than that the server answered with an error.
func IsBroken(err error) bool {
	for _, e := range []error{driver.ErrBadConn, mysql.ErrInvalidConn, io.EOF, io.ErrUnexpectedEOF, sql.ErrConnDone} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
