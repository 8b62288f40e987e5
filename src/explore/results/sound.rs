//! Whether results can be what an exploration printed: their parts must not contradict each other.
//!
//! A sum that was edited, cut or mixed up would give a verdict about runs that never were. What is
//! left out: whether the runs were as the numbers say; only running them again tells.

use serde_json::Value;

use super::{ResultsError, Total, failed_of_class, span::Span};
use crate::{
    case::ReplayToken,
    checker::Property,
    explore::{Failed, Summary},
    judge::RunClass,
    scenario,
    seed::Seed,
};

/// No count of an exploration is greater: two of them can be added without a check.
const COUNT_MAX: u64 = 1 << 48;

/// Says which field contradicts the others, if one does.
pub(super) fn check(total: &Total, failed: &[Failed]) -> Result<(), ResultsError> {
    counts(&total.sum)?;
    spans(&total.spans)?;
    options(&total.sum)?;
    runs(total, failed)?;
    each_failed(total, failed)?;
    caught(total, failed)?;
    reached(&total.sum)
}

fn wrong<T>(field: &str, message: String) -> Result<T, ResultsError> {
    Err(ResultsError::Contradiction { field: field.to_owned(), message })
}

/// No number of the sum is so great that adding might overflow.
pub(super) fn counts(sum: &Summary) -> Result<(), ResultsError> {
    let value = serde_json::to_value(sum).expect("a sum has no unserialisable part");
    match too_great(&value, "summary.sum") {
        Some((field, found)) => wrong(&field, format!("{found} is more than can be")),
        None => Ok(()),
    }
}

fn too_great(value: &Value, path: &str) -> Option<(String, u64)> {
    match value {
        Value::Object(object) => {
            object.iter().find_map(|(name, value)| too_great(value, &format!("{path}.{name}")))
        }
        // The one list holds a count and then a seed, which may be as great as it likes.
        Value::Array(list) => too_great(list.first()?, path),
        other => other.as_u64().filter(|n| *n > COUNT_MAX).map(|found| (path.to_owned(), found)),
    }
}

fn spans(spans: &[Span]) -> Result<(), ResultsError> {
    if spans.is_empty() {
        return wrong("summary.spans", "it is empty: results are of one range at least".to_owned());
    }
    for (index, span) in spans.iter().enumerate() {
        let field = |name: &str| format!("summary.spans[{index}]{name}");
        if span.start >= span.end {
            let Span { start, end, .. } = span;
            return wrong(&field(".end"), format!("{end}, expected more than start, {start}"));
        }
        if span.len() == 0 {
            return wrong(&field(".shard"), format!("{} has no seed of its range", span.shard));
        }
        if span.runs > span.len() {
            let (runs, len) = (span.runs, span.len());
            return wrong(&field(".runs"), format!("{runs}, but there are only {len} seeds"));
        }
        let known = spans.iter().take(index);
        if let Some(seed) = known.into_iter().find_map(|known| span.common(known)) {
            return wrong(&field(""), format!("seed {seed} is in one before it too"));
        }
    }
    Ok(())
}

/// What was explored is there, so that what it had to reach is known.
fn options(sum: &Summary) -> Result<(), ResultsError> {
    let case = scenario::find(&sum.scenario)
        .map(|scenario| scenario.case(Seed(0), sum.options.clone()))
        .and_then(|case| scenario::resolve(&case).map(|_| case));
    match case {
        Err(error) => wrong("summary.sum.options", error.to_string()),
        Ok(case) if scenario::is_control(&case) == sum.has_faults => {
            let message = format!("{} is not so for this scenario and profile", sum.has_faults);
            wrong("summary.sum.has_faults", message)
        }
        Ok(_) => Ok(()),
    }
}

