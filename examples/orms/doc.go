// Package orms tests shardkey under the object mappers that Go programs use:
// GORM, sqlx, bun, ent and xorm insert single rows and batches into a MariaDB
// table whose keys shardkey fills, and find the keys in their structs.
//
// None of them knows of shardkey but by its driver's name.
package orms
