package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/rewrite"
	"github.com/shardkey/shardkey/rule"
)

// shard is an actual table that a text names, with what decides which rows belong
// into it. There is none where the rule does not say it, or the text names the
// logical table.
type shard struct {
	*rule.Shard
	table *table
	name  string // as the text has it
	key   int    // the key's place among Columns, −1 when it is none of them
	// belongs tells the keys of the table's rows, where no other column has a say. About one
	// of so many keys as there are targets is one.
	belongs        func(key int64) bool
	targets        int
	hopeless       atomic.Pointer[int64] // the worker with whose keys a draw was in vain
	warned         atomic.Bool
	schema, actual string
	columns        atomic.Pointer[[]*session.Column] // by Columns; nil: not looked for yet
}

// maxShards bounds the actual tables that are kept: a schema in front of a name
// makes another one of it.
const maxShards = 1 << 16

// shard returns the actual table that a text names, nil for none.
func (t *table) shard(schema, name string) *shard {
	if t.rule.Sharding == nil {
		return nil
	}
	id := schema + "\x00" + name // an error has the name as it is written
	if x, ok := t.shards.Load(id); ok {
		return x.(*shard)
	}
	x := t.newShard(schema, name)
	if t.shardCount.Add(1) <= maxShards {
		t.shards.Store(id, x)
	}
	return x
}

func (t *table) newShard(schema, name string) *shard {
	of := t.rule.Sharding.Shard(schema, name)
	if of == nil {
		return nil
	}
	x := &shard{Shard: of, table: t, name: tableName(schema, name), schema: schema, actual: name}
	x.key = indexOf(x.Columns, t.rule.Column)
	if len(x.Columns) == 1 {
		x.belongs, x.targets, _ = x.Keys(t.rule.Column, []any{nil})
	}
	return x
}

// indexOf returns the place of a column among columns, −1 if it is none of them.
func indexOf(columns []string, name string) int {
	return slices.IndexFunc(columns, func(c string) bool { return strings.EqualFold(c, name) })
}

// looks reports whether rows are compared with the table.
func (x *shard) looks() bool { return x.table.rule.ShardGuard != "off" }

// tableName is a table as errors name it.
func tableName(schema, name string) string {
	if schema == "" {
		return name
	}
	return schema + "." + name
}

// shardValues appends a row's values of the columns that decide on its table, a nil for the
// key; ok is false when one of them is not known.
func (e *execution) shardValues(to []any, k *insertion, row int) (values []any, ok bool) {
	for i := range k.shard.Columns {
		if i == k.shard.key {
			to = append(to, nil)
			continue
		}
		kind, param, value := e.plan.Given(k.in, i, row)
		switch kind {
		case rewrite.GivenUnknown:
			return nil, false
		case rewrite.GivenParam:
			if value, ok = shardValue(e.user[param].Value); !ok {
				return nil, false
			}
		}
		to = append(to, value)
	}
	return to, true
}

// shardValue is a bound value as the column holds it; ok is false when only the
// server knows.
func shardValue(bound driver.Value) (value any, ok bool) {
	switch v := plainKey(bound).(type) {
	case nil, int64, uint64, string, time.Time:
		return v, true
	case bool:
		if v {
			return int64(1), true
		}
		return int64(0), true
	case float64:
		const exact = 1e15 // from there on its text has an exponent
		n := int64(v)
		return n, v > -exact && v < exact && float64(n) == v && !(v == 0 && math.Signbit(v))
	}
	return nil, false
}

// check returns the error for a row that does not belong to the table, and nil
// where it is only to be logged. Rows are counted from 0.
func (x *shard) check(ctx context.Context, s *session.Session, logger *slog.Logger, row int, values []any) error {
	if x.table.rule.ShardGuard == "warn" && x.warned.Load() {
		return nil
	}
	wrong := x.wrong(ctx, s, values)
	if wrong != nil {
		wrong.Row = row + 1
	}
	return x.table.judge(ctx, logger, &x.warned, wrong)
}

