// Package sharding computes where ShardingSphere's sharding algorithms put a row,
// and which keys they put into a given place.
//
// [Compile] makes an [Algorithm] of a type and its properties, [Algorithm.Over] a
// [Strategy], which is an algorithm with the names that it chooses from (data
// sources, or actual tables), and [Strategy.Place] says which of them the values
// of the sharding columns mean. [Strategy.Fit] is the inverse: the keys that belong
// to one of the names.
//
//	MOD, HASH_MOD                    a remainder of the value or of its hash
//	VOLUME_RANGE, BOUNDARY_RANGE     ranges of numbers
//	AUTO_INTERVAL                    ranges of times, numbered
//	INTERVAL                         ranges of times, named after their beginnings
//	INLINE, COMPLEX_INLINE           a Groovy expression of one or more columns
//	COSID_MOD                        as MOD, with a prefix of its own
//
// Formulas are those of ShardingSphere 5.5 and of the versions before it where they
// agree (5.0.0 matched the names of auto tables by their endings, which was
// corrected in 5.1). Everything else is a [*NotUnderstoodError] of [Compile]; a value
// for which ShardingSphere would throw is a [*ValueError] of [Strategy.Place], and
// one that it would send to a name that is not there a [*NoTargetError].
package sharding
