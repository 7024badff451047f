package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/explain"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

var update = flag.Bool("update", false, "write the expected lines of testdata/scripts.txt")

// TestScripts runs the scripts of testdata/scripts.txt, each on a connection to a fake server, and
// compares what the server receives and what the program gets with the indented lines. The flag
// -update writes these lines.
func TestScripts(t *testing.T) {
	const file = "testdata/scripts.txt"
	content := string(must(os.ReadFile(file))(t))
	var all []string
	for i, text := range strings.Split(content, "\n\n") {
		name, _, _ := strings.Cut(text, "\n")
		all = append(all, strings.TrimSuffix(text, "\n"))
		t.Run(strings.TrimPrefix(name, "# "), func(t *testing.T) {
			have := runScript(t, text)
			if have != all[i] && !*update {
				t.Errorf("have:\n%s\nwant:\n%s", have, text)
			}
			all[i] = have
		})
	}
	if *update && !t.Failed() {
		noError(t, os.WriteFile(file, []byte(strings.Join(all, "\n\n")+"\n"), 0o644))
	}
}

// serverScript is the server of a script, and its program's connection.
type serverScript struct {
	fakedb.Server
	rule    *rule.Rule
	config  Config
	conn    *conn
	stmt    driver.Stmt
	replies []scriptReply
	keys    []int64
	last    string
	faultAt int // index of the call that fails, -1 for none
	failing string
}

// scriptReply is the server's reply to the next statement that contains part.
type scriptReply struct {
	verb   string // prepare, or empty for an execution
	part   string
	result driver.Result
	rows   driver.Rows
	err    error
}

// typedRows are rows whose columns have types.
type typedRows struct {
	fakedb.Rows
	types []string
}

func (r *typedRows) ColumnTypeDatabaseTypeName(i int) string { return r.types[i] }

// GenerateInt64Keys returns the keys of the script.
func (s *serverScript) GenerateInt64Keys(_ context.Context, _ spi.Column, keys []int64) error {
	n := copy(keys, s.keys)
	if s.keys = s.keys[n:]; n < len(keys) {
		return fmt.Errorf("%d keys are missing", len(keys)-n)
	}
	return nil
}

func (s *serverScript) GenerateKeys(ctx context.Context, c spi.Column, n int) ([]any, error) {
	return spi.KeysFromInts(ctx, s, c, n)
}

func (s *serverScript) reply(query string) (r scriptReply, ok bool) { return s.replyTo("", query) }

// replyTo returns the reply to the preparation of a query, or to its execution.
func (s *serverScript) replyTo(verb, query string) (r scriptReply, ok bool) {
	i := slices.IndexFunc(s.replies, func(r scriptReply) bool { return r.verb == verb && strings.Contains(query, r.part) })
	if i < 0 {
		return r, false
	}
	r = s.replies[i]
	s.replies = slices.Delete(s.replies, i, i+1)
	return r, true
}

// scriptTables are the tables of all scripts: the key column of each, and a setting.
var scriptTables = []string{"t.id", "u.id", "kept.id keep", "batch.id consecutive"}

// scriptRules are the rules of scripts that need another one.
var scriptRules = map[string]func(*testing.T) *rule.Rule{
	"hashes": func(t *testing.T) *rule.Rule { return bitsRule(t, "hash") },
	"genes":  func(t *testing.T) *rule.Rule { return bitsRule(t, "number") },
	"shards": func(t *testing.T) *rule.Rule { return shardedRule(t, "") },
	"keys": func(t *testing.T) *rule.Rule {
		return mustParseRule(t, ruleText("t ds_${0..1}.t_${0..2} id:two day:three id:genes", "", `
  keyGenerators:
    genes: {type: SNOWFLAKE, props: {worker-id: 1, gene-column: user_id, gene-bits: 4}}
  shardingAlgorithms:
    two: {type: MOD, props: {sharding-count: 2}}
    three: {type: MOD, props: {sharding-count: 3}}
`))
	},
	"twice": func(t *testing.T) *rule.Rule {
		return mustParseRule(t, ruleText("t ds_${0..1}.t_${0..1} user_id:two id:two key:keys", "", `
  keyGenerators:
    keys: {type: SHARD_COUNTER}
  shardingAlgorithms:
    two: {type: HASH_MOD, props: {sharding-count: 2}}
`))
	},
	"warn": func(t *testing.T) *rule.Rule { return shardedRule(t, ", shardGuard: warn") },
}

