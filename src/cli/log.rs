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
///
/// # Errors
/// If `RUST_LOG` makes no sense: a log that stays silent for a typing error misleads.
pub(super) fn init() -> Result<(), String> {
    let wanted = std::env::var_os(EnvFilter::DEFAULT_ENV).filter(|wanted| !wanted.is_empty());
    let filter = match wanted {
        None => EnvFilter::new(super::LOG),
        Some(wanted) => {
            let wanted = wanted.to_string_lossy();
            EnvFilter::try_new(&wanted).map_err(|error| {
                format!("RUST_LOG is {wanted:?}: {error}; expected such as leasehold=debug")
            })?
        }
    };
    let started = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_timer(Stamp)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .try_init();
    // A second start happens in tests that share a process: the first one's log goes on.
    drop(started);
    Ok(())
}
