//! The signals that this process gets, and those it leaves alone.

use std::io;

use nix::sys::signal::Signal;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

/// The signals that are passed on.
const PASSED_ON: [Signal; 7] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
];
/// Those that are passed on once there is a command; before that they stop and continue this
/// process alone, as they should.
const OF_A_JOB: [Signal; 2] = [Signal::SIGTSTP, Signal::SIGCONT];

/// The signals that this process gets.
pub(super) struct Signals {
    sender: mpsc::UnboundedSender<Signal>,
    receiver: mpsc::UnboundedReceiver<Signal>,
}

impl Signals {
    /// Takes the signals over from the system's defaults. One that is ignored stays ignored, here
    /// and by the command: whoever started this program (`nohup`, a shell in the background) wants
    /// it so.
    pub(super) fn new() -> io::Result<Self> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let signals = Signals { sender, receiver };
        signals.take(&PASSED_ON)?;
        Ok(signals)
    }

    /// Takes those over, too, that stop and continue a job.
    pub(super) fn take_job_control(&self) -> io::Result<()> {
        self.take(&OF_A_JOB)
    }

    fn take(&self, kinds: &[Signal]) -> io::Result<()> {
        let ignored = ignored();
        for &kind in kinds {
            if ignored >> (kind as i32 - 1) & 1 == 1 {
                continue;
            }
            let mut incoming = signal(SignalKind::from_raw(kind as i32))?;
            let sender = self.sender.clone();
            tokio::spawn(async move {
                while incoming.recv().await.is_some() && sender.send(kind).is_ok() {}
            });
        }
        Ok(())
    }

    /// The next signal. Cancel safe.
    pub(super) async fn next(&mut self) -> Signal {
        match self.receiver.recv().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }
}

/// The signals that are ignored, one a bit, where the system tells; to ask for one is unsafe code.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    bits.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}