/// The runs are those of the spans, and those that did not pass have a line each.
fn runs(total: &Total, failed: &[Failed]) -> Result<(), ResultsError> {
    let sum = &total.sum;
    let listed: u64 = total.spans.iter().fold(0, |all, span| all.saturating_add(span.runs));
    if sum.runs != listed {
        let message = format!("{}, but the spans have {listed} runs", sum.runs);
        return wrong("summary.sum.runs", message);
    }
    let classes = [
        ("violations", sum.violations, RunClass::Violation),
        ("unknown", sum.unknown, RunClass::Unknown),
        ("harness_errors", sum.harness_errors, RunClass::HarnessError),
    ];
    for (name, count, class) in classes {
        let lines = failed_of_class(failed, class).count() as u64;
        if count != lines {
            let field = format!("summary.sum.{name}");
            return wrong(&field, format!("{count}, but there are {lines} lines of such runs"));
        }
    }
    let expected = total.settled_class();
    if total.class != expected {
        let (found, expected) = (total.class.name(), expected.name());
        return wrong("summary.class", format!("{found}, but the sum says {expected}"));
    }
    let missing = sum.not_reached();
    if !missing.iter().map(|p| p.name()).eq(total.not_reached.iter().map(String::as_str)) {
        let message = format!("{:?} is not what the sum did not reach", total.not_reached);
        return wrong("summary.not_reached", message);
    }
    Ok(())
}

/// Each line is of a run of these results, and of another one than the others.
fn each_failed(total: &Total, failed: &[Failed]) -> Result<(), ResultsError> {
    let mut seeds = std::collections::BTreeSet::new();
    for line in failed {
        let Failed { seed, class, .. } = line;
        if *class == RunClass::Pass {
            return wrong("failed.class", format!("pass in the line of seed {seed}, which failed"));
        }
        if !total.spans.iter().any(|span| span.has(*seed)) {
            return wrong("failed.seed", format!("{seed} was not run, the spans say"));
        }
        if !seeds.insert(*seed) {
            return wrong("failed.seed", format!("{seed} has two lines"));
        }
        let replayed = line.replay.as_deref().map(ReplayToken::decode);
        match replayed {
            Some(Err(error)) => return wrong("failed.replay", format!("seed {seed}: {error}")),
            Some(Ok(token)) if token.case.seed.0 != *seed => {
                let other = token.case.seed;
                return wrong("failed.replay", format!("that of seed {other}, not of {seed}"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A checker has caught violations, and each violation is somebody's catch.
fn caught(total: &Total, failed: &[Failed]) -> Result<(), ResultsError> {
    let sum = &total.sum;
    let violations = || failed_of_class(failed, RunClass::Violation);
    for (checker, (runs, first)) in &sum.caught {
        let field = format!("summary.sum.caught.{checker}");
        let named = violations().filter(|line| line.checker.as_ref() == Some(checker));
        let named = named.count() as u64;
        if *runs == 0 || *runs > sum.violations || *runs < named {
            let of = sum.violations;
            return wrong(
                &field,
                format!("{runs} runs, of {of} violations, {named} named after it"),
            );
        }
        if !violations().any(|line| line.seed == *first) {
            return wrong(&field, format!("first seed {first}, which is no violation"));
        }
    }
    let unknown_to_all = |line: &&Failed| {
        !line.checker.as_ref().is_some_and(|checker| sum.caught.contains_key(checker))
    };
    if let Some(line) = violations().find(unknown_to_all) {
        let message = format!("who caught the violation of seed {} is not in it", line.seed);
        return wrong("summary.sum.caught", message);
    }
    let classes = &sum.classes;
    let known = sum.caught.contains_key("no-stale-write") || sum.unknown > 0;
    for (name, count) in
        [("stale_accepted", classes.stale_accepted), ("fresh_refused", classes.fresh_refused)]
    {
        if count > 0 && !known {
            let field = format!("summary.sum.classes.{name}");
            return wrong(&field, format!("{count}, but no run is a violation of no-stale-write"));
        }
    }
    Ok(())
}

/// What was reached was reached in runs, and in no more than there were.
fn reached(sum: &Summary) -> Result<(), ResultsError> {
    for property in Property::ALL {
        let times = sum.reached.count(property);
        let runs = sum.reached_runs.get(&property).copied().unwrap_or(0);
        if runs > sum.runs || runs > times || (runs == 0) != (times == 0) {
            let of = sum.runs;
            let message = format!("{:?}: {times} times in {runs} of {of} runs", property.name());
            return wrong("summary.sum.reached_runs", message);
        }
    }
    Ok(())
}
