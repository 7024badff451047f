// Package spi holds the interfaces that a key generator or a worker-id assigner
// implements, and the registries in which a sharding rule finds them by type.
//
// A key generator needs one method and one line of registration:
//
//	type ticktock struct{ n atomic.Int64 }
//
//	func (g *ticktock) GenerateKeys(_ context.Context, _ spi.Column, n int) ([]any, error) {
//		keys := make([]any, n)
//		for i := range keys {
//			keys[i] = g.n.Add(1)
//		}
//		return keys, nil
//	}
//
//	func init() {
//		spi.RegisterKeyGenerator("TICKTOCK", func(spi.Props) (spi.KeyGenerator, error) { return new(ticktock), nil })
//	}
//
// What more a generator can do is found by type assertion: [Int64KeyGenerator]
// (keys without boxing), [KeyDecoder], [KeyRanger], [Describer],
// [HealthReporter] and io.Closer.
//
// A factory checks its properties and keeps them; it does no input or output
// and starts no goroutine. Connections are made at the first key. A rule calls
// factories once to check itself when it is read, and again for each connector
// that uses it; it closes what they return.
package spi
