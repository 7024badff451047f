package lint

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver" // the values in the parser's trees
)

// Mode is the part of a session's sql_mode that affects the quoting of strings and names.
type Mode uint8

const (
	ansiQuotes Mode = 1 << iota
	noBackslashEscapes
)

// ParseMode parses the value of @@sql_mode.
func ParseMode(sqlMode string) (m Mode) {
	for word := range strings.SplitSeq(sqlMode, ",") {
		switch strings.ToUpper(strings.TrimSpace(word)) {
		case "ANSI_QUOTES", "ANSI":
			m |= ansiQuotes
		case "NO_BACKSLASH_ESCAPES":
			m |= noBackslashEscapes
		}
	}
	return m
}

// longest is the length of a query up to which it is parsed: a longer one could be an
// expression that is too deep for the parser.
const longest = 64 << 10

// parse parses a query with TiDB's parser.
func parse(text string, mode Mode) (stmts []ast.StmtNode, err error) {
	if len(text) > longest {
		return nil, errors.New("the query is too long")
	}
	defer func() {
		if panicked := recover(); panicked != nil { // at an odd literal
			stmts, err = nil, fmt.Errorf("the parser panicked: %v", panicked)
		}
	}()
	p := parser.New()
	var m mysql.SQLMode
	if mode&ansiQuotes != 0 {
		m |= mysql.ModeANSIQuotes
	}
	if mode&noBackslashEscapes != 0 {
		m |= mysql.ModeNoBackslashEscapes
	}
	p.SetSQLMode(m)
	stmts, _, err = p.ParseSQL(text)
	return stmts, err
}

// QuoteTable quotes a table's name for display, with its schema if there is one.
func QuoteTable(schema, name string) string {
	quoted := "`" + strings.ReplaceAll(name, "`", "``") + "`"
	if schema != "" {
		quoted = "`" + strings.ReplaceAll(schema, "`", "``") + "`." + quoted
	}
	return quoted
}
