//! Leasehold: find out whether your etcd lock really keeps a late writer out.
//!
//! A lock with a lease can be lost while its holder still believes in it: a GC pause, a slow
//! network, a drifting clock. Only the shared resource can stop the late write, by checking a
//! *fencing token*. Leasehold runs the whole of it, etcd, storage and clients, in a deterministic
//! simulation, injects the faults that make leases run out under their holders, and judges from the
//! truth whether a stale write was let in or a rightful owner was locked out.
//!
//! # Bird's eye
//!
//! A run is made of a [`seed`], a [`scenario`] and a fault [`plan`]: together a [`case`]. The
//! [`runner`] builds a simulated cluster, lets the clients of a workload contend for a lock while
//! the plan is executed, heals, and reads the final state. What comes out is a [`history`]: what
//! clients saw, etcd's commit log, the storage's apply log. The [`checker`]s decide from it alone.
//! [`explore`] does this for many seeds; [`testing`] is the door for your own `#[test]`s.
//!
//! # Code map
//!
//! | module | what | may use |
//! |---|---|---|
//! | [`history`] [`plan`] [`case`] [`seed`] | pure, serialisable values | each other |
//! | [`time`] [`net`] [`point`] | the boundary: node clocks, network, code points | |
//! | [`etcd`] | etcd-client's API: real, or the simulated member behind it | boundary |
//! | [`conformance`] | recordings of real etcd servers against the simulated one | `etcd` |
//! | [`concurrency`] | `Session`, `Mutex`, `Election`, a port of etcd's package | `etcd` |
//! | [`storage`] | the fenced key-value store, its server and client | boundary |
//! | [`system`] | the parts of a run that another storage or lock may replace | the two above |
//! | [`contrib`] | contrib/lock's client program | `concurrency`, `storage` |
//! | `cluster` | the simulated nodes and the hands on them | all above |
//! | [`fault`] `workload` [`checker`] | what harms, works, judges | `cluster`; `history` |
//! | [`bug`] | known bugs: wrong variants of the parts | `system` |
//! | [`scenario`] [`runner`] [`judge`] | bundles; one run; its verdict | all above |
//! | [`explore`] [`shrink`] | many runs; the smallest that shows it | all above |
//! | [`corpus`] [`report`] | cases to keep; a timeline | all above |
//! | [`hunt`] | how many seeds catch a known bug | `bug`, `explore` |
//! | [`testing`] `cli` | `#[test]`s; the program | all above |
//!
//! # Invariants
//!
//! Checked by `sim-tests/tidy.rs` where a parser can check them.
//!
//! 1. Arrows point down only (in the table: a row uses rows above it).
//! 2. [`checker`] imports [`history`] and nothing else of ours.
//! 3. [`history`], [`plan`], [`case`], [`seed`] know no simulation and do no I/O.
//! 4. [`concurrency`] and [`storage`] do not know that they are simulated.
//! 5. `workload` injects no faults, [`fault`] issues no operations; they meet in [`runner`].
//! 6. Only `cli` and [`testing`] read the environment and the wall clock, write files and print.
//!    (Runs are made in one place; it gives up one that does not end, whatever the machine.)
//! 7. State machines are synchronous and take the time as an argument.
//! 8. All traffic goes through [`net`], all waiting through [`time`].
//! 9. Nothing process-global is read in a run; every iterated collection is ordered; every
//!    `select!` is `biased;`.
//!
//! # Two builds
//!
//! Under `--cfg madsim` everything is there. Without it (the real build) the simulation is not, and
//! [`etcd`], [`time`] and [`net`] are etcd-client and tokio; workloads and checkers are the same.

#[cfg(all(madsim, feature = "harness"))]
pub mod bug;
#[cfg(feature = "harness")]
pub mod case;
#[cfg(feature = "harness")]
pub mod checker;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(all(madsim, feature = "harness"))]
pub(crate) mod cluster;
pub mod concurrency;
#[cfg(feature = "harness")]
pub mod conformance;
pub mod contrib;
#[cfg(all(madsim, feature = "harness"))]
pub mod corpus;
#[cfg(all(madsim, feature = "harness"))]
pub mod demo;
pub mod etcd;
#[cfg(all(madsim, feature = "harness"))]
pub mod explore;
#[cfg(all(madsim, feature = "harness"))]
pub mod fault;
pub mod history;
#[cfg(all(madsim, feature = "harness"))]
pub mod hunt;
#[cfg(all(madsim, feature = "harness"))]
pub mod judge;
pub mod net;
#[cfg(feature = "harness")]
pub mod plan;
pub mod point;
#[cfg(feature = "harness")]
pub mod report;
#[cfg(all(madsim, feature = "harness"))]
pub mod runner;
#[cfg(all(madsim, feature = "harness"))]
pub mod scenario;
#[cfg(feature = "harness")]
pub mod seed;
#[cfg(all(madsim, feature = "harness"))]
pub mod shrink;
pub mod storage;
#[cfg(all(madsim, feature = "harness"))]
pub mod testing;
// Without the flag a test compiles all the same, and fails with the lines to add.
#[cfg(all(not(madsim), feature = "harness"))]
#[path = "testing/absent.rs"]
pub mod testing;
// In a real build only the program works: its hidden worker is a client of the hammer test.
#[cfg(feature = "harness")]
#[cfg_attr(not(madsim), allow(dead_code, unused_imports))]
pub mod system;
pub mod time;
#[cfg(any(all(madsim, feature = "harness"), feature = "cli"))]
pub(crate) mod workload;
