// Package keygen is the home of the built-in key generators and worker-id
// assigners, one family a package. It holds no code.
//
//   - keygen/snowflake: SNOWFLAKE and SNOWFLAKE_RING, 63-bit keys of time,
//     worker and sequence in any split
//   - keygen/uuid: UUID, versions 4 and 7
//   - keygen/nanoid: NANOID, short random texts
//   - keygen/leaf: LEAF_SEGMENT, number segments out of a table
//   - keygen/ticket: TICKET, ticket tables on several servers
//   - keygen/redis: REDIS, time and sequence from a Redis server
//   - keygen/zookeeper, keygen/etcd: worker ids from those stores
//   - keygen/workerid: the lease that makes worker ids safe, and its stores
//     STATIC, FILE, SQL, IP and HOSTNAME
//
// Importing a package registers its types with
// [github.com/shardkey/shardkey/spi]; the driver imports them all.
package keygen
