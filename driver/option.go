package driver

import (
	"log/slog"

	"github.com/shardkey/shardkey/spi"
)

// Option sets what cannot stand in a rule file.
type Option func(*options)

type options struct {
	clock  spi.Clock
	logger *slog.Logger
	server string
}

// WithClock gives the generators another clock than the system's. It is for
// tests.
func WithClock(clock spi.Clock) Option {
	return func(o *options) { o.clock = clock }
}

// WithLogger takes the few lines that are logged, as the warning about a
// SNOWFLAKE without worker id. The default is slog.Default().
func WithLogger(logger *slog.Logger) Option {
	return func(o *options) { o.logger = logger }
}

// WithServer says what the server is, as the DSN's parameter shardkeyServer
// does: "auto" (the default: it is asked once), "mysql", "mariadb" or "other".
func WithServer(kind string) Option {
	return func(o *options) { o.server = kind }
}

func newOptions(opts []Option) options {
	var o options
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	return o
}

// host is what the generators of a connector with this data source see.
func (o options) host(dsn string) spi.Host {
	return spi.Host{DSN: dsn, Clock: o.clock, Logger: o.logger}
}
