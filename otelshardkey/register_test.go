package otelshardkey_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/otelshardkey"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// fake is a generator whose health the test sets.
type fake struct {
	health spi.Health
	next   int64
	err    error
}

func (f *fake) GenerateKeys(ctx context.Context, column spi.Column, n int) ([]any, error) {
	return spi.KeysFromInts(ctx, f, column, n)
}

func (f *fake) GenerateInt64Keys(_ context.Context, _ spi.Column, keys []int64) error {
	for i := range keys {
		f.next++
		keys[i] = f.next
	}
	return f.err
}

func (f *fake) Health() spi.Health { return f.health }

// everything returns a health with all figures.
func everything() spi.Health {
	return spi.Health{
		Err: errors.New("away"), Errors: map[string]int64{"store": 3},
		Waits: new(int64(4)), Waited: 1500 * time.Millisecond,
		Clock: &spi.ClockHealth{Ahead: 20 * time.Millisecond, Steps: new(int64(2))}, WorkerID: new(int64(17)),
		Lease:   &spi.LeaseHealth{Limit: time.Now().Add(time.Hour), Length: 2 * time.Hour, Renewals: 9, Lost: 1},
		Segment: &spi.SegmentHealth{Left: new(int64(70)), Size: 100, Fetches: 5, FetchTime: 2 * time.Millisecond},
	}
}

func newConnector(t testing.TB, f *fake, opts ...driver.Option) *driver.Connector {
	t.Helper()
	return connect(t, rule.Config{
		Tables: []rule.TableConfig{
			{Name: "t_order", KeyConfig: rule.KeyConfig{Column: "id", Generator: "g"}},
			{Name: "t_item", KeyConfig: rule.KeyConfig{Column: "id", Generator: "g"}},
			{Name: "t_token", KeyConfig: rule.KeyConfig{Column: "id", Generator: "uuid"}},
		},
		Generators: map[string]rule.GeneratorConfig{"g": {Generator: f}, "uuid": {Type: "UUID"}},
	}, opts...)
}

