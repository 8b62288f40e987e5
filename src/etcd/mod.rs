//! etcd: in the real build the `etcd-client` crate itself, in simulation a member and a client of
//! our own under the same names.
//!
//! `use crate::etcd::{Client, …}` compiles in both builds. The simulated member answers as etcd
//! 3.5.30 does; recordings of real servers decide where the documentation is silent. Paths below
//! are of etcd's repository at v3.5.
//!
//! | area | state | source |
//! |---|---|---|
//! | range: range, prefix, from key, sort, limit, revision filters, past revisions | modelled | `server/etcdserver/apply.go` `Range` |
//! | put: lease, prev_kv, ignore_value, ignore_lease | modelled | `apply.go` `Put` |
//! | delete range, prev_kv | modelled | `apply.go` `DeleteRange` |
//! | txn: all comparisons, nesting, limits, duplicate keys | modelled | `apply.go` `Txn`, `api/v3rpc/key.go` |
//! | compaction | modelled; at once, `physical` makes no difference | `server/mvcc/kvstore.go` `Compact` |
//! | an unknown enumeration value | cannot be asked: the facade has no such value | - |
//! | lease grant, renewal, revoke, time to live, list | modelled | `server/lease/lessor.go` |
//! | expiry: looked for every 500 ms, one revision a lease | modelled | `lessor.go` `runLoop` |
//! | lease checkpoints | not modelled: off by default in etcd too | `lessor.go` `checkpointScheduledLeases` |
//! | restart: leases get their full TTL and one election time-out | modelled | `lessor.go` `Promote` |
//! | lease and request ids | modelled | `pkg/idutil/id.go` |
//! | watch: ranges, history, filters, prev_kv, cancel, progress | modelled | `api/v3rpc/watch.go` |
//! | watch history | differs: at once, where a real member takes up to 100 ms | `mvcc/watchable_store.go` `syncWatchersLoop` |
//! | watch: order of several watchers' messages | differs: by stream and id, in etcd random | `watchable_store.go` `notify` |
//! | watch: fragments, periodic progress | not modelled: accepted, without effect | `watch.go` |
//! | member list, status | modelled for one member; sizes are constants | `api/v3rpc/member.go`, `maintenance.go` |
//! | limits on request and message size | not modelled | `api/v3rpc/grpc.go` |
//! | time to write to disk and to agree | not modelled: a request is applied when it arrives | - |
//! | lock and election service | not modelled yet: refused with Unimplemented | `api/v3lock`, `api/v3election` |
//! | authentication, snapshot, alarm, hash, defragment, change of members | not modelled: refused or absent | - |
//! | transport errors | differs: Unavailable instead of `TransportError` | - |
//! | a split watch stream, namespaces, TLS | absent | - |

#[cfg(madsim)]
mod client;
#[cfg(madsim)]
mod model;
#[cfg(madsim)]
mod protocol;
#[cfg(madsim)]
pub mod server;

#[cfg(madsim)]
pub use client::*;
#[cfg(not(madsim))]
pub use etcd_client::*;

#[cfg(all(test, madsim))]
mod tests;
