//! Tests against a real etcd, in the real build. They fail, never skip, without one.
//!
//! ```text
//! RUSTFLAGS= RUSTDOCFLAGS= CARGO_TARGET_DIR=target/real cargo test --test real
//! ```
//!
//! `etcd` is looked up in PATH; the variable `LEASEHOLD_ETCD` names another one. Each test starts a
//! member of its own on a free loopback port, with an empty data directory.
//!
//! In the simulation build this file has no tests: there the same code runs against the simulated
//! etcd, in the target `sim`, which in turn refuses to be built without `--cfg madsim`.

#[cfg(not(madsim))]
mod contrib_case;
#[cfg(not(madsim))]
mod parity;
#[cfg(not(madsim))]
mod recording;

#[cfg(not(madsim))]
mod real {
    mod auth;
    mod certificates;
    mod client;
    mod contrib_program;
    mod differential;
    mod disk;
    mod drop_in;
    mod election;
    mod endpoint;
    mod hammer;
    mod held;
    mod job_control;
    mod late_endpoint;
    mod lock_program;
    mod lock_start;
    mod member;
    mod mutex;
    mod no_simulation;
    mod program;
    mod session;
    mod storage_cases_program;
    mod storage_program;
    mod tls;
    mod trio;
    mod twin;
}
