package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/testrouter"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// sentRows is a base that keeps the arguments of the INSERTs that it is sent.
type sentRows struct{ sent *[]driver.NamedValue }

func (c sentRows) Connect(context.Context) (driver.Conn, error) { return sentConn{sent: c.sent}, nil }
func (c sentRows) Driver() driver.Driver                        { return nil }

type sentConn struct {
	idleConn
	sent *[]driver.NamedValue
}

// QueryContext tells the columns of random rules' tables.
func (c sentConn) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	rows := &shownRows{}
	if strings.HasPrefix(query, "SELECT @@sql_mode") {
		rows.rows = [][]driver.Value{{"", "utf8mb4"}}
	}
	for name, typ := range map[string]string{"order_id": "bigint", "user_id": "bigint", "name": "varchar(64)", "created": "varchar(32)"} {
		if strings.HasPrefix(query, "SHOW FULL COLUMNS") && strings.Contains(query, "'"+name+"'") {
			rows.rows = append(rows.rows, []driver.Value{name, typ, "utf8mb4_bin", "YES"})
		}
	}
	return rows, nil
}

func (c sentConn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	*c.sent = append((*c.sent)[:0], args...)
	return driver.RowsAffected(strings.Count(query, "(") - 1), nil
}

// generatorsOfRandomRules make the key of a column.
var generatorsOfRandomRules = []struct{ column, generator string }{
	{"order_id", "{type: SNOWFLAKE, props: {worker-id: 5, max-vibration-offset: 4095}}"},
	{"order_id", "{type: SNOWFLAKE, props: {worker-id: 6}}"},
	{"order_id", "{type: SNOWFLAKE_RING, props: {worker-id: 7}}"},
	{"order_id", "{type: SHARD_COUNTER}"},
	{"order_id", "{type: SNOWFLAKE, props: {worker-id: 8, layout: 41-4-18}}"},
	{"name", "{type: UUID}"},
	{"name", "{type: NANOID}"},
}

// shardColumns are the columns of a random rule's table, as statements list them.
var shardColumns = []string{"order_id", "user_id", "name", "created"}

// shardStatement is an INSERT of random rows into an actual table.
type shardStatement struct {
	query string
	args  []any
	rows  []map[string]any // without generated keys
	node  testrouter.Node
	// schema: the text names the data source.
	schema bool
}

// rowPool are rows of a rule by where they belong, in the order in which they came.
type rowPool struct {
	nodes []testrouter.Node
	rows  map[testrouter.Node][]map[string]any
}

func newRowPool(rr *testrouter.Rule) *rowPool {
	p := &rowPool{rows: map[testrouter.Node][]map[string]any{}}
	for range 400 {
		row := rr.Row()
		at, err := rr.Router.Route(row)
		if err != nil {
			at = rr.Router.Nodes[0] // it belongs nowhere
		}
		if row["order_id"] == int64(0) {
			continue // that asks for a key
		}
		if p.rows[at] == nil {
			p.nodes = append(p.nodes, at)
		}
		p.rows[at] = append(p.rows[at], row)
	}
	return p
}

func newShardStatement(rr *testrouter.Rule, pool *rowPool, key string, generated bool, rows int) *shardStatement {
	from := rr.IntN(len(pool.nodes))
	s := &shardStatement{node: pool.nodes[from], schema: rr.IntN(2) == 0}
	right := rr.IntN(8) > 0 // rows that belong to the table, but for their keys
	for range rows {
		if !right && rr.IntN(4) == 0 {
			from = rr.IntN(len(pool.nodes))
		}
		rows := pool.rows[pool.nodes[from]]
		s.rows = append(s.rows, maps.Clone(rows[rr.IntN(len(rows))]))
	}
	name := s.node.Table
	if s.schema {
		name = s.node.DataSource + "." + name
	}
	var columns, values []string
	for _, c := range shardColumns {
		if c != key || !generated {
			columns, values = append(columns, c), append(values, "?")
		}
	}
	tuple := "(" + strings.Join(values, ", ") + ")"
	s.query = "INSERT INTO " + name + " (" + strings.Join(columns, ", ") + ") VALUES " + tuple + strings.Repeat(", "+tuple, len(s.rows)-1)
	for _, row := range s.rows {
		for _, c := range columns {
			s.args = append(s.args, row[c])
		}
	}
	return s
}

// complete gives the rows the keys that were sent.
func (s *shardStatement) complete(key string, sent []driver.NamedValue) {
	width := len(sent) / len(s.rows)
	for i, row := range s.rows {
		row[key] = sent[i*width+width-1].Value
	}
}

// isHere reports whether the router finds a row where the statement puts it.
func (s *shardStatement) isHere(rr *testrouter.Rule, row map[string]any) (is bool, err error) {
	at, err := rr.Router.Route(row)
	return err == nil && at.Table == s.node.Table && (!s.schema || at.DataSource == s.node.DataSource), err
}