func newServerScript() *serverScript {
	s := &serverScript{config: Config{Server: "mysql"}, last: "0", faultAt: -1}
	s.Columns = [][2]string{{"id", "bigint"}, {"a", "int"}}
	s.Exec = func(query string) (driver.Result, error) {
		if r, ok := s.reply(query); ok {
			return r.result, r.err
		}
		return nil, driver.ErrSkip
	}
	s.Stmt = func(query string) (driver.Stmt, error) {
		if r, ok := s.replyTo("prepare", query); ok {
			return nil, r.err
		}
		return nil, driver.ErrSkip
	}
	s.Query = func(query string) (driver.Rows, error) {
		if r, ok := s.reply(query); ok && r.rows == nil && r.err == nil {
			return &fakedb.Rows{}, nil
		} else if ok && r.rows != nil {
			return r.rows, r.err
		} else if ok {
			return nil, r.err
		}
		return nil, driver.ErrSkip
	}
	return s
}

func runScript(t *testing.T, text string) string {
	s := newServerScript()
	var out, before []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, "\t") {
			continue
		}
		out = append(out, line)
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		var have []string
		if statement, ok := strings.CutPrefix(line, "each call fails: "); ok {
			have = eachCallFails(t, before, statement, &mysql.MySQLError{Number: 1205, Message: "timeout"})
		} else if statement, ok := strings.CutPrefix(line, "each call loses the connection: "); ok {
			have = eachCallFails(t, before, statement, driver.ErrBadConn)
		} else {
			have = s.step(t, line)
			before = append(before, line)
		}
		for _, l := range have {
			out = append(out, "\t"+withoutTime(l))
		}
	}
	for _, r := range s.replies {
		out = append(out, "\tthe reply to "+r.part+" is left")
	}
	return strings.Join(out, "\n")
}

// eachCallFails executes a statement once for each call of the server's connection, which fails
// with an error.
func eachCallFails(t *testing.T, before []string, statement string, err error) (out []string) {
	for n := 0; ; n++ {
		s := newServerScript()
		for _, line := range before {
			s.step(t, line)
		}
		s.connect(t)
		s.faultAt = n
		s.Faults = []fakedb.Fault{{Skip: n, Err: err}}
		have := s.step(t, statement)
		if len(s.Faults) > 0 {
			return out
		}
		out = append(append(out, "failing: "+s.failing), have...)
	}
}

// connect opens the connection at the first statement.
func (s *serverScript) connect(t *testing.T) {
	if s.conn != nil {
		return
	}
	if s.rule == nil {
		s.rule = generatorRule(t, s, scriptTables...)
	}
	logger := slog.New(slog.DiscardHandler)
	c := must(NewConnector(&s.Server, s.rule, s.config, WithLogger(logger)))(t)
	s.conn = must(c.Connect(t.Context()))(t).(*conn)
	s.conn.session.Begin("app")
	t.Cleanup(func() { _ = s.conn.Close() })
	s.Forget()
}

