//! Log output: quiet unless `RUST_LOG` asks for it, to standard error.

use std::fmt;

use tracing_subscriber::{
    EnvFilter,
    fmt::{format::Writer, time::FormatTime},
};

/// In simulation: true time, node and the node's own clock. In the real build: the wall clock.
struct Stamp;

impl FormatTime for Stamp {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        crate::time::stamp(writer)
    }
}

/// Starts the log, once a process.
pub(super) fn init() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(super::LOG));
    let started = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_timer(Stamp)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .try_init();
    // A second start happens in tests that share a process: the first one's log goes on.
    drop(started);
}
