//! The terminal: whose it is, lent to the command's process group, and taken back.

use std::{
    fs::{File, OpenOptions},
    io,
};

use nix::{
    errno::Errno,
    sys::signal::{SigSet, Signal, killpg},
    unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp},
};

/// The terminal that controls this process's session, if there is one.
fn controlling() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}

/// Whose the terminal is, as far as this process is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Foreground {
    /// This process's group has it.
    Own,
    /// Another group has it: the shell's, or the command's.
    Other,
}

/// Who has the terminal; none without one.
pub(super) fn foreground() -> Option<Foreground> {
    let group = tcgetpgrp(controlling().ok()?).ok()?;
    Some(if group == getpgrp() { Foreground::Own } else { Foreground::Other })
}

/// The terminal, while the command's group is in its foreground.
pub(super) struct Terminal {
    terminal: File,
    group: Pid,
}

impl Terminal {
    /// Puts the group into the foreground, if there is a terminal and we are there.
    pub(super) fn give(group: Pid) -> Option<Self> {
        let terminal = controlling().ok()?;
        if tcgetpgrp(&terminal).ok()? != getpgrp() {
            return None;
        }
        tcsetpgrp(&terminal, group).ok()?;
        // It may have been stopped because it read before it was there.
        let _ = killpg(group, Signal::SIGCONT);
        Some(Terminal { terminal, group })
    }

    /// Whether the terminal is still the command's, or of a group that it made and left behind. If
    /// a shell has taken it meanwhile, it is not ours to move.
    fn is_given(&self) -> bool {
        match tcgetpgrp(&self.terminal) {
            Ok(group) => group == self.group || killpg(group, None) == Err(Errno::ESRCH),
            Err(_) => false,
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // From the background this is answered with SIGTTOU, unless that is blocked.
        let mut blocked = SigSet::empty();
        blocked.add(Signal::SIGTTOU);
        if self.is_given() && blocked.thread_block().is_ok() {
            let _ = tcsetpgrp(&self.terminal, getpgrp());
            let _ = blocked.thread_unblock();
        }
    }
}