func connect(t testing.TB, config rule.Config, opts ...driver.Option) *driver.Connector {
	t.Helper()
	r := must.Get(rule.New(config))(t)
	opts = append(opts, driver.Config{Server: "other"}, driver.WithLogger(slog.New(slog.DiscardHandler)))
	c := must.Get(driver.NewConnector(new(fakedb.Server), r, opts...))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func register(
	t testing.TB, c *driver.Connector, p metric.MeterProvider, attrs ...attribute.KeyValue,
) metric.Registration {
	t.Helper()
	r := must.Get(otelshardkey.Register(c, p, attrs...))(t)
	t.Cleanup(func() { _ = r.Unregister() })
	return r
}

func newReader() (*sdk.ManualReader, *sdk.MeterProvider) {
	reader := sdk.NewManualReader()
	return reader, sdk.NewMeterProvider(sdk.WithReader(reader))
}

// value is one point of a metric.
type value struct {
	number float64
	attrs  attribute.Set
}

// collect collects all metrics and returns their points and the metrics.
func collect(t testing.TB, reader *sdk.ManualReader) (map[string][]value, map[string]metricdata.Metrics) {
	t.Helper()
	var data metricdata.ResourceMetrics
	must.Do(t, reader.Collect(t.Context(), &data))
	points, metrics := map[string][]value{}, map[string]metricdata.Metrics{}
	for _, scope := range data.ScopeMetrics {
		must.Equal(t, scope.Scope.Version, driver.Version(), "scope", scope.Scope.Name, "version")
		for _, m := range scope.Metrics {
			if _, ok := metrics[m.Name]; ok {
				t.Errorf("%s is there twice", m.Name)
			}
			metrics[m.Name] = m
			points[m.Name] = append(points[m.Name], pointsOf(t, m)...)
		}
	}
	return points, metrics
}

func pointsOf(t testing.TB, m metricdata.Metrics) (all []value) {
	t.Helper()
	switch d := m.Data.(type) {
	case metricdata.Sum[int64]:
		return valuesOf(d.DataPoints)
	case metricdata.Sum[float64]:
		return valuesOf(d.DataPoints)
	case metricdata.Gauge[int64]:
		return valuesOf(d.DataPoints)
	case metricdata.Gauge[float64]:
		return valuesOf(d.DataPoints)
	}
	t.Fatalf("%s: unexpected %T", m.Name, m.Data)
	return nil
}

func valuesOf[N int64 | float64](points []metricdata.DataPoint[N]) (all []value) {
	for _, p := range points {
		all = append(all, value{float64(p.Value), p.Attributes})
	}
	return all
}

// read registers a connector and returns the points of its metrics.
func read(t testing.TB, c *driver.Connector) map[string][]value {
	t.Helper()
	reader, provider := newReader()
	register(t, c, provider)
	points, _ := collect(t, reader)
	return points
}

// find returns the number of the point with these attributes, such as "table=t_order".
func find(t testing.TB, points []value, attrs ...string) float64 {
	t.Helper()
	var found []float64
	for _, p := range points {
		all := p.attrs.Encoded(attribute.DefaultEncoder())
		if !slices.ContainsFunc(attrs, func(a string) bool { return !strings.Contains(","+all+",", ","+a+",") }) {
			found = append(found, p.number)
		}
	}
	if len(found) != 1 {
		t.Errorf("%d points have %q", len(found), attrs)
		return -1
	}
	return found[0]
}

func TestRegister_whatIsCounted(t *testing.T) {
	f := &fake{health: everything()}
	c := newConnector(t, f)
	for table, n := range map[string]int{"t_order": 3, "t_item": 40, "t_token": 2} {
		must.Get(c.NextKeys(t.Context(), table, n))(t)
	}
	f.err = errors.New("refused")
	if _, err := c.NextKeys(t.Context(), "t_item", 1); err == nil {
		t.Fatal("no error")
	}
	points := read(t, c)
	const g = "shardkey.generator.name=g"
	for _, c := range cases.Read(t, "testdata/counted.txt", 3) {
		want, metric, attrs := c[0], c[1], strings.FieldsFunc(c[2], func(r rune) bool { return r == '|' })
		must.Equal(t, fmt.Sprint(find(t, points[metric], attrs...)), want, metric, attrs)
	}
	if left := find(t, points["shardkey.lease.remaining"], g); left < 3000 || left > 3600 {
		t.Errorf("lease remaining: %v", left)
	}
}

func TestRegister_allReasonsFromTheStart(t *testing.T) {
	points := read(t, newConnector(t, new(fake)))
	reasons := strings.Fields("unsupported unlisted unverified wrong-shard no-fitting-key not-consecutive placeholders " +
		"narrow-column no-shard-bits no-key")
	for _, reason := range reasons {
		must.Equal(t, find(t, points["shardkey.refused"], "shardkey.reason="+reason), 0, reason)
	}
	must.Equal(t, len(points["shardkey.refused"]), len(reasons), "reasons")
}

func TestRegister_anotherRule(t *testing.T) {
	c := newConnector(t, new(fake))
	must.Do(t, c.SetRule(newConnector(t, new(fake)).Rule()))
	must.Equal(t, find(t, read(t, c)["shardkey.rule.generation"]), 2, "generation")
}

// A rule may have a million tables. A series for each of them would be too many.
func TestRegister_manyTables(t *testing.T) {
	generators := map[string]rule.GeneratorConfig{"g": {Generator: new(fake)}, "h": {Generator: new(fake)}}
	config := rule.Config{Generators: generators}
	const tables = 3000
	name := func(i int) string { return fmt.Sprintf("t%d_x", i) }
	for i := range tables {
		key := rule.KeyConfig{Column: "id", Generator: "gh"[i%2 : i%2+1]}
		config.Tables = append(config.Tables, rule.TableConfig{Name: name(i), KeyConfig: key})
	}
	c := connect(t, config)
	reader, provider := newReader()
	register(t, c, provider)
	use := func(from, until, keys int) {
		for i := from; i < until; i++ {
			must.Get(c.NextKeys(t.Context(), name(i), keys))(t)
		}
	}
	last := map[attribute.Set]float64{}
	look := func(series int, total float64) {
		t.Helper()
		points, _ := collect(t, reader)
		sum := 0.0
		for _, p := range points["shardkey.keys"] {
			if sum += p.number; p.number < last[p.attrs] {
				t.Errorf("%v went down: %v after %v", p.attrs.Encoded(attribute.DefaultEncoder()), p.number, last[p.attrs])
			}
			last[p.attrs] = p.number
		}
		if n := len(points["shardkey.keys"]); n != series || sum != total {
			t.Errorf("have: %d series with %v keys\nwant: %d with %v", n, sum, series, total)
		}
	}
	look(2, 0)
	use(100, 110, 5)
	look(12, 50)
	use(500, 2000, 1)
	use(2000, 2010, 7)
	look(1002, 50+1500+70)
	use(0, tables, 2)
	look(1002, 50+1500+70+2*tables)
	use(2010, tables, 20) // the busiest tables now, too late for their own series
	look(1002, 50+1500+70+2*tables+20*(tables-2010))
	points, _ := collect(t, reader)
	for table, want := range map[string]float64{"t100_x": 7, "t2000_x": 9} { // first in use, then busiest
		must.Equal(t, find(t, points["shardkey.keys"], "db.collection.name="+table), want, table, "keys")
	}
	find(t, points["shardkey.keys"], "db.collection.name=_OTHER", "shardkey.generator.name=h")
}

// A generator reports the figures that it has, including 0, and no others.
func TestRegister_figuresOfGenerators(t *testing.T) {
	zero := spi.Health{Waits: new(int64), Clock: &spi.ClockHealth{Steps: new(int64)}, Lease: new(spi.LeaseHealth),
		Segment: &spi.SegmentHealth{Left: new(int64)}}
	figures := strings.Fields("waits wait.time clock.steps clock.ahead lease.renewals lease.losses " +
		"segment.remaining fetches")
	others := strings.Fields("lease.remaining lease.length segment.size worker.id fetch.duration errors " +
		"statement.cache.limit")
	for _, c := range []struct {
		health        spi.Health
		there, absent []string
	}{{spi.Health{}, nil, append(figures, others...)}, {zero, figures, others}} {
		points := read(t, newConnector(t, &fake{health: c.health}))
		for _, name := range c.there {
			must.Equal(t, find(t, points["shardkey."+name], "shardkey.generator.name=g"), 0, name)
		}
		for _, name := range c.absent {
			must.Equal(t, len(points["shardkey."+name]), 0, name, "has", "points")
		}
		must.Equal(t, find(t, points["shardkey.generator.healthy"], "shardkey.generator.name=g"), 1, "healthy")
	}
}

// A worker-ID assigner reports its health and errors. Its generators report the leases.
func TestRegister_assigners(t *testing.T) {
	c := connect(t, rule.Config{
		Tables: []rule.TableConfig{{Name: "t_order", KeyConfig: rule.KeyConfig{Column: "id", Generator: "g"}}},
		Generators: map[string]rule.GeneratorConfig{
			"g": {Type: "SNOWFLAKE", Props: rule.Props{"worker-id-assigner": "files"}}},
		WorkerIDAssigners: map[string]rule.WorkerIDAssignerConfig{
			"files": {Type: "FILE", Props: rule.Props{"path": t.TempDir()}}},
	})
	must.Get(c.NextKeys(t.Context(), "t_order", 1))(t)
	points := read(t, c)
	must.Equal(t, find(t, points["shardkey.generator.healthy"], "shardkey.generator.name=files"), 1, "healthy")
	if have := find(t, points["shardkey.lease.length"]); have <= 0 { // one point, of the generator
		t.Errorf("lease: %v", have)
	}
}

func TestRegister_severalConnectors(t *testing.T) {
	reader, provider := newReader()
	orders := attribute.String("db.client.connection.pool.name", "orders")
	for _, attrs := range [][]attribute.KeyValue{nil, nil, {orders, attribute.String("team", "a")}, {orders}} {
		register(t, newConnector(t, new(fake)), provider, attrs...)
	}
	points, _ := collect(t, reader)
	var names []string
	for _, p := range points["shardkey.rule.generation"] {
		name, _ := p.attrs.Value("db.client.connection.pool.name")
		names = append(names, name.AsString())
	}
	slices.Sort(names)
	must.EqualSlices(t, names, []string{"orders", "orders#2", "rule", "rule#2"})
	find(t, points["shardkey.rule.generation"], "team=a", "db.client.connection.pool.name=orders")
}

func TestRegister_unregister(t *testing.T) {
	reader, provider := newReader()
	c := newConnector(t, new(fake))
	r := register(t, c, provider)
	must.Do(t, errors.Join(r.Unregister(), r.Unregister()))
	if points, _ := collect(t, reader); len(points) != 0 {
		t.Errorf("%d metrics after Unregister", len(points))
	}
	register(t, c, provider)
	points, _ := collect(t, reader)
	find(t, points["shardkey.rule.generation"], "db.client.connection.pool.name=rule") // the name is free again
	_ = c.Close()
	points, _ = collect(t, reader)
	must.Equal(t, len(points["shardkey.keys"]), 3, "tables of a closed connector")
}

func TestRegister_globalProvider(t *testing.T) {
	reader, provider := newReader()
	otel.SetMeterProvider(provider)
	register(t, newConnector(t, new(fake)), nil)
	if points, _ := collect(t, reader); len(points) == 0 {
		t.Error("nothing is reported")
	}
	if r, err := otelshardkey.Register(driver.ConnectorOf(nil), nil); err == nil || r != nil {
		t.Errorf("a nil connector\nhave: %v, %v\nwant: an error", r, err)
	}
}

func TestRegister_manyAtOnce(t *testing.T) {
	reader, provider := newReader()
	c := newConnector(t, &fake{health: everything()})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				r, err := otelshardkey.Register(c, provider)
				if err != nil {
					t.Error(err)
					return
				}
				collect(t, reader)
				_ = r.Unregister()
			}
		})
	}
	wg.Wait()
}

