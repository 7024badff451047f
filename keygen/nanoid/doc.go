// Package nanoid makes the keys of type NANOID: short random texts that can
// stand in a URL.
//
//	keyGenerators:
//	  short: {type: NANOID}                                         # V1StGXR8_Z5jdHi6B-myT
//	  code:  {type: NANOID, props: {size: 26, alphabet: 0123456789abcdefghjkmnpqrstvwxyz}}
//
// The default is 21 characters of 64, which is 126 bits: as many as a random
// UUID has. Every character is equally likely, whatever the alphabet's length:
// random bytes that would favour some are thrown away.
//
// The keys are only as different as they are long. Health warns when size and
// alphabet give under 100 bits; [Generator.Bits] tells how many they give. With
// b bits, the chance that any two of n keys are equal is about n²/2^(b+1).
package nanoid
