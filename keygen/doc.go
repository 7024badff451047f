// Package keygen contains the key generators and worker-ID assigners, one family
// a package. It holds no code itself.
//
//   - keygen/snowflake: SNOWFLAKE and SNOWFLAKE_RING, 63-bit keys of time,
//     worker and sequence in any split
//   - keygen/uuid: UUID, versions 4 and 7
//   - keygen/nanoid: NANOID, short random texts
//   - keygen/sequence: LEAF_SEGMENT and TICKET, numbers from tables
//   - keygen/redis: REDIS, time and sequence from a Redis server
//   - keygen/zookeeper: ZOOKEEPER, worker IDs from ZooKeeper, and LEAF_SNOWFLAKE
//   - keygen/etcd: ETCD, worker IDs from etcd
//   - keygen/workerid: the lease that makes worker IDs safe, and its stores
//     STATIC, FILE, SQL, IP and HOSTNAME
//
// Importing a package registers its types with
// [github.com/shardkey/shardkey/spi]. The driver imports those that need no
// client of another server: snowflake, sequence, uuid, nanoid and workerid.
// Import redis, zookeeper and etcd where a rule uses them.
package keygen