// judge returns an error, or logs it once, as the rule says. It may be nil.
func (t *table) judge(ctx context.Context, logger *slog.Logger, warned *atomic.Bool, wrong *StatementError) error {
	switch {
	case wrong == nil:
		return nil
	case t.rule.ShardGuard == "refuse":
		return wrong
	case !warned.Swap(true):
		cause := wrong.Err.(*WrongShardError)
		logger.WarnContext(ctx, "shardkey: row sent to the wrong table",
			"table", wrong.Table, "row", wrong.Row, "columns", cause.Columns, "belongs_to", cause.Meant.String())
	}
	return nil
}

// guard holds the rows that an execution has so far against the table, before any
// key is made: all but those whose place is decided by a key that is generated.
func (e *execution) guard(ctx context.Context, k *insertion) error {
	x := k.shard
	if x == nil || !x.looks() {
		return nil
	}
	var buf [4]any
	for row := range k.in.Rows() {
		values, ok := e.shardValues(buf[:0], k, row)
		if !ok {
			continue
		}
		if x.key >= 0 {
			if k.isGenerated(row) {
				continue
			}
			switch key := e.givenKey(k, row).(type) {
			case nil, []byte:
				continue // only the server knows it, or Java
			default:
				values[x.key] = key
			}
		}
		if err := x.check(ctx, e.session, e.plan.rules.logger, row, values); err != nil {
			return err
		}
	}
	return nil
}

// checkUpdates returns the error for an ON DUPLICATE KEY UPDATE that changes a
// sharding column, so that the row would not be in the table that it belongs to.
func (p *plan) checkUpdates(ctx context.Context, s *session.Session, args []driver.NamedValue) error {
	for i := range p.Updates {
		if err := p.checkUpdate(ctx, s, i, args); err != nil {
			return err
		}
	}
	return nil
}

// errExpression is the reason for refusing to update a sharding column to an expression.
var errExpression = errors.New("it is set to an expression, and the row stays where it is")

func (p *plan) checkUpdate(ctx context.Context, s *session.Session, i int, args []driver.NamedValue) error {
	u := &p.Updates[i]
	of := slices.IndexFunc(p.Inserts, func(in rewrite.Insert) bool { return in.Table == u.Table })
	t, x := p.targets[of].table, p.targets[of].shard
	var set columnValues
	for c, column := range u.Table.Fixed {
		kind, param, value := p.Set(u, c)
		switch kind {
		case rewrite.GivenExpression:
			wrong := wrongShard(tableName(u.Schema, u.Name), &WrongShardError{Columns: []string{column}, Err: errExpression})
			return t.judge(ctx, p.rules.logger, &t.warnedUpdate, inUpdate(wrong))
		case rewrite.GivenParam:
			if param >= len(args) {
				return nil // the server says so
			}
			var ok bool
			if value, ok = shardValue(args[param].Value); !ok {
				continue
			}
		case rewrite.GivenLiteral:
		default:
			continue
		}
		set.columns, set.values = append(set.columns, column), append(set.values, value)
	}
	if x == nil {
		return nil // where the rows are is not known
	}
	if err := x.checkGeneUpdate(ctx, p.rules.logger, &set); err != nil {
		return err
	}
	row := make([]any, len(x.Columns))
	for i, column := range x.Columns {
		var ok bool
		if row[i], ok = set.of(column); !ok {
			return nil // other columns decide too, or do alone
		}
	}
	return t.judge(ctx, p.rules.logger, &x.warned, inUpdate(x.wrong(ctx, s, row)))
}

// columnValues are the columns that take a value.
type columnValues struct {
	columns []string
	values  []any
}

func (s *columnValues) of(column string) (value any, ok bool) {
	if i := indexOf(s.columns, column); i >= 0 {
		return s.values[i], true
	}
	return nil, false
}

