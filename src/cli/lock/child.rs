//! The command: a process group of its own, which is given the terminal and the signals.

use std::{
    ffi::OsString, io, os::unix::process::ExitStatusExt, process::ExitStatus, time::Duration,
};

use nix::{
    sys::signal::{SigSet, Signal, killpg},
    time::{ClockId, clock_gettime},
    unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp},
};
use tokio::{
    process::Command,
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

use crate::{
    concurrency::Session,
    time::{Instant, sleep},
};

use super::watchdog::{Order, Watchdog};

/// How often the clocks are compared.
const LOOK: Duration = Duration::from_millis(50);

/// The clock that counts on while the machine is suspended.
#[cfg(target_os = "linux")]
const COUNTING: ClockId = ClockId::CLOCK_BOOTTIME;
#[cfg(not(target_os = "linux"))]
const COUNTING: ClockId = ClockId::CLOCK_MONOTONIC;

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

/// The signals that this process gets.
pub(super) struct Signals(mpsc::UnboundedReceiver<Signal>);

impl Signals {
    /// Takes the signals over from the system's defaults. One that is ignored stays ignored, here
    /// and by the command: whoever started this program (`nohup`, a shell in the background) wants
    /// it so.
    pub(super) fn new() -> io::Result<Self> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let ignored = ignored();
        for kind in PASSED_ON {
            if ignored >> (kind as i32 - 1) & 1 == 1 {
                continue;
            }
            let mut incoming = signal(SignalKind::from_raw(kind as i32))?;
            let sender = sender.clone();
            tokio::spawn(async move {
                while incoming.recv().await.is_some() && sender.send(kind).is_ok() {}
            });
        }
        Ok(Signals(receiver))
    }

    /// The next signal. Cancel safe.
    pub(super) async fn next(&mut self) -> Signal {
        match self.0.recv().await {
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

/// The running command.
pub(super) struct Child {
    process: tokio::process::Child,
    group: Pid,
    terminal: Option<Terminal>,
}

impl Child {
    /// Starts the command.
    pub(super) fn start(command: &[OsString], environment: &[(&str, String)]) -> io::Result<Self> {
        let [program, arguments @ ..] = command else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no command"));
        };
        let process = Command::new(program)
            .args(arguments)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .spawn()?;
        let id = process.id().ok_or_else(|| io::Error::other("the command ended at once"))?;
        let group = Pid::from_raw(i32::try_from(id).map_err(io::Error::other)?);
        let terminal = Terminal::give(group);
        Ok(Child { process, group, terminal })
    }

    fn signal(&self, signal: Signal) {
        // The group may be gone already; its end is waited for anyway.
        if let Err(error) = killpg(self.group, signal) {
            tracing::debug!(%signal, %error, "signal not passed on");
        }
    }

    /// Whether anybody is left in the command's group. Whoever was asked to end has the grace
    /// for it, also when the command itself, a shell perhaps, has ended before.
    fn is_left(&self) -> bool {
        killpg(self.group, None).is_ok()
    }

    /// Waits for the command's end, and sees to it that it ends in time. Its status as shells give
    /// it, and whether it was stopped.
    pub(super) async fn watch(
        &mut self,
        session: &Session,
        grace: Duration,
        deadline_permille: u32,
        signals: &mut Signals,
    ) -> io::Result<(u8, bool)> {
        let start = Instant::now();
        let held = session.ttl() * deadline_permille / 1000;
        let mut watchdog = Watchdog::new(grace, held, ahead(start)?);
        let mut asked: Option<Instant> = None;
        let mut ended: Option<ExitStatus> = None;
        let status = loop {
            tokio::select! {
                biased;
                status = self.process.wait(), if ended.is_none() => ended = Some(status?),
                signal = signals.next() => self.signal(signal),
                () = sleep(LOOK) => {}
            }
            if let Some(status) = ended
                && (asked.is_none() || !self.is_left())
            {
                break status;
            }
            let deadline = session.deadline().saturating_duration_since(start);
            let order = watchdog.order(start.elapsed(), ahead(start)?, deadline);
            let overdue = asked.is_some_and(|asked| asked.elapsed() >= grace);
            if order >= Order::Terminate && asked.is_none() {
                asked = Some(Instant::now());
                self.signal(Signal::SIGTERM);
                // A stopped process cannot end.
                self.signal(Signal::SIGCONT);
            }
            if order == Order::Kill || overdue || session.is_done() {
                asked.get_or_insert_with(Instant::now);
                self.signal(Signal::SIGKILL);
                if let Some(status) = ended {
                    break status;
                }
            }
        };
        drop(self.terminal.take());
        Ok((shell_status(status), asked.is_some()))
    }
}

/// How far the counting clock is ahead of the session's; only differences mean something.
fn ahead(start: Instant) -> io::Result<Duration> {
    let counting = Duration::from(clock_gettime(COUNTING)?);
    Ok(counting.saturating_sub(start.elapsed()))
}

fn shell_status(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// The terminal, while the command's group is in its foreground.
struct Terminal {
    own: Pid,
}

impl Terminal {
    /// Puts the group into the foreground, if there is a terminal and we are there.
    fn give(group: Pid) -> Option<Self> {
        let own = getpgrp();
        if tcgetpgrp(io::stdin()).ok()? != own {
            return None;
        }
        tcsetpgrp(io::stdin(), group).ok()?;
        // It may have been stopped because it read before it was there.
        let _ = killpg(group, Signal::SIGCONT);
        Some(Terminal { own })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // From the background this is answered with SIGTTOU, unless that is blocked.
        let mut blocked = SigSet::empty();
        blocked.add(Signal::SIGTTOU);
        if blocked.thread_block().is_ok() {
            let _ = tcsetpgrp(io::stdin(), self.own);
            let _ = blocked.thread_unblock();
        }
    }
}
