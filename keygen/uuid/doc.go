// Package uuid generates the keys of type UUID: random ones (version 4) and
// time-ordered ones (version 7), as text or as 16 bytes
// (https://www.rfc-editor.org/rfc/rfc9562, sections 5.4 and 5.7).
//
//	keyGenerators:
//	  uuid:  {type: UUID}                               # 9f2c…, 32 hex digits, as ShardingSphere's UUIDKeyGenerateAlgorithm
//	  uuid7: {type: UUID, props: {version: 7, format: binary}}
//
// The formats are hex (32 digits, CHAR(32)), canonical (with dashes, CHAR(36))
// and binary (16 bytes, BINARY(16)).
//
// Version 4 is 122 bits of crypto/rand and nothing else; nothing is shared
// between goroutines, and no random bytes are kept for later, which a cloned
// virtual machine would use again.
//
// Version 7 begins with the time, so that new keys go to the end of an index. The
// bits below the millisecond are RFC 9562's method 3 (section 6.2):
//
//	48 bits         | 4 |      12 bits         | 2 |  62 bits
//	ms since 1970   | 7 | 1/4096 ms or counter |   |  crypto/rand
//
// The 60 bits of time only ever rise within a generator: a key is above all
// that the generator made before, whatever the clock does. When keys are requested
// faster than 4,096 a millisecond, or the clock steps back, the time continues
// from the last key's, ahead of the clock.
package uuid
