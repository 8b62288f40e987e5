//! The simulation tests.
//!
//! `cargo test` builds them with the flag from `.cargo/config.toml`; without it they would be empty
//! and green, so they refuse to be built.

#[cfg(not(madsim))]
compile_error!(
    "the simulation tests need `--cfg madsim`: run plain `cargo test` with no RUSTFLAGS of your \
     own (for the real build use `--test real` as the README says)"
);

mod again;
mod bugs;
mod catalog;
mod client_driver;
mod command;
mod conformance;
mod contrib_case;
mod coverage;
mod demo;
mod determinism;
mod fault;
mod fenced_lock;
mod golden;
mod must_fail;
mod own_lock;
mod own_storage;
mod parity;
mod pasted;
mod recording;
mod report;
mod share;
mod side_by_side;
mod smallest;
mod storage_cases;
mod tidy;
mod user_crate;
