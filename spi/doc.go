// Package spi defines the interfaces of key generators and worker-ID assigners, and the registries
// from which sharding rules get them by type.
//
// A custom generator of text keys needs one method and one registration. The keys of this one are random, so
// that they don't repeat in other processes or after a restart:
//
//	type ulid struct{}
//
//	func (ulid) GenerateKeys(_ context.Context, _ spi.Column, n int) ([]any, error) {
//		keys := make([]any, n)
//		for i := range keys {
//			keys[i] = fmt.Sprintf("%012x-%s", time.Now().UnixMilli(), rand.Text())
//		}
//		return keys, nil
//	}
//
//	func init() {
//		spi.RegisterKeyGenerator("MY_ULID", func(spi.Props) (spi.KeyGenerator, error) { return ulid{}, nil })
//	}
//
// A generator can implement further interfaces, which shardkey finds by type assertion:
// [Int64KeyGenerator] for keys that are integers, [KeyDecoder], [KeyRanger],
// [Describer], [HealthReporter], [ReadyReporter] and io.Closer.
//
// A factory checks its properties and stores them. It does no I/O and starts no goroutine. The
// generator connects when the first key is needed. When a rule is loaded, it calls each factory once
// to check the properties. It calls the factories again when the first connector of the process
// opens the rule, and later connectors share the result. The rule closes everything that the
// factories return.
package spi
