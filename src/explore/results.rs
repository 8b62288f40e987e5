//! The results of an exploration as JSON lines, and the join of the results of its shares.
//!
//! A line a run that did not pass, then one line with the sum; each line carries the version. The
//! shares of a range joined give the very text that one exploration of the range gives.

mod sound;
mod span;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use self::span::{Span, missing, united};
use super::{Failed, Shard, Summary};
use crate::judge::RunClass;

/// The version of the format.
pub const RESULTS_VERSION: u32 = 1;

/// One line.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    leasehold_results: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<Failed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summary: Option<Total>,
}

/// What the line of the sum says.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Total {
    crate_version: String,
    spans: Vec<Span>,
    class: RunClass,
    not_reached: Vec<String>,
    sum: Summary,
}

impl Total {
    /// The class that follows from the rest. A share is whole in itself; what ended early is not.
    fn settled_class(&self) -> RunClass {
        let whole = self.spans.iter().all(Span::is_whole);
        self.sum.class().worse(if whole { RunClass::Pass } else { RunClass::Unknown })
    }
}

/// The results of an exploration, or of many that were joined.
#[derive(Debug, Clone)]
pub struct Results {
    total: Total,
    failed: Vec<Failed>,
}

/// The text holds no results, or the results do not belong together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResultsError {
    /// A line is something else.
    #[error(
        "line {line}: not results of an exploration: expected \
         {{\"leasehold_results\":{RESULTS_VERSION},...}} ({message})"
    )]
    Foreign {
        /// Counted from 1.
        line: usize,
        /// Why it is not.
        message: String,
    },
    /// Another version wrote it.
    #[error("line {line}: results of version {found}, this build reads {RESULTS_VERSION}")]
    Version {
        /// Counted from 1.
        line: usize,
        /// The version in the line.
        found: u32,
    },
    /// Its parts contradict each other: it is not as it was printed.
    #[error("field {field:?}: {message}; results must be as `explore --json` printed them")]
    Contradiction {
        /// Which field.
        field: String,
        /// What it says, and what contradicts it.
        message: String,
    },
    /// The same, in one of several.
    #[error("{name}: {error}")]
    In {
        /// Where it is from.
        name: String,
        /// What is wrong with it.
        error: Box<ResultsError>,
    },
    /// The exploration was cut off.
    #[error("no line with the sum at the end: the exploration was cut off; run it again")]
    NoSummary,
    /// Another version of the crate may run other things under the same seeds.
    #[error("{name}: results of crate version {found:?}, this is {own:?}: use one version for all")]
    Crate {
        /// Where they are from.
        name: String,
        /// What is written there.
        found: String,
        /// This version.
        own: &'static str,
    },
    /// They are of another exploration.
    #[error("{name}: {field} differs from that of {first}: join results of one exploration only")]
    Other {
        /// Where they are from.
        name: String,
        /// What differs.
        field: &'static str,
        /// What they differ from.
        first: String,
    },
    /// A seed would be counted twice.
    #[error("{name}: seed {seed} is in {other} too: give each share once")]
    Twice {
        /// Where it is.
        name: String,
        /// Where else it is.
        other: String,
        /// The seed.
        seed: u64,
    },
}

/// The line of one run that did not pass.
pub fn failed_line(failed: &Failed) -> String {
    line(&Line {
        leasehold_results: RESULTS_VERSION,
        failed: Some(failed.clone()),
        ..Line::default()
    })
}

fn failed_of_class(failed: &[Failed], class: RunClass) -> impl Iterator<Item = &Failed> {
    failed.iter().filter(move |failed| failed.class == class)
}

fn line(line: &Line) -> String {
    serde_json::to_string(line).expect("results have no unserialisable part")
}

impl Results {
    /// The results of an exploration of a share of these seeds.
    pub fn new(summary: Summary, failed: Vec<Failed>, seeds: &Range<u64>, shard: Shard) -> Self {
        let (runs, Range { start, end }) = (summary.runs, seeds.clone());
        let spans = vec![Span { start, end, shard, runs }];
        let class = summary.class();
        let crate_version = env!("CARGO_PKG_VERSION").to_owned();
        let total = Total { crate_version, spans, class, not_reached: Vec::new(), sum: summary };
        let mut results = Results { total, failed };
        results.settle();
        results
    }

    /// The sum. It keeps no failures: those are in [`Results::failed`].
    pub fn summary(&self) -> &Summary {
        &self.total.sum
    }

    /// The runs that did not pass, in the order of their seeds.
    pub fn failed(&self) -> &[Failed] {
        &self.failed
    }

    /// The first of the worst class among them.
    pub fn first_failed(&self) -> Option<&Failed> {
        let worst = self.failed.iter().find(|failed| failed.class == self.total.class);
        worst.or(self.failed.first())
    }

    /// What is missing to make whole ranges of the seeds, in words: shares that nobody gave, and
    /// explorations that ended early.
    pub fn missing(&self) -> Vec<String> {
        missing(&self.total.spans)
    }

