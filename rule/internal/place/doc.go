// Package place decides which table a row belongs to, as ShardingSphere's sharding algorithms do.
//
// [Compile] makes an [Algorithm] of a type and its properties, and [Algorithm.Over] a [Strategy]:
// an algorithm with the names that it chooses from, which are data sources or actual tables.
// [Strategy.Place] returns the name to which a value of the sharding column belongs.
//
//	MOD, HASH_MOD                    a remainder of the value or of its hash
//	VOLUME_RANGE, BOUNDARY_RANGE     ranges of integers
//	INTERVAL                         ranges of times, named after their beginnings
//	INLINE                           an expression of the column
//
// The formulas are those of ShardingSphere 5.5, for integers, strings and, with INTERVAL, times.
// For everything else [Compile] returns a [*NotUnderstoodError]. [Strategy.Place] returns a
// [*ValueError] for a value whose place is not known, and a [*NoTargetError] for one that belongs
// to none of the names.
package place
