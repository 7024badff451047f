// Package nanoid generates the keys of type NANOID: short random texts that need
// no escaping in a URL, as those of https://github.com/ai/nanoid.
//
//	keyGenerators:
//	  short: {type: NANOID}                                         # V1StGXR8_Z5jdHi6B-myT
//	  code:  {type: NANOID, props: {size: 26, alphabet: 0123456789abcdefghjkmnpqrstvwxyz}}
//
// The default is 21 characters of 64, which is 126 bits: as many as a random
// UUID has. Every character is equally likely, whatever the alphabet's length:
// random bytes that would favour some are discarded.
//
// Short keys collide sooner. Health warns when size and alphabet have under 100
// bits. With b bits, the chance that any two of n keys are equal is about n²/2^(b+1).
package nanoid
