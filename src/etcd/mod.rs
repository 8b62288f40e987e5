//! etcd: in the real build the `etcd-client` crate itself, in simulation a member and a client of
//! our own under the same names.
//!
//! `use crate::etcd::{Client, …}` compiles in both builds. The simulated member answers as etcd
//! 3.5.30 does; recordings of real servers decide where the documentation is silent. Paths below
//! are of etcd's `server/` at v3.5: `apply.go` is `etcdserver/apply.go`, `v3rpc` is
//! `etcdserver/api/v3rpc`.
//!
//! | area | state | source |
//! |---|---|---|
//! | range: prefix, from key, sort, limit, filters, past revisions | modelled | `apply.go` |
//! | put: lease, prev_kv, ignore_value, ignore_lease | modelled | `apply.go` |
//! | delete range, prev_kv | modelled | `apply.go` |
//! | txn: all comparisons, nesting, limits, duplicate keys | modelled | `v3rpc/key.go` |
//! | compaction | modelled, at once; `physical` makes no difference | `mvcc/kvstore.go` |
//! | lease grant, renewal, revoke, time to live, list | modelled | `lease/lessor.go` |
//! | expiry: looked for every 500 ms, one revision a lease | modelled | `lease/lessor.go` |
//! | restart, change of the leader: full TTL and an election time-out | modelled | `lessor.go` |
//! | many leases at a promotion are spread over time | modelled | `Promote` in `lessor.go` |
//! | leases that end together | differs: by instant, then id; in etcd random | `lessor.go` |
//! | a revocation that got lost is tried again after 3 s | modelled | `lessor.go` |
//! | what survives a kill: all that was applied | differs: no unsynced disk | `mvcc/kvstore.go` |
//! | start of a process | differs: leads at once, in etcd after a second or so | `raft.go` |
//! | without a leader: calls wait, streams break | modelled by hand | `v3rpc/interceptor.go` |
//! | historic bugs | modelled: switches, off by default | `quirk.rs` here |
//! | lease and request ids | modelled | `pkg/idutil/id.go` |
//! | watch: ranges, history, filters, prev_kv, cancel, progress | modelled | `v3rpc/watch.go` |
//! | member list, status | modelled for one member; sizes are constants | `v3rpc/member.go` |
//! | watch history | differs: at once, not after up to 100 ms | `mvcc/watchable_store.go` |
//! | messages of several watchers | differs: by stream and id, in etcd random | as above |
//! | connect refused, late | as measured: Unavailable, `tcp connect error` | etcd-client 0.18 |
//! | connection lost under a call | as measured: Unknown, `transport error` | as above |
//! | … under an open stream | as measured: Unknown, `h2 protocol error: …` | as above |
//! | time-out of a call | as measured: Cancelled, `Timeout expired` | as above |
//! | … while connecting | differs: ends; there only `with_connect_timeout` counts | as above |
//! | requests lost, answers lost, requests twice | modelled: `MemberState::inject` | - |
//! | lease checkpoints | not modelled: off by default in etcd too | `lease/lessor.go` |
//! | watch fragments, periodic progress | not modelled: accepted, no effect | `v3rpc/watch.go` |
//! | limits on the size of messages | not modelled | `v3rpc/grpc.go` |
//! | time to write and to agree | not modelled: applied on arrival | - |
//! | unknown enumeration values | cannot be asked: the facade has none | - |
//! | lock: queue, sessions, re-entry, cancel | modelled, as 3.4 or 3.5 | `v3lock`, `mutex.go` |
//! | election: campaign, proclaim, resign, observe | modelled | `v3election`, `election.go` |
//! | order of calls that wake at once | differs: the queue's, in etcd random | `key.go` |
//! | order in which a lost connection's calls end | differs: as asked, in etcd random | - |
//! | change of members, authentication at connect | not modelled: Unimplemented | - |
//! | auth, alarm, hash, defragment, snapshot, namespaces, TLS, `WatchStream::split` | absent | - |

#[cfg(madsim)]
mod client;
#[cfg(madsim)]
mod model;
#[cfg(madsim)]
mod protocol;
#[cfg(madsim)]
pub mod quirk;
#[cfg(madsim)]
pub mod server;

#[cfg(madsim)]
pub use client::*;
#[cfg(not(madsim))]
pub use etcd_client::*;

#[cfg(all(test, madsim))]
mod tests;
