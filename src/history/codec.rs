//! Histories as text: JSON lines, the version line first.

use serde::{Deserialize, Serialize};

use super::{Event, History, possible::SoFar};

/// The version that this crate writes and reads.
pub const HISTORY_VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Header {
    leasehold_history: u32,
}

/// The text is no history.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The first line is missing or is something else.
    #[error("line 1: not a history: expected {{\"leasehold_history\":{HISTORY_VERSION}}}")]
    NoHeader,
    /// Another version wrote it.
    #[error("line 1: history version {found}, this build reads version {HISTORY_VERSION}")]
    Version {
        /// The version in the file.
        found: u32,
    },
    /// A line is broken.
    #[error("line {line}: not an event: {source}")]
    Event {
        /// Counted from 1.
        line: usize,
        /// What the parser says.
        source: serde_json::Error,
    },
    /// The order is broken: the judge relies on it.
    #[error("line {line}: seq {found}, expected {expected}: events are in order, without gaps")]
    Order {
        /// Counted from 1.
        line: usize,
        /// The number in the file.
        found: u64,
        /// The number that belongs there.
        expected: u64,
    },
    /// No run can have recorded this after the lines above.
    #[error("line {line}: {field} {what}")]
    Impossible {
        /// Counted from 1.
        line: usize,
        /// The field in question.
        field: &'static str,
        /// What is wrong with it, its value included.
        what: String,
    },
}

/// Writes a history as JSON lines.
pub fn encode(history: &History) -> String {
    let mut text = header_line();
    for event in &history.events {
        text.push_str(&event_line(event));
    }
    text
}

/// The first line, with its end.
pub fn header_line() -> String {
    let header = Header { leasehold_history: HISTORY_VERSION };
    let mut text = serde_json::to_string(&header).expect("a number is serialisable");
    text.push('\n');
    text
}

/// The line of an event, with its end.
pub fn event_line(event: &Event) -> String {
    let mut text = serde_json::to_string(event).expect("an event is serialisable");
    text.push('\n');
    text
}

/// Reads a history from JSON lines. Empty lines and lines that start with `#` are skipped.
///
/// # Errors
/// When the text is no history, or one that no run can have recorded: time that goes back, a name
/// for two operations, a return of none.
pub fn decode(text: &str) -> Result<History, CodecError> {
    let mut so_far = SoFar::default();
    let mut events = Vec::new();
    for (line, event) in decode_numbered(text)? {
        if let Some((field, what)) = so_far.impossible(&event) {
            return Err(CodecError::Impossible { line, field, what });
        }
        events.push(event);
    }
    Ok(History { events })
}

/// The same, each event with the number of its line, counted from 1; of one process, whose record
/// is judged with those of the others only.
pub(super) fn decode_numbered(text: &str) -> Result<Vec<(usize, Event)>, CodecError> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    });
    let (_, first) = lines.next().ok_or(CodecError::NoHeader)?;
    let header: Header = serde_json::from_str(first).map_err(|_| CodecError::NoHeader)?;
    if header.leasehold_history != HISTORY_VERSION {
        return Err(CodecError::Version { found: header.leasehold_history });
    }
    let mut events: Vec<(usize, Event)> = Vec::new();
    for (line, text) in lines {
        let event: Event =
            serde_json::from_str(text).map_err(|source| CodecError::Event { line, source })?;
        let expected = events.len() as u64;
        if event.seq != expected {
            return Err(CodecError::Order { line, found: event.seq, expected });
        }
        events.push((line, event));
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{EventKind, NodeName, Phase};

    fn sample() -> History {
        let event = |seq, node| Event { seq, at_ns: 5, node, kind: EventKind::Phase(Phase::Setup) };
        History { events: vec![event(0, NodeName::Nemesis), event(1, NodeName::Client(2))] }
    }

    /// What is written is read back, and comments do not disturb.
    #[test]
    fn round_trip() {
        let text = encode(&sample()).replace("\n{\"seq\":0", "\n# a remark\n\n{\"seq\":0");
        assert_eq!(decode(&text).unwrap(), sample());
    }

    /// Each kind of damage is named with its line.
    #[test]
    fn damage_is_named() {
        let text = encode(&sample());
        let cases = [
            (String::new(), "line 1: not a history"),
            (text.replace("\"leasehold_history\":1", "\"leasehold_history\":9"), "version 9"),
            (text.replace("\"seq\":1", "\"seq\":7"), "line 3: seq 7, expected 1"),
            (text.replace("client-2", "client-256"), "line 3: not an event: unknown node"),
        ];
        for (text, expected) in cases {
            let message = decode(&text).unwrap_err().to_string();
            assert!(message.contains(expected), "{message} lacks {expected}");
        }
    }
}
