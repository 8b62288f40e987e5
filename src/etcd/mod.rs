//! etcd: in the real build the `etcd-client` crate, in simulation a member and a client of our own
//! with the same names.
//!
//! Code written against `leasehold::etcd` compiles in both builds unchanged. In simulation:
//!
//! | part | state | source |
//! |---|---|---|
//! | range, put, delete, txn (nested too), compaction | modelled | server/etcdserver/txn |
//! | one revision a request that writes, none for one that does not | modelled | server/storage/mvcc |
//! | lease grant, revoke, time to live, list; ids as pkg/idutil makes them | modelled | server/lease |
//! | expiry between TTL and TTL + 0.5 s, each lease in its own revision | modelled | lessor.go |
//! | a renewal never revives a lease that has run out | modelled | lessor.go `Renew` |
//! | watch: from a revision, ranges, filters, `prev_kv`, cancel, progress, compacted start | modelled | mvcc/watchable_store.go |
//! | member list, status | modelled for one member | api/etcdserverpb |
//! | restart of the member | differs: leases get their full time again, none is checkpointed | lessor.go `Promote` |
//! | answers | differs: header ids are constant; status holds version and revision only | |
//! | lock and election services, auth, cluster change, snapshot, alarms, fragments | not modelled: an explicit error | |
//! | channels, TLS, `split` of streams | not modelled: absent | |

#[cfg(madsim)]
mod client;
#[cfg(madsim)]
mod frame;
#[cfg(madsim)]
mod model;
#[cfg(madsim)]
pub mod server;

#[cfg(madsim)]
pub use client::*;
#[cfg(not(madsim))]
pub use etcd_client::*;
