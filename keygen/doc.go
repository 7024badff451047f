// Package keygen documents the packages of key generators and worker-ID assigners. It has no code.
//
//   - keygen/snowflake: SNOWFLAKE and SNOWFLAKE_RING, 63-bit keys of time, worker ID and sequence
//     with any number of bits each
//   - keygen/uuid: UUID, versions 4 and 7
//   - keygen/nanoid: NANOID, short random strings
//   - keygen/segment: LEAF_SEGMENT and TICKET, numbers from tables
//   - keygen/redis: REDIS, time and sequence from a Redis server
//   - keygen/zookeeper: ZOOKEEPER, worker IDs from ZooKeeper, and LEAF_SNOWFLAKE
//   - keygen/etcd: ETCD, worker IDs from etcd
//   - keygen/workerid: leases of worker IDs, with the types STATIC, FILE, SQL, IP and HOSTNAME
//
// Importing a package registers its types with [github.com/shardkey/shardkey/spi]. The driver
// imports snowflake, sequence, uuid, nanoid and workerid. If a rule uses redis, zookeeper or etcd,
// the program has to import that package.
package keygen
