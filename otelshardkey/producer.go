package otelshardkey

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/shardkey/shardkey/driver"
)

// Producer returns a producer of the histogram shardkey.generate.duration, for all registered
// connectors. Pass it to the reader of your provider:
//
//	reader, err := prometheus.New(prometheus.WithProducer(otelshardkey.Producer()))
//
// OpenTelemetry's API has no asynchronous histogram. Recording each call would cost more than
// generating the key, so the driver counts into buckets, and the producer reads these.
func Producer() sdk.Producer { return producer{} }

type producer struct{}

// Produce returns the histograms of the registered connectors. The error is always nil.
func (producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	now := time.Now()
	var points []metricdata.HistogramDataPoint[float64]
	for _, r := range registered.all() {
		for _, c := range callsOf(r.connector.Stats().Tables) {
			points = append(points, c.point(r, now))
		}
	}
	if len(points) == 0 {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{{Scope: instrumentation.Scope{Name: scope, Version: driver.Version()}, Metrics: []metricdata.Metrics{{
		Name: "shardkey.generate.duration", Unit: "s",
		Description: "Time of calls of the generator, of one call in 64.",
		Data:        metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality, DataPoints: points},
	}}}}, nil
}

// calls is the histogram of one generator.
type calls struct {
	generator, typ string
	driver.Histogram
}

// callsOf adds up the tables' histograms for each generator. A histogram for each table would be
// too many series.
func callsOf(tables []driver.TableStats) (list []*calls) {
	for _, t := range tables {
		i := slices.IndexFunc(list, func(c *calls) bool { return c.generator == t.Generator && c.typ == t.Type })
		if i < 0 {
			sum := driver.Histogram{Bounds: t.Generate.Bounds, Counts: make([]int64, len(t.Generate.Counts))}
			i, list = len(list), append(list, &calls{t.Generator, t.Type, sum})
		}
		list[i].Sum += t.Generate.Sum
		for bucket, n := range t.Generate.Counts {
			list[i].Counts[bucket] += n
		}
	}
	return list
}

func (c *calls) point(r *registration, now time.Time) metricdata.HistogramDataPoint[float64] {
	attrs := attribute.NewSet(r.with(attrGenerator.String(c.generator), attrGeneratorType.String(c.typ))...)
	p := metricdata.HistogramDataPoint[float64]{Attributes: attrs, StartTime: r.since, Time: now, Sum: c.Sum.Seconds()}
	for _, bound := range c.Bounds {
		p.Bounds = append(p.Bounds, bound.Seconds())
	}
	for _, n := range c.Counts {
		p.BucketCounts = append(p.BucketCounts, uint64(n))
		p.Count += uint64(n)
	}
	return p
}