// checkGeneUpdate returns the error for a row whose keys carry the shard of another column, when
// that is set to a value of another shard: by it the row would be looked for elsewhere.
func (x *shard) checkGeneUpdate(ctx context.Context, logger *slog.Logger, set *columnValues) error {
	gene := x.table.rule.Gene
	if gene == nil || x.belongs == nil {
		return nil
	}
	value, ok := set.of(gene.Column)
	if !ok {
		return nil
	}
	of, err := gene.Of(value)
	if err != nil {
		return nil // a value without gene is not looked for by it
	}
	return x.checkGene(ctx, logger, -1, rowGene{of, value}, nil)
}

// fitting draws the n keys of an insert's rows, each of which belongs to the table with its row.
func (e *execution) fitting(ctx context.Context, k *insertion, n int) (rewrite.Keys, error) {
	x, t := k.shard, k.table
	if t.ints == nil {
		d := draw[any]{name: x.name}
		if err := addRows(&d, e, k, x.test); err != nil {
			return rewrite.Keys{}, err
		}
		return t.drawValues(ctx, &d, n)
	}
	d := draw[int64]{name: x.name}
	test := func(values []any) (func(int64) bool, int, error) { return x.Keys(t.rule.Column, values) }
	if err := addRows(&d, e, k, test); err != nil {
		return rewrite.Keys{}, err
	}
	return t.drawInts(ctx, &d, n, k.one)
}

// addRows adds the rows that need a key. Rows that follow each other and have the same values are
// one lot; any key will do for a row of which not all values are known.
func addRows[K any](d *draw[K], e *execution, k *insertion, test func(values []any) (func(K) bool, int, error)) error {
	var last []any
	next := 0
	for row := range k.in.Rows() {
		if !k.isGenerated(row) {
			continue
		}
		values, known := e.shardValues(nil, k, row)
		switch {
		case next > 0 && slices.Equal(values, last):
		case known:
			belongs, targets, err := test(values)
			if err != nil {
				return err
			}
			d.start(belongs, targets)
		default:
			d.start(nil, 1)
		}
		last = values
		d.add(next)
		next++
	}
	return nil
}

// generate draws n keys of the table's rows, whose type is int64, and counts them. One key goes
// into one.
func (x *shard) generate(ctx context.Context, n int, one *[1]int64) (rewrite.Keys, error) {
	d := draw[int64]{name: x.name, only: x}
	d.start(x.belongs, x.targets)
	for row := range n {
		d.add(row)
	}
	return x.table.drawInts(ctx, &d, n, one)
}

// test returns a test of keys of any type, with the values of a row's other columns.
func (x *shard) test(values []any) (belongs func(key any) bool, targets int, err error) {
	values = slices.Clone(values)
	_, targets, _ = x.Keys(x.Columns[x.key], values)
	return func(key any) bool {
		values[x.key] = key
		_, here, _ := x.Place(values)
		return here
	}, max(targets, 1), nil
}

// WrongShardError is the cause of the [*StatementError] for a row that, by its values and the
// rule, does not belong to the actual table that its INSERT names. The Row of that is 0 for an
// ON DUPLICATE KEY UPDATE.
type WrongShardError struct {
	Columns []string // the sharding columns that decide
	Values  []any    // the row's values of them; none where they are not known
	// Meant is where the row belongs: its DataSource is empty where Columns do not
	// decide on it, and it is zero when the row belongs nowhere.
	Meant rule.Place
	// Err is a [*rule.PlaceError] if the row belongs nowhere. If Values is nil, it says
	// that the column is updated to an expression. Otherwise it is nil.
	Err error
}

func (e *WrongShardError) Error() string {
	by := "shardkey: by " + strings.Join(e.Columns, " and ")
	nowhere, ok := errors.AsType[*rule.PlaceError](e.Err)
	switch {
	case e.Err == nil:
		return fmt.Sprintf("%s it belongs to %s", by, e.Meant)
	case ok:
		return fmt.Sprintf("%s it belongs to no table: %s", by, nowhere.Reason)
	}
	return fmt.Sprintf("%s its table is not known: %s", by, plainText(e.Err, ""))
}

