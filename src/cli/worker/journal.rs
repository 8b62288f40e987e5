//! The record of one process: a file of JSON lines that is complete whenever the process ends.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use nix::time::{ClockId, clock_gettime};

use crate::{
    cli::err,
    history::{ApplyRow, Boundary, Event, EventKind, NodeName, codec},
    storage::ApplyLog,
    time::Instant,
    workload::Witness,
};

/// The record cannot be written (`EX_IOERR` of sysexits.h).
const UNWRITTEN: i32 = 74;
/// How far apart the two readings of one instant may be.
const APART_MAX: Duration = Duration::from_micros(200);

/// A file of its own, without a buffer.
pub(super) struct Journal {
    file: Mutex<(File, u64)>,
    /// One instant, as this program's clock and as the machine's monotonic clock give it.
    origin: (Instant, u64),
}

impl Journal {
    /// Creates the file, with its version line.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let mut file = File::create_new(path)?;
        file.write_all(codec::header_line().as_bytes())?;
        Ok(Journal { file: Mutex::new((file, 0)), origin: origin()? })
    }

    fn note(&self, node: NodeName, kind: EventKind) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = monotonic_ns().and_then(|at_ns| {
            let event = Event { seq: file.1, at_ns, node, kind };
            file.0.write_all(codec::event_line(&event).as_bytes())
        });
        file.1 += 1;
        if let Err(error) = written {
            // Nothing may happen that is not on record.
            err(format_args!("leasehold worker: the record cannot be written: {error}"));
            std::process::exit(UNWRITTEN);
        }
    }
}

impl Witness for Journal {
    fn record(&self, node: NodeName, kind: EventKind) {
        self.note(node, kind);
    }

    fn local_ns(&self, at: Instant) -> u64 {
        let (instant, ns) = self.origin;
        match at.checked_duration_since(instant) {
            Some(after) => ns.saturating_add(after.as_nanos() as u64),
            None => ns.saturating_sub(instant.duration_since(at).as_nanos() as u64),
        }
    }

    fn life_over(&self, _draws: u64) {}
}

impl ApplyLog for Journal {
    fn boundary(&self, boundary: Boundary) {
        self.note(NodeName::Storage, EventKind::Storage(boundary));
    }

    fn applied(&self, row: ApplyRow) {
        self.note(NodeName::Storage, EventKind::Apply(row));
    }
}

fn monotonic_ns() -> io::Result<u64> {
    let now = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC)?);
    Ok(now.as_nanos() as u64)
}

/// Reads both clocks at one instant: again, if the process was stopped between the readings.
fn origin() -> io::Result<(Instant, u64)> {
    loop {
        let before = monotonic_ns()?;
        let instant = Instant::now();
        let after = monotonic_ns()?;
        if Duration::from_nanos(after.saturating_sub(before)) <= APART_MAX {
            return Ok((instant, before));
        }
    }
}
