// Package mysqldb is used by the generators and assigners that keep their state in MySQL. It parses
// addresses, sets session variables, and classifies the server's errors.
package mysqldb

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/internal/plainsession"
	"github.com/shardkey/shardkey/internal/sqlerr"
	"github.com/shardkey/shardkey/spi"
)

// ParseDSN parses a DSN in go-sql-driver's form, and sets the session variables that our statements
// need. The error is a [*spi.PropError] for the property prop, with example as a valid value. It
// contains an error message of go-sql-driver only if that is a fixed string. Other messages quote
// parts of the DSN, which may be a password.
func ParseDSN(prop, dsn, example string) (*mysql.Config, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		want := "a DSN in go-sql-driver's form, for example " + example
		if text := err.Error(); strings.HasPrefix(text, "invalid DSN: ") {
			want += " (" + text + ")"
		}
		return nil, &spi.PropError{Name: prop, Want: want}
	}
	if database, _, _ := strings.Cut(dsn[strings.LastIndexByte(dsn, '/')+1:], "?"); strings.ContainsAny(database, "@()") {
		// The password has a slash and there is no database, so the end of the password was parsed
		// as the database.
		return nil, &spi.PropError{Name: prop, Want: "a database after the last '/', for example " + example + "; it is required if the password has a '/'"}
	}
	if strings.ContainsAny(cfg.Net, ":/?&=@() ") || cfg.Net != "unix" && strings.ContainsAny(cfg.Addr, "=@,/?") {
		// The address has another form, such as a JDBC URL. The parsed host may be any part of it.
		return nil, &spi.PropError{Name: prop, Want: "a DSN in go-sql-driver's form, for example " + example}
	}
	OwnSession(cfg)
	return cfg, nil
}

// OwnSession makes a session independent of what a DSN sets for an application. Without autocommit,
// a claim would be rolled back after its numbers were used, and a lease would never be committed.
// Without a strict mode, a value would be truncated silently if its column is too narrow. Names and
// keys are UTF-8. OwnSession also discards go-sql-driver's log, because it returns the same errors.
//
// Contexts limit the statements, but go-sql-driver reads the rest of a damaged answer without one
// (rows.go, mysqlRows.Close). So each read has a limit, which is long enough for a wait for a lock.
func OwnSession(cfg *mysql.Config) {
	cfg.ReadTimeout = cmp.Or(cfg.ReadTimeout, time.Minute)
	SetSession(cfg, map[string]string{"autocommit": "1", "sql_mode": "'STRICT_ALL_TABLES'"})
	plainsession.Set(cfg)
	cfg.MultiStatements = false
	cfg.Logger = &mysql.NopLogger{}
}

// SetSession sets session variables, whose names are in lower case. They replace the variables of
// the DSN.
func SetSession(cfg *mysql.Config, variables map[string]string) {
	params := maps.Clone(variables)
	for name, value := range cfg.Params {
		if _, ours := variables[plainsession.Variable(name)]; !ours {
			params[name] = value
		}
	}
	cfg.Params = params
}

// NewConnector returns a connector for a configuration. The error is a [*spi.PropError] for the
// property prop.
func NewConnector(prop string, cfg *mysql.Config) (driver.Connector, error) {
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, &spi.PropError{Name: prop, Want: "an address that go-sql-driver can use"}
	}
	return c, nil
}

// Name returns the network, the address and the database name, without user and password.
func Name(cfg *mysql.Config) string {
	return fmt.Sprintf("%s(%s)/%s", cfg.Net, cfg.Addr, cfg.DBName)
}

// QuoteTable quotes "table" or "schema.table" for a statement. ok is false if text is neither.
func QuoteTable(text string) (quoted string, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) > 2 {
		return "", false
	}
	for i, part := range parts {
		// Servers accept at most 64 characters:
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

// Querier runs queries: a pool, a connection or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Risks returns the settings with which the server may lose acknowledged writes of "table" or
// "schema.table". database is the DSN's. MariaDB's 3 flushes more often than 1:
// https://mariadb.com/docs/server/server-usage/storage-engines/innodb/innodb-system-variables
func Risks(ctx context.Context, q Querier, database, table string) (all []string, err error) {
	schema, name, qualified := strings.Cut(table, ".")
	if !qualified {
		schema, name = database, table
	}
	var flush, engine sql.NullString
	err = q.QueryRowContext(ctx, "SELECT @@innodb_flush_log_at_trx_commit,"+
		" (SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?)",
		schema, name).Scan(&flush, &engine)
	if flush.String == "0" || flush.String == "2" {
		all = append(all, fmt.Sprintf("the server can lose committed writes in a crash, and keys can repeat "+
			"(innodb_flush_log_at_trx_commit %s); set innodb_flush_log_at_trx_commit to 1", flush.String))
	}
	if engine.Valid && !strings.EqualFold(engine.String, "InnoDB") {
		quoted, _ := QuoteTable(table)
		all = append(all, fmt.Sprintf("the table %s can lose committed writes in a crash, and keys can repeat "+
			"(engine %s); ALTER TABLE %[1]s ENGINE=InnoDB", quoted, engine.String))
	}
	return all, err
}

// ServerID returns a name that identifies the server, at most 64 bytes long. Different servers have
// different names, but all nodes of a Galera cluster or replication group have the same name. It is
// empty if the server has no such name, as with TiDB and Vitess.
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
	case strings.Contains(version, "mariadb"): // some versions have no UUID
		name = strings.Join([]string{v["hostname"], v["port"], v["server_id"]}, " ")
	}
	if len(name) > 64 {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:])
	}
	return name
}

// Number returns the number of the server error in err's chain, or 0 if there is none.
func Number(err error) uint16 {
	if server, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return server.Number
	}
	return 0
}

// IsDeadlock reports whether the server canceled a statement because of a lock. The statement may
// succeed when it is repeated.
func IsDeadlock(err error) bool {
	n := Number(err)
	return n == sqlerr.Deadlock || n == sqlerr.LockTimeout
}

// IsReadOnly reports whether the server accepts no writes, for example because it is the former
// primary after a switchover. The parameter rejectReadOnly of go-sql-driver closes connections for
// the same errors.
func IsReadOnly(err error) bool {
	switch Number(err) {
	case sqlerr.ReadOnly, sqlerr.ReadOnlyTransaction, sqlerr.ReadOnlyMode:
		return true
	}
	return false
}

// IsRefused reports whether the server returned an error that it would return again.
func IsRefused(err error) bool {
	return Number(err) != 0 && !IsDeadlock(err) && !IsReadOnly(err)
}

// IsBroken reports whether the connection was lost, so that the outcome isn't known. It returns
// false for an error that the server returned.
func IsBroken(err error) bool {
	broken := []error{driver.ErrBadConn, mysql.ErrInvalidConn, io.EOF, io.ErrUnexpectedEOF, sql.ErrConnDone}
	return slices.ContainsFunc(broken, func(e error) bool { return errors.Is(err, e) })
}
