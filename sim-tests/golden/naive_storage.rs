//! D8 a second time: each row is compared with all rows before it, each restart with every prefix.

use leasehold::history::{
    ApplyRow, Boundary, EventKind, Function, History, OpId, OpKind, Outcome, Reply, RowResult,
};

/// The rows in their order, each with its `seq`.
pub fn rows(history: &History) -> Vec<(u64, &ApplyRow)> {
    let rows = history.events.iter().filter_map(|event| match &event.kind {
        EventKind::Apply(row) => Some((event.seq, row)),
        _ => None,
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|(_, row)| (row.boot, row.index));
    rows
}

fn token(row: &ApplyRow) -> Option<i64> {
    row.token.filter(|token| *token >= 1)
}

fn same_request(one: &ApplyRow, other: &ApplyRow) -> bool {
    let value = one.kind == OpKind::Read || one.value == other.value;
    one.kind == other.kind && one.key == other.key && value
}

/// The broken rule, if the rows before (all that the storage knows, if `complete`) do not allow
/// this one.
fn wrong(before: &[&ApplyRow], row: &ApplyRow, complete: bool) -> Option<&'static str> {
    let before: Vec<&ApplyRow> =
        before.iter().copied().filter(|other| other.domain == row.domain).collect();
    let admitted = || before.iter().filter(|other| other.result == RowResult::Admitted);
    let unexpected = |rule| row.effect.then_some(rule);
    let refused = row.result == RowResult::Refused;
    if row.result == RowResult::Rejected || refused && token(row).is_none() {
        return unexpected("rejected-but-written");
    }
    let is_of = |other: &&&ApplyRow| {
        row.id.is_some_and(|id| other.id.is_some_and(|known| known.token == id.token))
    };
    let last = admitted().rfind(is_of);
    let number = |row: &ApplyRow| row.id.map(|id| id.seq);
    let same = last.is_some_and(|last| number(last) == number(row) && same_request(last, row));
    if same && row.kind == OpKind::Write {
        return match row.result {
            RowResult::Admitted => Some("applied-twice"),
            RowResult::Refused => Some("resend-refused"),
            _ => unexpected("applied-twice"),
        };
    }
    if row.result == RowResult::Replayed {
        let not_known = row.id.is_some() && last.is_none() && !complete;
        return if not_known { unexpected("applied-twice") } else { Some("never-applied") };
    }
    if let Some(token_of_row) = token(row) {
        let mark = admitted().filter_map(|other| token(other)).max();
        match (refused, mark > Some(token_of_row)) {
            (true, true) => {}
            (false, true) => return Some("stale-admitted"),
            (true, false) if complete || mark.is_some() => return Some("wrongly-refused"),
            (true, false) => {}
            (false, false) if complete => {}
            (false, false) => {
                let unexplained = |(at, other): (usize, &&ApplyRow)| {
                    let earlier = before[..at].iter().filter(|e| e.result == RowResult::Admitted);
                    let mark = earlier.filter_map(|e| token(e)).max();
                    let resend = wrong(&before[..at], other, false) == Some("resend-refused");
                    other.result == RowResult::Refused
                        && token(other) >= mark
                        && token(other) >= Some(token_of_row)
                        && !resend
                };
                if before.iter().enumerate().any(unexplained) {
                    return Some("stale-admitted");
                }
            }
        }
    }
    if refused {
        return unexpected("refused-but-written");
    }
    if last.is_some_and(|last| number(last) > number(row) || number(last) == number(row) && !same) {
        return Some("out-of-order");
    }
    let value_of = |other: &&&ApplyRow| {
        let read = other.kind == OpKind::Read && other.result == RowResult::Admitted && !complete;
        other.key == row.key && (other.kind == OpKind::Write && other.effect || read)
    };
    let known = before.iter().rfind(value_of);
    let stands = known.and_then(|known| known.value.as_deref());
    let differs = (complete || known.is_some()) && stands != row.value.as_deref();
    (row.kind == OpKind::Read && differs).then_some("read")
}