// step executes a line of a script and returns what happens.
func (s *serverScript) step(t *testing.T, line string) []string {
	command, rest, _ := strings.Cut(line, " ")
	switch command {
	case "server":
		s.config.Server, s.Version, _ = strings.Cut(rest, " ")
		if s.Version != "" {
			s.config.Server, s.Comment = "auto", s.config.Server
		}
	case "statements":
		s.config.Statements = rest
	case "verify":
		s.config.Verify = rest
	case "kind":
		s.Kind = fakedb.Kind(rest)
	case "mode":
		s.Mode = rest
	case "columns":
		s.Columns = nil
		for _, c := range strings.Split(rest, ", ") {
			name, typ, _ := strings.Cut(c, " ")
			s.Columns = append(s.Columns, [2]string{name, typ})
		}
	case "keys":
		for _, f := range strings.Fields(rest) {
			s.keys = append(s.keys, must(strconv.ParseInt(f, 10, 64))(t))
		}
	case "values":
		var keys []any
		for _, f := range strings.Fields(rest) {
			keys = append(keys, scriptValue(f))
		}
		s.rule = generatorRule(t, listed(keys...), scriptTables...)
	case "rule":
		s.rule = scriptRules[rest](t)
	case "reply":
		s.replies = append(s.replies, parseReply(t, rest))
	case "exec", "query", "plan", "prepare", "execute", "fetch":
		s.connect(t)
		return s.run(t, command, rest)
	default:
		t.Fatalf("unknown line %q", line)
	}
	return nil
}

func scriptValue(text string) driver.Value {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return f
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day
	}
	if text == "NULL" {
		return nil
	}
	return strings.Trim(text, "'")
}

// parseReply parses a reply: the part of the statement, " => ", and a result, rows or an error.
func parseReply(t *testing.T, text string) (r scriptReply) {
	part, reply, ok := strings.Cut(text, " => ")
	if !ok {
		t.Fatalf("expected PART => REPLY, found %q", text)
	}
	r.part = part
	if verb, prepared, ok := strings.Cut(part, " "); ok && verb == "prepare" {
		r.verb, r.part = verb, prepared
	}
	switch kind, rest, _ := strings.Cut(reply, " "); strings.TrimSuffix(kind, ":") {
	case "error":
		number, message, _ := strings.Cut(rest, " ")
		r.err = &mysql.MySQLError{Number: uint16(must(strconv.Atoi(number))(t)), Message: message}
	case "rows": // columns: values; values. A column may have a type: name/TYPE.
		var of typedRows
		names, rows, _ := strings.Cut(strings.TrimPrefix(reply, "rows"), ":")
		for name := range strings.FieldsSeq(names) {
			name, typ, _ := strings.Cut(name, "/")
			of.Names, of.types = append(of.Names, name), append(of.types, typ)
		}
		for row := range strings.SplitSeq(rows, ";") {
			var values []driver.Value
			for _, v := range strings.Fields(row) {
				values = append(values, scriptValue(v))
			}
			if values != nil {
				of.Values = append(of.Values, values)
			}
		}
		r.rows = &of
	case "affected": // 1,1 id 7,8
		affected, ids, _ := strings.Cut(rest, " id ")
		list := func(text string) (all []int64) {
			for _, f := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
				all = append(all, must(strconv.ParseInt(f, 10, 64))(t))
			}
			return all
		}
		of := baseResults{list(affected), list(ids)}
		for len(of.ids) < len(of.affected) {
			of.ids = append(of.ids, 0)
		}
		r.result = of
	default:
		t.Fatalf("unknown reply %q", reply)
	}
	return r
}

