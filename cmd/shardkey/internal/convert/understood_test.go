package convert_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// maker is a generator or assigner that describes its properties.
type maker struct{ props string }

func (m maker) Describe() string { return m.props }

func (maker) GenerateKeys(context.Context, spi.Column, int) ([]any, error) { return nil, nil }

func (maker) GenerateInt64Keys(context.Context, spi.Column, []int64) error { return nil }

func (maker) AcquireWorkerID(context.Context, int64) (spi.WorkerIDLease, error) { return nil, nil }

// newMaker reads the properties that the test files use.
func newMaker(typ string, p spi.Props) (maker, error) {
	m := maker{typ}
	for _, name := range strings.Fields("worker-id max-vibration-offset max-tolerate-time-difference-milliseconds layout login password path namespace " +
		"dsn own-database version size leaf.key tick epoch") {
		if p.Has(name) {
			m.props += fmt.Sprintf(" %s=%q", name, p.String(name, ""))
		}
	}
	if p.Has("hosts") {
		m.props += fmt.Sprintf(" hosts=%q", p.List("hosts"))
	}
	_, err := p.WorkerIDAssigner("worker-id-assigner")
	return m, err
}

func init() {
	for _, typ := range []string{"SNOWFLAKE", "UUID", "NANOID", "LEAF_SEGMENT"} {
		spi.RegisterKeyGenerator(typ, func(p spi.Props) (spi.KeyGenerator, error) { return newMaker(typ, p) })
	}
	for _, typ := range []string{"FILE", "STATIC", "SQL"} {
		spi.RegisterWorkerIDAssigner(typ, func(p spi.Props) (spi.WorkerIDAssigner, error) { return newMaker(typ, p) })
	}
}

// understood describes the meaning of a rule: its generators with their properties, its tables,
// their places, and their sharding.
func understood(t *testing.T, r *rule.Rule) string {
	t.Helper()
	live, err := r.Open(spi.Host{})
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	_, text, _ := strings.Cut(live.Describe(), "\n")
	lines := strings.Split(text, "\n")
	for _, table := range r.Tables() {
		lines = append(lines, table.Logical+" stands in"+places(r, table.Logical))
		switch s := table.Sharding; {
		case s == nil:
		case s.Err != nil:
			lines = append(lines, table.Logical+" is sharded in a way that is not understood")
		default:
			lines = append(lines, table.Logical+" is sharded: "+s.String())
		}
	}
	slices.Sort(lines)
	return strings.Join(append(lines, fmt.Sprintf("  data sources %v", r.DataSources())), "\n") + "\n"
}

func places(r *rule.Rule, table string) (text string) {
	for p := range r.Places(table) {
		text += " " + p.String()
	}
	return text
}