// TestShards_asTheRouter sends random rows of random rules into random actual
// tables, with keys of every kind of generator: each row that is sent is where a
// router finds it that is written from ShardingSphere's documentation, and each that
// is refused is not.
func TestShards_asTheRouter(t *testing.T) {
	const rules, statements = 60, 25
	r := rand.New(rand.NewPCG(13, 15))
	var rows, refused, unfit int
	types, generators := map[string]int{}, map[string]int{}
	for range rules {
		rr := testrouter.RandomRule(r)
		g := generatorsOfRandomRules[r.IntN(len(generatorsOfRandomRules))]
		if g.column == "name" && rr.Numeric("name") {
			g = generatorsOfRandomRules[0] // texts that are no numbers have no place
		}
		text := rr.Text(g.column, g.generator, "")
		parsed := must(rule.Parse(fmt.Sprint(t.Name(), ruleNumber.Add(1)), []byte(text)))(t)
		var sent []driver.NamedValue
		connector := must(NewConnector(sentRows{&sent}, parsed, Config{Server: "other"}, WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))))(t)
		db := sql.OpenDB(connector)
		pool := newRowPool(rr)
		mayGenerate := true // it takes long to find out that no key fits
		statements, most := statements, 60
		if strings.Contains(g.generator, "SNOWFLAKE") && rr.Uses("order_id") {
			statements, most = 6, 6 // rare keys are waited for
		}
		for range statements {
			generated := mayGenerate && rr.IntN(3) > 0
			s := newShardStatement(rr, pool, g.column, generated, 1+rr.IntN(most))
			_, err := db.Exec(s.query, s.args...)
			var at *StatementError
			var wrong *WrongShardError
			switch {
			case errors.As(err, &at) && errors.As(err, &wrong):
				refused++
				row := s.rows[at.Row-1]
				is, routeErr := s.isHere(rr, row)
				if generated {
					// Its key is not there to be looked at: no key may help.
					is = is && !rr.Uses(g.column)
				}
				if is || !generated && s.schema && errors.Is(routeErr, testrouter.ErrNowhere) != (wrong.Err != nil) {
					t.Fatalf("%s\n%s\n%v\nhave: %v\nwant: %v", text, s.query, row, err, routeErr)
				}
			case errors.Is(err, spi.ErrNoFittingKey):
				unfit++
				mayGenerate = false
			case err != nil:
				t.Fatalf("%s\n%s\nhave: %v", text, s.query, err)
			default:
				if generated {
					s.complete(g.column, sent)
				}
				for _, row := range s.rows {
					is, err := s.isHere(rr, row)
					if err != nil && (!s.schema || !errors.Is(err, testrouter.ErrNowhere)) {
						continue // where it belongs is not known, or the data source is at fault, of which the name tells nothing
					}
					if !is {
						t.Fatalf("%s\n%s\n%v is sent\nhave: %v\nwant: it is not in %s", text, s.query, row, err, s.node)
					}
					rows++
				}
				generators[g.generator] += len(s.rows)
				if rr.Router.Table != nil {
					types[rr.Router.Table.Type] += len(s.rows)
				}
			}
		}
		noError(t, db.Close())
	}
	if rows < rules*statements*4 || refused < rules*statements/40 || len(generators) < len(generatorsOfRandomRules) || len(types) < 6 {
		t.Errorf("have: %d rows sent, %d statements refused, %v %v\nwant: more of each", rows, refused, types, generators)
	}
	t.Logf("%d rows sent and found, %d statements refused, %d without a key that fits\n%v\n%v", rows, refused, unfit, types, generators)
}

// A row is refused only where the router knows that it belongs to another table: what an
// expression cannot evaluate is no reason to refuse one.
func TestShards_unknownPlacesAreSent(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 8))
	var right, unknown, refused, accepted int
	for range 300 {
		rr := testrouter.RandomRuleOfNames(r)
		text := rr.Text("order_id", "{type: SHARD_COUNTER}", "")
		parsed := must(rule.Parse(fmt.Sprint(t.Name(), ruleNumber.Add(1)), []byte(text)))(t)
		var sent []driver.NamedValue
		connector := must(NewConnector(sentRows{&sent}, parsed, Config{Server: "other"}, WithLogger(slog.New(slog.DiscardHandler))))(t)
		db := sql.OpenDB(connector)
		for range 40 {
			name := testrouter.RandomString(r)
			named := rr.Router.Nodes[rr.IntN(len(rr.Router.Nodes))].Table
			_, err := db.Exec("INSERT INTO "+named+" (name) VALUES (?)", name)
			at, unplaced := rr.Router.Route(map[string]any{"name": name})
			switch {
			case err != nil && !errors.Is(err, ErrWrongShard):
				t.Fatalf("%s\n%q\nhave: %v", text, name, err)
			case unplaced == nil && at.Table == named:
				right++
			case unplaced != nil && !errors.Is(unplaced, testrouter.ErrNowhere):
				unknown++
			case err != nil:
				refused++
				continue
			default:
				accepted++ // what only Java evaluates: toUpperCase beyond ASCII
				continue
			}
			if err != nil {
				t.Fatalf("%s\n%q in %s\nhave: %v\nwant: sent; the router: %v, %v", text, name, named, err, at, unplaced)
			}
		}
		noError(t, db.Close())
	}
	if right < 2000 || unknown < 100 || refused < 4000 || accepted > refused/3 {
		t.Errorf("have: %d right, %d of unknown place, %d refused, %d wrong ones sent", right, unknown, refused, accepted)
	}
	t.Logf("%d right, %d of unknown place, %d refused, %d wrong ones sent", right, unknown, refused, accepted)
}
