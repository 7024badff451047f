// Package spi holds the interfaces that a key generator or a worker-ID assigner
// implements, and the registries in which a sharding rule finds them by type.
//
// A key generator needs one method and one line of registration. Here the keys
// are random, so that no other process and no restart can repeat them:
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
// What else a generator can do is found by type assertion: [Int64KeyGenerator]
// (keys without boxing), [KeyDecoder], [KeyRanger], [Describer],
// [HealthReporter], [ReadyReporter] and io.Closer.
//
// A factory checks its properties and keeps them; it does no I/O and starts no
// goroutine. Connections are made at the first key. A rule calls each factory
// once to check itself when it is read, and again when the first connector of a
// process opens it, which the others share; it closes what the factories return.
package spi