/// The first broken rule about rows, with the row's `seq`.
pub fn linear_rows(history: &History) -> Option<(u64, &'static str)> {
    let rows = rows(history);
    rows.iter().enumerate().find_map(|(at, (seq, row))| {
        let before: Vec<&ApplyRow> =
            rows[..at].iter().map(|(_, other)| *other).filter(|o| o.boot == row.boot).collect();
        let complete = row.boot == rows[0].1.boot && row.boot == 1;
        wrong(&before, row, complete).map(|rule| (*seq, rule))
    })
}

/// Whether an operation was told something that its rows do not say.
pub fn untrue_answers(history: &History, survives: &dyn Fn(&ApplyRow) -> bool) -> bool {
    let rows = rows(history);
    let last_boot = rows.last().map_or(0, |(_, row)| row.boot);
    history.events.iter().any(|event| {
        let EventKind::Return { op, outcome } = &event.kind else { return false };
        let of: Vec<&ApplyRow> =
            rows.iter().map(|(_, row)| *row).filter(|row| row.tag == Some(op.0)).collect();
        if of.is_empty() || function(history, *op).is_none() {
            return false;
        }
        let writes = matches!(function(history, *op), Some(Function::Write { .. }));
        match outcome {
            Outcome::Ok(Reply::Value(value)) => !of.iter().any(|row| {
                let read = row.kind == OpKind::Read && row.result == RowResult::Admitted;
                read && row.value == *value
            }),
            Outcome::Ok(_) if writes => !of
                .iter()
                .any(|row| matches!(row.result, RowResult::Admitted | RowResult::Replayed)),
            Outcome::Fail(_) if writes => {
                of.iter().any(|row| row.effect && (row.boot == last_boot || survives(row)))
            }
            _ => false,
        }
    })
}

fn function(history: &History, op: OpId) -> Option<&Function> {
    history.events.iter().find_map(|event| match &event.kind {
        EventKind::Invoke { op: id, f, .. } if *id == op => Some(f),
        _ => None,
    })
}

/// Whether something was told from the state that a row met.
fn answered(history: &History, row: &ApplyRow, survives: &dyn Fn(&ApplyRow) -> bool) -> bool {
    let answer = EventKind::Storage(Boundary::Answer { boot: row.boot, request: row.request });
    let left = history.events.iter().any(|event| event.kind == answer);
    (left || survives(row)) && row.result != RowResult::Rejected
}

/// Whether some restart cannot be explained by any prefix.
pub fn not_durable(history: &History, survives: &dyn Fn(&ApplyRow) -> bool) -> bool {
    let rows = rows(history);
    if rows.first().is_none_or(|(_, row)| row.boot != 1) {
        return false;
    }
    let mut lives: Vec<Vec<&ApplyRow>> = Vec::new();
    for (_, row) in &rows {
        match lives.last_mut().filter(|life| life[0].boot == row.boot) {
            Some(life) => life.push(row),
            None => lives.push(vec![row]),
        }
    }
    // What no state could explain is not the restart's fault, nor is anything after it.
    let mut blameless = lives.len();
    for (at, life) in lives.iter_mut().enumerate().skip(1) {
        let broken = (0..life.len()).find(|row| wrong(&life[..*row], life[*row], false).is_some());
        if let Some(broken) = broken {
            life.truncate(broken);
            blameless = at + 1;
            break;
        }
    }
    lives.truncate(blameless);
    !explained(history, &[], &lives, survives)
}

fn explained(
    history: &History,
    recovered: &[&ApplyRow],
    lives: &[Vec<&ApplyRow>],
    survives: &dyn Fn(&ApplyRow) -> bool,
) -> bool {
    let Some((life, later)) = lives.split_first() else { return true };
    let mut known: Vec<&ApplyRow> = recovered.to_vec();
    for row in life {
        let first = row.boot == 1;
        if !first && wrong(&known, row, true).is_some() {
            return false;
        }
        known.push(row);
    }
    let least = life.iter().rposition(|row| answered(history, row, survives));
    let least = least.map_or(0, |last| last + 1);
    (least..=life.len())
        .any(|kept| explained(history, &known[..recovered.len() + kept], later, survives))
}
