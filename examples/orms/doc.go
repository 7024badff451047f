// Package orms tests shardkey under GORM as it is, without gormshardkey, and under
// the functions that ent's generated clients call: on each SQL server they insert
// single rows, batches and upserts into a table whose keys shardkey fills, and find
// the keys in their structs.
//
// None of them knows of shardkey but by its driver's name. The directories below
// are programs, one for each library.
package orms
