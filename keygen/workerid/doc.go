// Package workerid leases the worker IDs of snowflake-like generators so that no
// two ids can ever be equal, whatever the machines' clocks do. The assigners and
// their properties are in docs/understand/leases.md.
//
// # Leases by time interval
//
// Two generators with one worker ID repeat each other when they make ids of the
// same time. The usual guards (heartbeats, ephemeral nodes, a time reported
// each few seconds) all trust a clock: a process that was paused, or whose
// clock stepped back, does not know that its worker ID has a new owner. Here a
// store keeps one [Record] for each worker ID, {owner, reserved_until}, and
// reserved_until is in id time: the time that is written into ids.
//
//   - A holder reserves time ahead of its use (10 s, moved on each 3 s) and
//     makes no id whose time is at or past its limit.
//   - Its successor makes no id whose time is below the stored reserved_until.
//
// # Why no id repeats
//
// Let the intervals of one worker ID be [floor, limit) of each lease. It is
// enough that intervals of different leases never overlap. The rules (rules.go,
// each a function of a few lines) and the argument:
//
//  1. A record changes only by an atomic compare-and-set on the very record that
//     was read. Each write has a fresh random owner token, so no record is ever
//     written twice, and a write that is delayed until after another one fails.
//  2. Hence the records of a worker ID form one chain r1 → r2 → …, and each link
//     was made by a lease that held the one before (a renewal) or by a new lease
//     (a takeover).
//  3. reserved_until never falls along the chain (rule raise).
//  4. A lease raises its limit to u only when the store has confirmed its own
//     record with reserved_until = u (rule confirmed), so that this link lasts and
//     all before it. After a lost answer the limit stays, and the record is read
//     again. To read back its own token is not enough (rule shown): a store may show
//     what it would forget in a crash, as InnoDB without a binary log shows a
//     commit before its log is on disk. The lease then writes once more, on top
//     of what it read; when that is confirmed, both last.
//     So at every moment limit ≤ reserved_until of the lease's own last link that
//     cannot be forgotten.
//  5. A takeover writes on top of the record that it read, and starts at its
//     reserved_until or above (rule floor). Once that is confirmed the record below
//     lasts as well. By 3 and 4 it starts at or past the limit that any lease
//     before it can have or get: their later writes fail by 1.
//  6. So floor(successor) ≥ limit(predecessor): the intervals are disjoint. No
//     step uses a clock. Clocks only decide when a record looks free.
//
// Releasing: an owner that has stopped for good writes free_from, the first
// millisecond that it did not use, and its successor starts there instead of at
// reserved_until, which stays where it is. The owner's limit is gone before that
// write is sent, its successor's floor is past its last id, and by 1 none of its
// earlier writes can be applied after it.
//
// # What it rests on, and what it cannot do
//
// The store must not forget a write that it confirmed: a Redis without
// appendfsync always, an asynchronous replica made primary, a restored backup
// hand out intervals again. Worker IDs need to be unique only
// within one namespace and one layout and epoch.
//
// Where it forgets all the same, both owners continue until the older one renews: it
// finds that its record is not there, its limit is gone, and it takes another
// worker ID.
//
// # Failover
//
// A server that takes over from another one may lack its last writes, and with them leases
// whose owners are alive. Where a store knows its server (identified), the argument is:
//
//  7. Each new lease asks, after it has its record, whether its server is the one in the
//     notes. If not, F is when that was first seen, and no new lease on that server starts
//     before F + 2L, L being the longest lease in force (rule longest). A lease that the
//     server lacks was confirmed by the server before, so its limit is at most L
//     after that moment by its owner's clock. The second L is for clocks that differ, and for
//     the time until the change is seen nothing is granted by the new server.
//  8. L is in the notes as well. A longer lease is noted first and used once the note is as
//     old as that lease is long (rule settled). A replica that lacks the note is behind by
//     less than that, and the leases that it lacks are of the length before.
//  9. A lease of before may itself begin ahead of the clock, by 7. So F is not before the
//     start that the notes gave to those leases.
//  10. A record that the new server shows need not be the newest of its chain, if the
//     one on top of it was lost. A lease whose reservation has run out, so that another process
//     may have taken it over, ends if the server is another one than at its beginning
//     (rule others).
//
// This rests on clocks that agree within a lease, on a replica that is behind by no more than
// the shortest lease and has the notes' server, and on an old server that is not
// written to any more. A server that becomes the old one again, with its old data, has the
// same name and is not noticed.
//
// # Clocks that are ahead
//
// A clock that is too far ahead would make worker IDs useless until its time has come, so that
// nothing is reserved by it (clock.go). Uniqueness does not rest on that.
//
// # Copies of a running process
//
// A virtual machine or a process that was saved and is started from what was
// saved, twice or next to the original, runs one lease twice. Step 5 does not hold
// for copies: they have the same token and the same limit, and make the same keys
// without asking anybody. No scheme without a look at the store for each key can
// exclude that. What holds:
//
//   - A record is renewed by one of the copies only. Each write has a new token
//     (of random bits and the time, as copies may continue with the same random
//     numbers) and is made on the very record that was read, so that the first write
//     wins and all others fail, in every store. Those who lose have no limit any
//     more and take another worker ID before their next tick. So copies make the same keys
//     until each has tried to renew, which is within renew (3 s) and one operation of
//     the store; a copy that cannot reach the store, until the limit that the lease
//     had: within lease (10 s). The repeated keys have times before that limit.
//   - A copy that wakes with the right time past the limit repeats nothing.
//   - Where something tells, a copy stops before that. Boot id and start time of the
//     process, which differ when a process was saved alone, as containers are, and a
//     clock that was set in the meantime are looked at each 100 ms. A lease that finds
//     its process to be a copy is over: it is neither renewed nor released, and its
//     worker ID is free when the reservation has run out.
//   - Nothing tells a copy of a whole virtual machine: boot id, machine id, process id
//     and monotonic clock are the snapshot's.
//
// # Assigners
//
// FILE, SQL (here), REDIS, ETCD and ZOOKEEPER (in their own packages) are this
// mechanism over a [Store]. STATIC, IP and HOSTNAME have a worker ID without a
// lease: nothing is checked, and uniqueness is up to the configuration.
package workerid