// run executes a statement, and returns the calls of the server's connection and the outcome.
func (s *serverScript) run(t *testing.T, command, text string) (out []string) {
	if command == "plan" {
		return s.plan(text)
	}
	query, list, _ := strings.Cut(text, " | ")
	if command == "execute" || command == "fetch" {
		query, list = "", text
	}
	var args []driver.NamedValue
	for i, f := range strings.Fields(list) {
		args = append(args, driver.NamedValue{Ordinal: i + 1, Value: scriptValue(f)})
	}
	var keys *Keys
	ctx := t.Context()
	if after, ok := strings.CutSuffix(query, " WITH KEYS"); ok {
		query, keys = after, new(Keys)
		ctx = WithKeys(ctx, keys)
	}
	var res driver.Result
	var rows driver.Rows
	var err error
	switch command {
	case "exec":
		res, err = s.conn.ExecContext(ctx, query, args)
	case "query":
		rows, err = s.conn.QueryContext(ctx, query, args)
	case "prepare":
		if s.stmt, err = s.conn.PrepareContext(ctx, query); err == nil {
			out = append(out, fmt.Sprint("inputs ", s.stmt.NumInput()))
		}
	case "execute":
		res, err = s.stmt.(driver.StmtExecContext).ExecContext(ctx, args)
	case "fetch":
		rows, err = s.stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	}
	if rows != nil {
		err = errors.Join(err, rows.Close())
	}
	out = append(out, s.calls()...)
	if err != nil {
		t.Log(err)
		out = append(out, "error "+scriptError(err))
	}
	if res != nil {
		id, _ := res.LastInsertId()
		affected, _ := res.RowsAffected()
		line := fmt.Sprintf("affected %d, id %d", affected, id)
		switch of := res.(type) {
		case *result:
			line += fmt.Sprintf(", ids %v", of.AllLastInsertIds())
		case *results:
			line += fmt.Sprintf(", ids %v", of.ids)
			if len(of.affected) > 1 {
				line += fmt.Sprintf(", all affected %v", of.affected)
			}
		}
		out = append(out, line)
	}
	if keys != nil {
		out = append(out, fmt.Sprintf("WithKeys %v", keys.Values()))
	}
	l := s.conn.session.LastID()
	last := "the server has it"
	if l.Known() {
		last = fmt.Sprint(l.Value())
	}
	if !l.Synced() {
		last += ", the server has another"
	}
	if last != s.last {
		out = append(out, "LAST_INSERT_ID() "+last)
	}
	s.last = last
	return out
}

var longQuery = regexp.MustCompile(`\(SELECT CAST\(1 .*information_schema.*\) LIMIT \d+`)

// calls returns the calls of the server's connection after the one that fails, except the questions
// about the columns and the session.
func (s *serverScript) calls() (out []string) {
	for i, call := range s.Calls {
		call = longQuery.ReplaceAllString(call, "(SELECT … FROM information_schema …)")
		if i == s.faultAt {
			s.failing, out = call, nil
		}
		if i != s.faultAt && !strings.HasSuffix(call, "close") && !strings.Contains(call, " SHOW ") && !strings.Contains(call, "information_schema") && !strings.Contains(call, " SELECT @@character_set_client") {
			out = append(out, "> "+call)
		}
	}
	s.Forget()
	return out
}

func scriptError(err error) string {
	var refused *StatementError
	var server *mysql.MySQLError
	switch {
	case errors.As(err, &refused):
		return fmt.Sprintf("%s: table %s, row %d", refused.Reason, refused.Table, refused.Row)
	case errors.As(err, &server):
		return fmt.Sprintf("of the server: %d %s", server.Number, server.Message)
	}
	return err.Error()
}

func (s *serverScript) plan(query string) []string {
	p, err := s.conn.connector.Plan(query)
	if err != nil {
		return []string{"error " + scriptError(err)}
	}
	out := []string{fmt.Sprintf("%q, literal %v, verified %q", p.Query(), p.KeysInText, p.Verified)}
	if p.Insert != nil {
		out = append(out, fmt.Sprintf("table %s, strings %v", p.Detail.Table, p.Insert.Table.Strings))
		out = append(append(out, explain.Rows(p.Insert, 5)...), p.Detail.Notes...)
	}
	for _, fact := range p.Assumes {
		out = append(out, "assumes that "+fact)
	}
	return out
}

// longKey matches a key of snowflake, which differs each time.
var longKey = regexp.MustCompile(`\b[1-8][0-9]{18}\b`)

// withoutTime replaces each key of snowflake by its shard bits.
func withoutTime(text string) string {
	return longKey.ReplaceAllStringFunc(text, func(key string) string {
		n, _ := strconv.ParseInt(key, 10, 64)
		return fmt.Sprintf("…%04b", n&15)
	})
}

// baseResults are go-sql-driver's of several statements.
type baseResults struct{ affected, ids []int64 }

var _ mysql.Result = baseResults{}

func (r baseResults) AllRowsAffected() []int64     { return r.affected }
func (r baseResults) AllLastInsertIds() []int64    { return r.ids }
func (r baseResults) RowsAffected() (int64, error) { return r.affected[len(r.affected)-1], nil }
func (r baseResults) LastInsertId() (int64, error) { return r.ids[len(r.ids)-1], nil }
