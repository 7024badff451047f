// Package workerid leases worker IDs to snowflake-like generators, so that no two keys are equal
// whatever the machines' clocks show. The page about [leases] describes the assigners.
//
// # Leases of time intervals
//
// Two generators with the same worker ID generate the same keys if they use the same time. Common
// solutions trust a clock: heartbeats, ephemeral nodes, a time that is reported every few seconds. A
// process that was paused, or whose clock stepped back, doesn't know that its worker ID has a new
// owner. Here a store has one [Record] {owner, reserved_until} for each worker ID. reserved_until is
// in key time, which is the time in keys.
//
//   - A holder reserves time before it uses it: 10 s, extended every 3 s. It generates no key
//     whose time is at or past its limit.
//   - Its successor generates no key whose time is below the stored reserved_until.
//
// # Why no key repeats
//
// Each lease of a worker ID has an interval [floor, limit). It is enough to show that the intervals
// of different leases never overlap. The file rules.go of this package has the rules. The proof:
//
//  1. A record only changes by an atomic compare-and-set of the record that was read. Each write has
//     a new random owner token. So no record is ever written twice, and a write that is delayed
//     until after another one fails.
//  2. So the records of a worker ID are a chain r1 → r2 → …, in which each link was written by a
//     lease that held the previous record (a renewal) or by a new lease (a takeover).
//  3. reserved_until never decreases along the chain (rule raised).
//  4. A lease raises its limit to u only when the store has acknowledged the lease's own record with
//     reserved_until = u (rule confirmed). This link and all links before it are then durable. If
//     the answer was lost, the limit stays as it is, and the lease reads the record again. It isn't
//     enough that the lease reads its own token. A store may return a write that it loses in a
//     crash: InnoDB without a binary log returns a commit before its log is on disk. The lease then
//     writes again, on top of the record that it read. When the store acknowledges that write, both
//     are durable. So at every moment, limit ≤ reserved_until of the lease's own last link that
//     can't be lost.
//  5. A takeover replaces the record that it read, and starts at its reserved_until or later (rule
//     floorAfter). When the store acknowledges that write, the replaced record is durable too. By 3
//     and 4, the takeover starts at or after any limit that an earlier lease has or will have: by
//     1, later writes of the earlier leases fail.
//  6. So floor(successor) ≥ limit(predecessor), and the intervals are disjoint. No step uses a
//     clock. Clocks only determine when a record looks free.
//
// Release: an owner that has stopped for good writes free_from, the first millisecond that it didn't
// use. Its successor starts there instead of at reserved_until, which stays as it is. The owner sets
// its limit to 0 before it sends that write, and its successor's floor is past its last key. By 1,
// none of its earlier writes can be applied after the release.
//
// # Requirements and limits
//
// The store must not lose a write that it acknowledged. A Redis server without appendfsync always,
// an asynchronous replica that becomes the primary, or a restored backup can lease the same interval
// again. Worker IDs only need to be unique within one namespace, one layout and one epoch.
//
// If the store loses a write anyway, both owners continue until the older one renews. It finds that
// its record is gone, sets its limit to 0, and leases another worker ID.
//
// # Records that are removed
//
// A worker ID without a record was never used, or its record was removed: a truncated table,
// FLUSHALL, a removed directory. If the clocks of both owners agree and their leases have the same
// length, even that repeats no key:
//
//   - A lease reserves at most one lease length L beyond the clock reading r of its renewal, so its
//     limit is at most r + L. It reserves more only when its generator asks for a time that is L
//     ahead of the clock, or L/2 once the clock has passed the start of the lease (lease.target).
//   - The first record of a worker ID has no times and is nobody's. A lease that replaces it starts
//     at the last millisecond before t + L, where t is its clock (rule floorAfter). It then asks for
//     times that are less than L ahead.
//   - The first record was written after the removal and before t was read, and r was read before
//     the removal. So r < t, and the intervals are disjoint.
//
// A generator asks for times further ahead if it has no more keys at the time of its clock: its
// clock stepped back, it makes as many keys as the layout has, or its ticks are longer than a
// millisecond. It may then repeat keys with a successor until its next renewal. A record that is
// replaced by an older one, as from a backup, isn't covered: its successor starts where that ended.
//
// # Failover
//
// A server that takes over from another server may lack its last writes, and with them the leases of
// running processes. If the store knows the name of its server (Info.serverID), the proof
// continues:
//
//  7. After each new lease has its record, it checks whether the server is the one in the notes. If
//     it isn't, F is the time when that was first seen. No new lease on that server starts before
//     F + 2L, where L is the longest lease in force (assigner.longest). A lease that the server lacks
//     was acknowledged by the old server, so its limit is at most L after that moment, by its
//     owner's clock. The second L allows for clocks that differ. Until the change is seen, the new
//     server grants nothing.
//  8. L is in the notes too. A longer lease is noted first, and used once the note is as old as that
//     lease is long (rule settled). A replica that lacks the note is behind by less than that, and
//     the leases that it lacks have the earlier length.
//  9. By 7, an earlier lease may itself start ahead of the clock. So F is not before the start that
//     the notes gave to those leases.
//  10. A record that the new server returns need not be the newest of its chain, if its successor
//     was lost. If the reservation of a lease has ended, another process may have taken it over.
//     Such a lease ends if the server isn't the one that it started on (lease.mayBeOthers).
//
// This requires that clocks agree within a lease, and that nothing writes to the old server any
// more. A replica must be behind by at most the shortest lease, and must have the notes of the old
// server. If the old server becomes the primary again with its old data, it has the same name, and
// the change isn't noticed.
//
// # Clocks that are ahead
//
// A clock that is too far ahead would make worker IDs unusable until that time. Nothing is reserved
// by such a clock (clock.go). Uniqueness doesn't depend on that.
//
// # Clones of a running process
//
// If a virtual machine or a process is saved and restored twice, or restored next to the original,
// two clones use the same lease. Step 5 doesn't hold for clones: they have the same token and the
// same limit, and generate the same keys without a request to the store. This could only be excluded
// with a request for each key. The following holds:
//
//   - Only one of the clones can renew a record. Each renewal is a write, even if the time is
//     already reserved. Each write has a new token and replaces the record that was read, so in every store the first write succeeds and all others fail. The token has
//     random bits and the time, because clones may generate the same random bits. A clone whose
//     write fails sets its limit to 0, and leases another worker ID before its next tick. So clones
//     generate the same keys until each has tried to renew, which takes at most renew (3 s) and one
//     store operation. A clone that can't reach the store stops at the lease's limit, within lease
//     (10 s). The repeated keys have times before that limit.
//   - A clone that resumes with the right time after the limit repeats no key.
//   - Some clones notice it earlier. Every 100 ms, a lease checks the boot ID, the start time of the
//     process, and whether the clock was set. The first two differ if only the process was
//     restored, as with containers. If a lease finds that its process is a clone, it ends. It is
//     neither renewed nor released, and its worker ID becomes free when the reservation ends.
//   - A clone of a whole virtual machine can't be recognized by the boot ID, machine ID, process ID
//     or monotonic clock, because these are part of the snapshot.
//
// # Assigners
//
// FILE and SQL are in this package, and REDIS, ETCD and ZOOKEEPER in their own packages. They lease
// worker IDs with a [Store]. STATIC, IP and HOSTNAME have a worker ID without a lease. They check
// nothing, so the configuration must ensure that worker IDs are unique.
//
// [leases]: https://github.com/shardkey/shardkey/blob/main/docs/understand/leases.md
package workerid
