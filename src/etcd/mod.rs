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
//! | restart: full TTL and one election time-out more | modelled | `Promote` in `lessor.go` |
//! | lease and request ids | modelled | `pkg/idutil/id.go` |
//! | watch: ranges, history, filters, prev_kv, cancel, progress | modelled | `v3rpc/watch.go` |
//! | member list, status | modelled for one member; sizes are constants | `v3rpc/member.go` |
//! | watch history | differs: at once, not after up to 100 ms | `mvcc/watchable_store.go` |
//! | messages of several watchers | differs: by stream and id, in etcd random | as above |
//! | transport errors | differs: Unavailable, not `TransportError` | etcd-client `error.rs` |
//! | lease checkpoints | not modelled: off by default in etcd too | `lease/lessor.go` |
//! | watch fragments, periodic progress | not modelled: accepted, no effect | `v3rpc/watch.go` |
//! | limits on the size of messages | not modelled | `v3rpc/grpc.go` |
//! | time to write and to agree | not modelled: applied on arrival | - |
//! | unknown enumeration values | cannot be asked: the facade has none | - |
//! | lock and election service | not modelled yet: Unimplemented | `v3lock`, `v3election` |
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
