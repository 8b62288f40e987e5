//! Progress of an exploration: a bar on a terminal, plain lines otherwise.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

use crate::explore::Summary;

use super::err;

/// Shows how far an exploration has come.
pub(super) enum Progress {
    /// A bar on a terminal.
    Bar(ProgressBar),
    /// A line every tenth of the way.
    Lines {
        /// How many seeds there are.
        total: u64,
        /// When the next line is due.
        next: u64,
    },
}

impl Progress {
    pub(super) fn new(total: u64) -> Self {
        if !std::io::stderr().is_terminal() {
            return Progress::Lines { total, next: total.div_ceil(10) };
        }
        let bar = ProgressBar::new(total);
        let template = "{bar:40} {pos}/{len} seeds, {per_sec}, {msg}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress::Bar(bar)
    }

    pub(super) fn tell(&mut self, summary: &Summary) {
        let failures = summary.failures_total();
        match self {
            Progress::Bar(bar) => {
                bar.set_position(summary.runs);
                bar.set_message(format!("{failures} not passed"));
            }
            Progress::Lines { total, next } if summary.runs >= *next => {
                err(format_args!("{}/{total} seeds, {failures} not passed", summary.runs));
                *next += total.div_ceil(10);
            }
            Progress::Lines { .. } => {}
        }
    }

    pub(super) fn finish(self) {
        if let Progress::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
