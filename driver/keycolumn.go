package driver

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/shardkey/shardkey/internal/columntype"
	"github.com/shardkey/shardkey/internal/sqltext"
	"github.com/shardkey/shardkey/rewrite"
)

// keyColumn is the key column of one table as statements name it. Which keys it
// holds is asked once in a connector, with the first INSERT: under IGNORE and in
// a lax sql_mode the server stores what is left of a key that does not fit, and
// says nothing.
type keyColumn struct {
	schema, table, name string
	known               atomic.Pointer[keyType] // nil: to be asked
}

// keyColumn returns the key column of an insert's table.
func (c *columnCache) keyColumn(in *rewrite.Insert) *keyColumn {
	return c.column(in, in.Table.KeyColumn)
}

// column returns a column of an insert's table, of which the type is to be known.
func (c *columnCache) column(in *rewrite.Insert, name string) *keyColumn {
	key := keyColumn{schema: in.Schema, table: in.Name, name: name}
	c.mu.Lock()
	defer c.mu.Unlock()
	id := [3]string{key.schema, key.table, key.name}
	k, ok := c.keys[id]
	if !ok {
		if c.keys == nil || len(c.keys) >= maxColumnTables {
			c.keys = map[[3]string]*keyColumn{}
		}
		k = &keyColumn{schema: key.schema, table: key.table, name: key.name}
		c.keys[id] = k
	}
	return k
}

// learn asks for the column's type unless it is known. A server that does not
// tell is not asked again: any key is taken to fit then.
func (k *keyColumn) learn(ctx context.Context, s *session) error {
	if k.known.Load() != nil {
		return nil
	}
	return k.ask(ctx, s)
}

func (k *keyColumn) ask(ctx context.Context, s *session) error {
	var column shownColumn
	beside := false
	literal, _ := sqltext.AppendLiteral(nil, k.name)
	where := " WHERE Field = " + string(literal) + " OR Extra LIKE '%auto_increment%'"
	err := s.showColumns(ctx, sqltext.QuoteTable(k.schema, k.table), where, func(c shownColumn) {
		if strings.EqualFold(c.name, k.name) {
			column = c
		} else {
			beside = true
		}
	})
	if err != nil && isFatal(ctx, err) {
		return err
	}
	known := &keyType{Type: columntype.Parse(column.typ)}
	known.collation, known.beside, known.storage = column.collation, beside, s.storageOf(column)
	if err := k.askTriggers(ctx, s, known); err != nil {
		return err
	}
	known.plain = !known.beside && !known.triggered && !known.readsLastID && known.HoldsAll()
	k.known.Store(known)
	return nil
}

// askTriggers finds out whether a trigger before INSERT may give rows another key:
// its body names the column. It also finds out whether a trigger reads LAST_INSERT_ID().
// Triggers that the user may not see are not known.
func (k *keyColumn) askTriggers(ctx context.Context, s *session, known *keyType) error {
	const event, body, timing = 1, 3, 4
	from := ""
	if k.schema != "" {
		from = " FROM " + sqltext.QuoteIdentifier(k.schema)
	}
	table, _ := sqltext.AppendLiteral(nil, k.table)
	err := s.queryRows(ctx, "SHOW TRIGGERS"+from+" WHERE `Table` = "+string(table), func(row []driver.Value) {
		if len(row) <= timing {
			return
		}
		statement, inserts := text(row[body]), strings.Contains(text(row[event]), "INSERT")
		if inserts && strings.Contains(strings.ToLower(statement), strings.ToLower(k.name)) && text(row[timing]) == "BEFORE" {
			known.triggered = true
		}
		known.readsLastID = known.readsLastID || rewrite.MentionsLastInsertID(statement)
	})
	if err != nil && !isFatal(ctx, err) {
		err = nil // a server without triggers, or a mock
	}
	return err
}

// check returns an error when generated keys do not fit. A column that was
// altered since is asked for again.
func (k *keyColumn) check(ctx context.Context, s *session, t *table, keys *rewrite.Keys) error {
	if err := k.learn(ctx, s); err != nil || k.known.Load().unfit(keys) < 0 {
		return err
	}
	if err := k.ask(ctx, s); err != nil {
		return err
	}
	known := k.known.Load()
	i := known.unfit(keys)
	if i < 0 {
		return nil
	}
	return &NarrowColumnError{
		Table: sqltext.QuoteTable(k.schema, k.table), Column: k.name, Type: known.Text,
		Generator: t.rule.GeneratorName, Key: keys.At(i),
	}
}

