// Package sharding computes the table that a row belongs to, as ShardingSphere's sharding algorithms
// do.
//
// [Compile] returns a [Strategy] for a type and its properties. [Strategy.Over] sets the names that it
// chooses from, which are data sources or actual tables. [Strategy.Place] returns the name for a value of the sharding column.
//
//	MOD, HASH_MOD                    a remainder of the value or of its hash
//	VOLUME_RANGE, BOUNDARY_RANGE     ranges of integers
//	INTERVAL                         ranges of times, named after their beginnings
//	INLINE                           an expression of the column
//
// The formulas are those of ShardingSphere 5.5. They accept integers, strings and, for INTERVAL,
// times. For other algorithms [Compile] returns a [*NotUnderstoodError]. [Strategy.Place] returns a
// [*PlaceError] for a value that belongs to none of the names, or whose place isn't known.
package sharding