    /// The class of all of it: that of the sum, and no pass as long as something is missing.
    pub fn class(&self) -> RunClass {
        let all = if self.missing().is_empty() { RunClass::Pass } else { RunClass::Unknown };
        self.total.class.worse(all)
    }

    /// Which seeds they are of, in words.
    pub fn seeds(&self) -> String {
        self.total.spans.iter().map(Span::to_string).collect::<Vec<_>>().join(", ")
    }

    /// The line of the sum.
    pub fn summary_line(&self) -> String {
        let summary = Some(self.total.clone());
        line(&Line { leasehold_results: RESULTS_VERSION, summary, ..Line::default() })
    }

    /// All lines.
    pub fn encode(&self) -> String {
        let failed = self.failed.iter().map(failed_line);
        failed.chain([self.summary_line()]).map(|line| line + "\n").collect()
    }

    /// Reads what [`Results::encode`] wrote.
    ///
    /// # Errors
    /// If it is something else, of another version, cut off, or contradicts itself.
    pub fn decode(text: &str) -> Result<Results, ResultsError> {
        let mut failed = Vec::new();
        let mut total = None;
        for (number, text) in (1..).zip(text.lines()) {
            let foreign = |message: String| ResultsError::Foreign { line: number, message };
            let version = serde_json::from_str::<serde_json::Value>(text)
                .map_err(|error| foreign(error.to_string()))?
                .get("leasehold_results")
                .and_then(serde_json::Value::as_u64)
                .ok_or_else(|| foreign("there is no such field".to_owned()))?;
            let found = u32::try_from(version).unwrap_or(u32::MAX);
            if found != RESULTS_VERSION {
                return Err(ResultsError::Version { line: number, found });
            }
            let line: Line =
                serde_json::from_str(text).map_err(|error| foreign(error.to_string()))?;
            if total.is_some() {
                return Err(foreign("it comes after the sum; give one file an exploration".into()));
            }
            failed.extend(line.failed);
            total = line.summary;
        }
        let total = total.ok_or(ResultsError::NoSummary)?;
        // Another version may mean something else by it; joining refuses it.
        if total.crate_version == env!("CARGO_PKG_VERSION") {
            sound::check(&total, &failed)?;
        }
        Ok(Results { total, failed })
    }

    /// Joins the results of several explorations that differ in their seeds only; each has a name
    /// for messages. None if there are none.
    ///
    /// # Errors
    /// If they are not of one exploration, or have a seed in common.
    pub fn join(parts: Vec<(String, Results)>) -> Result<Option<Results>, ResultsError> {
        let mut joined: Option<(String, Results)> = None;
        let mut spans: Vec<(String, Span)> = Vec::new();
        for (name, part) in parts {
            let own = env!("CARGO_PKG_VERSION");
            if part.total.crate_version != own {
                return Err(ResultsError::Crate { name, found: part.total.crate_version, own });
            }
            for span in &part.total.spans {
                for (other, known) in &spans {
                    if let Some(seed) = span.common(known) {
                        return Err(ResultsError::Twice { name, other: other.clone(), seed });
                    }
                }
            }
            spans.extend(part.total.spans.iter().map(|span| (name.clone(), span.clone())));
            match &mut joined {
                None => joined = Some((name, part)),
                Some((first, sum)) => {
                    if let Some(field) = differs(&sum.total.sum, &part.total.sum) {
                        return Err(ResultsError::Other { name, field, first: first.clone() });
                    }
                    sum.total.sum.absorb(&part.total.sum);
                    sound::counts(&sum.total.sum)
                        .map_err(|error| ResultsError::In { name, error: Box::new(error) })?;
                    sum.total.spans.extend(part.total.spans);
                    sum.failed.extend(part.failed);
                }
            }
        }
        Ok(joined.map(|(_, mut results)| {
            results.settle();
            results
        }))
    }

    /// Brings everything that follows from the parts up to date.
    fn settle(&mut self) {
        self.failed.sort_by_key(|failed| failed.seed);
        self.total.spans = united(std::mem::take(&mut self.total.spans));
        self.total.class = self.total.settled_class();
        let missing = self.total.sum.not_reached();
        self.total.not_reached = missing.iter().map(|p| p.name().to_owned()).collect();
    }
}

/// What two explorations must agree on and do not.
fn differs(a: &Summary, b: &Summary) -> Option<&'static str> {
    let fields = [
        ("scenario", a.scenario == b.scenario),
        ("guard", a.options.guard == b.options.guard),
        ("token", a.options.token == b.options.token),
        ("the number of clients", a.options.clients == b.options.clients),
        ("one of the options", a.options == b.options),
        ("the strategy", a.strategy == b.strategy),
        ("whose parts they are", a.own_parts == b.own_parts),
        ("whether there are faults", a.has_faults == b.has_faults),
    ];
    fields.into_iter().find(|(_, equal)| !equal).map(|(name, _)| name)
}

#[cfg(test)]
mod tests;