// isTriggered reports whether a trigger may give a row another key.
func (k *keyColumn) isTriggered() bool {
	known := k.known.Load()
	return known != nil && known.triggered
}

// readsLastID reports whether a trigger of the table reads LAST_INSERT_ID().
func (k *keyColumn) readsLastID() bool {
	known := k.known.Load()
	return known != nil && known.readsLastID
}

// isBeside reports whether another column of the table has AUTO_INCREMENT.
func (k *keyColumn) isBeside() bool {
	known := k.known.Load()
	return known != nil && known.beside
}

// holds reports whether the column can hold a key that a statement gave, as far
// as that is known.
func (k *keyColumn) holds(key any) bool {
	known := k.known.Load()
	return known == nil || key == nil || known.Holds(key)
}

// shownColumn is what SHOW FULL COLUMNS says of a column.
type shownColumn struct{ name, typ, collation, null string }

// keepsStrings reports whether the column holds strings, as far as that is known.
func (k *keyColumn) keepsStrings(ctx context.Context, s *session) (bool, error) {
	if err := k.learn(ctx, s); err != nil {
		return false, err
	}
	form := k.known.Load().Form
	return form == columntype.Chars || form == columntype.Bytes, nil
}

// showColumns asks for a table's columns, a temporary one's too.
func (s *session) showColumns(ctx context.Context, table, where string, each func(shownColumn)) error {
	const field, typ, collation, null = 0, 1, 2, 3
	return s.queryRows(ctx, "SHOW FULL COLUMNS FROM "+table+where, func(row []driver.Value) {
		if len(row) > collation {
			c := shownColumn{name: text(row[field]), typ: text(row[typ]), collation: text(row[collation])}
			if len(row) > null {
				c.null = text(row[null])
			}
			each(c)
		}
	})
}

// NarrowColumnError is the error for a generated key that the key column cannot
// hold, an INT the keys of SNOWFLAKE for one. The statement was not sent.
// [ErrUnsupportedStatement] is in its chain.
type NarrowColumnError struct {
	Table     string // quoted, as the statement names it
	Column    string
	Type      string // the column's, as the server shows it
	Generator string // the generator's name in the rule
	Key       any    // the first that does not fit
}

func (e *NarrowColumnError) Error() string {
	key, _ := sqltext.AppendLiteral(nil, e.Key)
	return fmt.Sprintf("%v: generator %s made the key %s, which column %s of %s, %s, cannot hold; ALTER TABLE %s MODIFY %s %s",
		ErrUnsupportedStatement, e.Generator, key, e.Column, e.Table, e.Type, e.Table, sqltext.QuoteIdentifier(e.Column), e.wanted())
}

func (e *NarrowColumnError) Unwrap() error { return ErrUnsupportedStatement }

// wanted is a type that holds the key.
func (e *NarrowColumnError) wanted() string {
	const uuid = 36
	switch key := e.Key.(type) {
	case string:
		return "VARCHAR(" + strconv.Itoa(max(uuid, utf8.RuneCountInString(key))) + ") NOT NULL"
	case []byte:
		return "VARBINARY(" + strconv.Itoa(len(key)) + ") NOT NULL"
	case uint64:
		if key > math.MaxInt64 {
			return "BIGINT UNSIGNED NOT NULL"
		}
	}
	return "BIGINT NOT NULL"
}

// keyType is a key column's type, and what else of its table matters to its keys.
type keyType struct {
	*columntype.Type
	storage
	collation string
	// beside: another column has AUTO_INCREMENT, and the server's insert ids are
	// that one's.
	beside bool
	// triggered: a trigger may give a row another key than the statement does.
	triggered bool
	// readsLastID: a trigger reads LAST_INSERT_ID(), which must not be the new key yet.
	readsLastID bool
	// plain: none of that is so, and the column holds all keys that are not negative.
	plain bool
}

// unfit is the first key that does not fit, −1 when all do.
func (t *keyType) unfit(keys *rewrite.Keys) int {
	if t.Form == columntype.Integer {
		for i, key := range keys.Ints {
			if key < t.Low || key > 0 && uint64(key) > t.High {
				return i
			}
		}
	} else if t.Form != columntype.Any {
		for i, key := range keys.Ints {
			if !t.Holds(key) {
				return i
			}
		}
	}
	for i, key := range keys.Values {
		if !t.Holds(key) {
			return i
		}
	}
	return -1
}
