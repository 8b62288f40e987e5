//! etcd: in the real build the `etcd-client` crate itself, in simulation a member and a client of
//! our own under the same names.
//!
//! `use crate::etcd::{Client, …}` compiles in both builds. The simulated member answers as etcd
//! 3.5.30 does, or 3.4.23 ([`server::EtcdVersion`]); recordings of real servers decide where the
//! documentation is silent (`crate::conformance`). Paths below are of etcd's `server/` at v3.5:
//! `apply.go` is `etcdserver/apply.go`, `v3rpc` is `etcdserver/api/v3rpc`.
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
//! | watch: 1000 revisions a message, fragments of 2 MiB | modelled | `watcher_group.go` |
//! | watch: negative start, progress of one that is behind | as 3.4 or 3.5 | `watchable_store.go` |
//! | a deletion in the compacted revision | watched in 3.5, gone in 3.4 | `mvcc/key_index.go` |
//! | limits: proposals 1.5 MiB, messages 2 MiB | modelled | `v3_server.go`, `v3rpc/grpc.go` |
//! | unknown enumeration values, empty operations | modelled; the facade has none | `apply.go` |
//! | member list, status | modelled for one member; sizes are constants | `v3rpc/member.go` |
//! | watch history | differs: at once, not after up to 100 ms | `mvcc/watchable_store.go` |
//! | more than 12 pairs, equal sort values | differs: by key, in Go as it comes | `apply.go` |
//! | an unknown sort target | differs: refused as newer releases do, etcd crashes | `apply.go` |
//! | other requests that crash etcd (a txn that fails midway) | differ: answered | `apply.go` |
//! | messages of several watchers | differs: by stream and id, in etcd random | as above |
//! | connect refused, late | as measured: Unavailable, `tcp connect error` | etcd-client 0.18 |
//! | connection lost under a call | as measured: Unknown, `transport error` | as above |
//! | … under an open stream | as measured: Unknown, `h2 protocol error: …` | as above |
//! | time-out of a call | as measured: Cancelled, `Timeout expired` | as above |
//! | … while connecting | differs: ends; there only `with_connect_timeout` counts | as above |
//! | requests lost, answers lost, requests twice | modelled: `MemberState::inject` | - |
//! | lease checkpoints | not modelled: off by default in etcd too | `lease/lessor.go` |
//! | periodic progress of a watch | not modelled: accepted, no effect | `v3rpc/watch.go` |
//! | limits on the size of messages on streams | not modelled | `v3rpc/grpc.go` |
//! | time to write and to agree | not modelled: applied on arrival | - |
//! | lock: queue, sessions, re-entry, cancel | modelled, as 3.4 or 3.5 | `v3lock`, `mutex.go` |
//! | election: campaign, proclaim, resign, observe | modelled | `v3election`, `election.go` |
//! | order of calls that wake at once | differs: the queue's, in etcd random | `key.go` |
//! | order in which a lost connection's calls end | differs: as asked, in etcd random | - |
//! | member add, remove, update, promote | not modelled: Unimplemented | `v3rpc/member.go` |
//! | users and roles, `with_user` at connect | not modelled: Unimplemented | `v3rpc/auth.go` |
//! | alarm, hash, snapshot, defragment … | not modelled: Unimplemented | `v3rpc/maintenance.go` |
//! | keep-alive and leader options of `connect` | no effect | etcd-client `client.rs` |
//! | TLS | absent; an `https` endpoint is refused | etcd-client `client.rs` |
//! | namespaces: `KvClientPrefix`, `LeaseClientPrefix` | absent | etcd-client `namespace` |
//! | channels: `Channel`, `BalancedChannelBuilder`, `from_channel` | absent | `channel.rs` |
//! | protobuf: `proto`, `WatchStream::split`, conversions | absent | etcd-client `rpc` |
//! | unchecked accessors: `key_str_unchecked` and its like | absent: unsafe | etcd-client `rpc` |

#[cfg(madsim)]
mod client;
// In the real build, too, where it is compared with a real etcd: it needs no simulation.
#[cfg(any(madsim, feature = "harness"))]
#[cfg_attr(not(madsim), allow(dead_code))]
pub(crate) mod model;
#[cfg(madsim)]
mod protocol;
#[cfg(any(madsim, feature = "harness"))]
#[cfg_attr(not(madsim), allow(dead_code))]
pub mod quirk;
#[cfg(madsim)]
pub mod server;

#[cfg(madsim)]
pub use client::*;
#[cfg(not(madsim))]
pub use etcd_client::*;

#[cfg(all(test, madsim))]
mod recorded;
#[cfg(all(test, madsim))]
mod tests;
