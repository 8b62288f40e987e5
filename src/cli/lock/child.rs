//! The command: a process group of its own, which is given the terminal and the signals.
//!
//! When the command is stopped from its terminal (Ctrl-Z, or because it reads from the background),
//! its group is stopped as a whole, and then this process's, so that the shell gets the terminal
//! back. Nothing runs under the lock then, and nobody renews it. Continued (`fg`, `bg`), this
//! process looks at the lock first: the command goes on when it is held for sure, and is killed
//! where it stands when it is not. A command that is stopped otherwise (SIGSTOP, or without a
//! terminal) is somebody else's to continue: its lock is renewed, and if it is about to be lost the
//! command is woken to be ended.
//!
//! That a command is stopped is noticed on Linux only; elsewhere the system's question for it would
//! also take away the news of its end.

use std::{
    ffi::OsString,
    io::{self, IsTerminal},
    os::unix::process::ExitStatusExt,
    pin::pin,
    process::ExitStatus,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, killpg},
    time::{ClockId, clock_gettime},
    unistd::{Pid, getpgrp},
};
use tokio::process::Command;

use crate::{
    concurrency::{Held, Loss, SessionEnd},
    time::{Instant, sleep},
};

use super::{
    signals::Signals,
    terminal::{Foreground, Terminal, foreground},
    watchdog::{Order, Watchdog},
};

/// How often the clocks are compared.
const LOOK: Duration = Duration::from_millis(50);

/// The clock that counts on while the machine is suspended.
#[cfg(target_os = "linux")]
const COUNTING: ClockId = ClockId::CLOCK_BOOTTIME;
#[cfg(not(target_os = "linux"))]
const COUNTING: ClockId = ClockId::CLOCK_MONOTONIC;

/// The running command.
pub(super) struct Child {
    process: tokio::process::Child,
    group: Pid,
    terminal: Option<Terminal>,
    /// It is given the terminal whenever we have it: it reads from there.
    wants_terminal: bool,
    /// We have stopped it, and continue it.
    suspended: bool,
}

/// How the command ended.
pub(super) struct Ended {
    /// Its status as shells give it.
    pub(super) status: u8,
    /// It was stopped because of the lock; the reason, if the lock is certainly lost.
    pub(super) stopped: Option<Option<Loss>>,
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
        let wants_terminal = io::stdin().is_terminal();
        let terminal = if wants_terminal { Terminal::give(group) } else { None };
        Ok(Child { process, group, terminal, wants_terminal, suspended: false })
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

    /// Waits for the command's end, and sees to it that it ends in time.
    pub(super) async fn watch(
        &mut self,
        held: &Held,
        grace: Duration,
        deadline_permille: u32,
        signals: &mut Signals,
    ) -> io::Result<Ended> {
        signals.take_job_control()?;
        let start = Instant::now();
        let span = held.session().ttl() * deadline_permille / 1000;
        let mut watchdog = Watchdog::new(grace, span, ahead(start)?);
        let (mut lost, mut loss) = (pin!(held.lost()), None);
        let mut asked: Option<Instant> = None;
        let mut ended: Option<ExitStatus> = None;
        let status = loop {
            tokio::select! {
                biased;
                status = self.process.wait(), if ended.is_none() => ended = Some(status?),
                why = &mut lost, if loss.is_none() => loss = Some(why),
                signal = signals.next() => self.pass_on(signal),
                () = sleep(LOOK) => {}
            }
            if let Some(status) = ended
                && (asked.is_none() || !self.is_left())
            {
                break status;
            }
            let deadline = held.deadline().saturating_duration_since(start);
            let order = watchdog.order(start.elapsed(), ahead(start)?, deadline);
            let order = order.max(order_of(loss, held.session().ended()));
            if asked.is_none() && ended.is_none() {
                self.look_after(order);
            }
            // What stands still does no harm: it can wait for a renewal until the deadline.
            let patient = self.suspended && loss.is_none() && order == Order::Terminate;
            if order >= Order::Terminate && asked.is_none() && !patient {
                asked = Some(Instant::now());
                self.signal(Signal::SIGTERM);
                // A stopped process cannot end.
                self.signal(Signal::SIGCONT);
            }
            if order == Order::Kill || asked.is_some_and(|asked| asked.elapsed() >= grace) {
                asked.get_or_insert_with(Instant::now);
                self.signal(Signal::SIGKILL);
                if let Some(status) = ended {
                    break status;
                }
            }
        };
        drop(self.terminal.take());
        let why = || loss.or(held.session().ended().map(Loss::Session));
        Ok(Ended { status: shell_status(status), stopped: asked.map(|_| why()) })
    }

    /// Passes a signal on. Whether a suspended command is continued is decided by the lock.
    fn pass_on(&self, signal: Signal) {
        if !(self.suspended && signal == Signal::SIGCONT) {
            self.signal(signal);
        }
    }

    /// Job control, as long as the lock is not in doubt.
    fn look_after(&mut self, order: Order) {
        if let Some(signal) = stopped(self.group) {
            self.stopped(signal);
        } else if self.suspended && order == Order::Run {
            tracing::info!("the command goes on");
            self.suspended = false;
            if self.wants_terminal {
                self.terminal = Terminal::give(self.group);
            }
            self.signal(Signal::SIGCONT);
        }
    }

    /// The command was stopped by this signal.
    fn stopped(&mut self, signal: Signal) {
        tracing::info!(%signal, "the command is stopped");
        match (signal, foreground()) {
            (Signal::SIGTTIN | Signal::SIGTTOU, Some(Foreground::Own)) => {
                self.wants_terminal = true;
                self.terminal = Terminal::give(self.group);
            }
            (Signal::SIGTSTP | Signal::SIGTTIN | Signal::SIGTTOU, Some(_)) => self.suspend(),
            _ => {}
        }
    }

    /// Stops the command's group and ours. The shell gets the terminal, and continues us.
    fn suspend(&mut self) {
        self.signal(Signal::SIGSTOP);
        drop(self.terminal.take());
        self.suspended = true;
        // Not SIGSTOP: who has no shell to continue it (an orphaned group) must not be stopped,
        // and the system sees to that for this signal. Not SIGTSTP: that one is caught. Not this
        // process alone: a shell waits until the whole job has stopped.
        if let Err(error) = killpg(getpgrp(), Signal::SIGTTOU) {
            tracing::debug!(%error, "not stopped");
        }
    }
}

/// What a loss demands. A deadline that has passed has had its grace before.
fn order_of(loss: Option<Loss>, end: Option<SessionEnd>) -> Order {
    match (loss, end) {
        (_, Some(SessionEnd::Expired)) => Order::Kill,
        (None, None) => Order::Run,
        _ => Order::Terminate,
    }
}

/// The signal by which this child was stopped, told once.
#[cfg(target_os = "linux")]
fn stopped(child: Pid) -> Option<Signal> {
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
    match waitid(Id::Pid(child), WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG) {
        Ok(WaitStatus::Stopped(_, signal)) => Some(signal),
        _ => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn stopped(_: Pid) -> Option<Signal> {
    None
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
