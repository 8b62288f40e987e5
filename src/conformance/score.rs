//! The score: how many cases of which version and area match.

use std::collections::BTreeMap;

use crate::etcd::model::version::EtcdVersion;

use super::{
    recording::{Recording, RecordingError},
    replay::{Mismatch, replay_case},
};

/// How many of so many cases match.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Score {
    /// Cases that match in every step.
    pub passed: usize,
    /// All cases.
    pub total: usize,
}

impl Score {
    /// Whether there is something and all of it matches.
    pub fn is_full(self) -> bool {
        self.total > 0 && self.passed == self.total
    }

    fn add(&mut self, other: Score) {
        self.passed += other.passed;
        self.total += other.total;
    }
}

impl std::fmt::Display for Score {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.passed, self.total)
    }
}

/// A case that does not match.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The recorded release.
    pub etcd_version: String,
    /// The area of the recording.
    pub area: String,
    /// The name of the case.
    pub case: String,
    /// Where it parted.
    pub mismatch: Mismatch,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Failure { etcd_version, area, case, mismatch } = self;
        // Names come from files: nothing of them may act on a terminal.
        let (etcd_version, area) = (etcd_version.escape_debug(), area.escape_debug());
        write!(f, "{etcd_version} {area}, case {case:?}, {mismatch}")
    }
}

/// What replaying recordings came to.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The scores by recorded release and area.
    pub areas: BTreeMap<(String, String), Score>,
    /// The cases that do not match, in the order of the recordings.
    pub failures: Vec<Failure>,
}

impl Report {
    /// The score of all areas of a release.
    pub fn of_version(&self, etcd_version: &str) -> Score {
        self.sum(|version| version == etcd_version)
    }

    /// The score of everything.
    pub fn total(&self) -> Score {
        self.sum(|_| true)
    }

    /// Takes in what other recordings came to.
    pub fn join(&mut self, other: Report) {
        for (key, score) in other.areas {
            self.areas.entry(key).or_default().add(score);
        }
        self.failures.extend(other.failures);
    }

    fn sum(&self, counts: impl Fn(&str) -> bool) -> Score {
        let mut sum = Score::default();
        for ((version, _), score) in &self.areas {
            if counts(version) {
                sum.add(*score);
            }
        }
        sum
    }
}

/// Replays all cases of recordings against models that behave as `version`, or each recording
/// against one of the version that was recorded.
///
/// # Errors
/// No version is given, and a recording is of one that is not simulated.
pub fn replay(
    recordings: &[Recording],
    version: Option<EtcdVersion>,
) -> Result<Report, RecordingError> {
    let mut report = Report::default();
    for recording in recordings {
        let version = match version {
            Some(version) => version,
            None => recording.etcd_version.parse().map_err(|unknown| {
                RecordingError::of_file(&recording.file, format!("field etcd_version: {unknown}"))
            })?,
        };
        let Recording { etcd_version, area, .. } = recording;
        let key = (etcd_version.clone(), area.clone());
        let score = report.areas.entry(key).or_default();
        for case in &recording.cases {
            score.total += 1;
            match replay_case(case, version) {
                Ok(()) => score.passed += 1,
                Err(mismatch) => report.failures.push(Failure {
                    etcd_version: etcd_version.clone(),
                    area: area.clone(),
                    case: case.name.clone(),
                    mismatch,
                }),
            }
        }
    }
    Ok(report)
}