func (e *WrongShardError) Unwrap() error { return e.Err }

// wrongShard returns the error for a row of the table that a statement names.
func wrongShard(table string, e *WrongShardError) *StatementError {
	remedy := "insert it there"
	if e.Err != nil {
		remedy = "write a value for which the rule has a table"
	}
	return &StatementError{
		Reason: reasonWrongShard, Table: table, Err: e,
		Message: plainText(e, "") + "; " + remedy + ", or write shardGuard: warn or off next to the key's column",
	}
}

// inUpdate makes the error for a row that of an ON DUPLICATE KEY UPDATE; it may be nil.
func inUpdate(wrong *StatementError) *StatementError {
	if wrong != nil {
		wrong.Message = "ON DUPLICATE KEY UPDATE changes the row: " + wrong.Message
	}
	return wrong
}

// A row belongs where its values as the server stores them belong: '131' in a BIGINT is
// the number, 131 in a VARCHAR the string. What is stored depends on the columns' types, of
// which the server is asked once. Where only the server knows it, and where the rule's
// algorithm cannot be computed for it, the guard is silent.

// wrong returns the error for values with which a row does not belong to the table, nil
// for others and for those of which that is not known.
func (x *shard) wrong(ctx context.Context, s *session.Session, values []any) *StatementError {
	columns := x.columnsIn(s)
	asked := false
	for _, c := range columns {
		if c.Known() == nil {
			asked = true
			if _, err := c.Learn(ctx, s); err != nil {
				return nil // the statement meets the same error
			}
		}
	}
	wrong := x.misplaced(ctx, s, values, columns)
	if wrong == nil || asked || s.IsAssumed() {
		return wrong
	}
	for _, c := range columns { // the table may have been altered
		if _, err := c.Refresh(ctx, s); err != nil {
			return nil
		}
	}
	return x.misplaced(ctx, s, values, columns)
}

// columnsIn returns the sharding columns of the table, whose types are to be known.
func (x *shard) columnsIn(s *session.Session) []*session.Column {
	if known := x.columns.Load(); known != nil {
		return *known
	}
	columns := make([]*session.Column, len(x.Columns))
	for i, name := range x.Columns {
		columns[i] = s.Column(x.schema, x.actual, name)
	}
	x.columns.Store(&columns)
	return columns
}

// maxStored bounds the combinations of values that may be stored.
const maxStored = 4096

// misplaced returns the error for values that belong elsewhere, whichever of those that
// may be stored for them are. The types of columns were asked for.
func (x *shard) misplaced(
	ctx context.Context, s *session.Session, values []any, columns []*session.Column,
) (wrong *StatementError) {
	var room [2][1]any
	var each [2][]any
	candidates := each[:0]
	total := 1
	for i, v := range values {
		var to []any
		if i < len(room) {
			to = room[i][:0]
		}
		list := columns[i].Known().Stored(ctx, s, to, v)
		if total *= len(list); total == 0 || total > maxStored {
			return nil
		}
		candidates = append(candidates, list)
	}
	var buf [4]any
	for n := range total {
		row, rest := buf[:0], n
		for _, list := range candidates {
			row = append(row, list[rest%len(list)])
			rest /= len(list)
		}
		place, here, err := x.Place(row)
		nowhere, ok := errors.AsType[*rule.PlaceError](err)
		switch {
		case here:
			return nil
		case err != nil && (!ok || nowhere.Unknown):
			// Of a type that the server hasn't shown, such a value is not the one that is stored.
			if !slices.ContainsFunc(columns, isUnshown) {
				return nil
			}
		case wrong == nil:
			wrong = wrongShard(x.name, &WrongShardError{
				Columns: slices.Clone(x.Columns), Values: slices.Clone(values), Meant: place, Err: err,
			})
		}
	}
	return wrong
}

// isUnshown reports whether the server hasn't shown a column's type.
func isUnshown(c *session.Column) bool { return c.Known().Stores == session.StoresUnknown }