// kindOf returns the kind of a metric in the words of the documentation.
func kindOf(m metricdata.Metrics) string {
	switch m.Data.(type) {
	case metricdata.Sum[int64], metricdata.Sum[float64]:
		return "counter"
	}
	return "gauge"
}

// The table of docs/reference/metrics.md lists exactly the reported metrics.
func TestDocs_listTheMetrics(t *testing.T) {
	text := must.Get(os.ReadFile("../docs/reference/metrics.md"))(t)
	documented := map[string]string{}
	rows := regexp.MustCompile("(?m)^\\| `(shardkey\\.[a-z._]+)` \\| `shardkey_\\w+` \\| (\\w+) \\| ([^|]+) \\| ([^|]*) \\|")
	for _, row := range rows.FindAllStringSubmatch(string(text), -1) {
		attrs := regexp.MustCompile("[a-z_.]+").FindAllString(row[4], -1)
		documented[row[1]] = fmt.Sprintf("%s, %s, %s", row[2], strings.Trim(row[3], "` "), strings.Join(attrs, " "))
	}
	reader, provider := newReader()
	c := newConnector(t, &fake{health: everything()})
	register(t, c, provider)
	points, metrics := collect(t, reader)
	for name, m := range metrics {
		attrs := map[string]bool{}
		for _, p := range points[name] {
			for _, a := range p.attrs.ToSlice() {
				if a.Key != "db.client.connection.pool.name" {
					attrs[string(a.Key)] = true
				}
			}
		}
		want := fmt.Sprintf("%s, %s, %s", kindOf(m), m.Unit, strings.Join(slices.Sorted(maps.Keys(attrs)), " "))
		if m.Description == "" || documented[name] != want {
			t.Errorf("%s\nhave: %s\nwant: %s", name, documented[name], want)
		}
	}
	for name := range documented {
		if _, ok := metrics[name]; !ok && name != "shardkey.statement.cache.limit" { // reported only with a real server
			t.Errorf("%s is in the table, and is not reported", name)
		}
	}
}

func TestSpanAttributes_inTheSpanOfTheContext(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(recorder)).Tracer("test")
	db := sql.OpenDB(newConnector(t, new(fake), otelshardkey.SpanAttributes()))
	defer db.Close()
	ctx, span := tracer.Start(t.Context(), "order")
	must.Get(db.ExecContext(ctx, "INSERT INTO t_order (a) VALUES (?), (?)", 1, 2))(t)
	span.End()
	have := map[string]string{}
	for _, a := range recorder.Ended()[0].Attributes() {
		have[string(a.Key)] = a.Value.String()
	}
	want := map[string]string{"db.collection.name": "t_order", "shardkey.generator.name": "g",
		"shardkey.generator.type": "", "shardkey.rows": "2"}
	if !maps.Equal(have, want) {
		t.Errorf("have: %v\nwant: %v", have, want)
	}
	// Without a span there are no attributes and no error.
	must.Get(db.ExecContext(t.Context(), "INSERT INTO t_order (a) VALUES (?)", 1))(t)
}
