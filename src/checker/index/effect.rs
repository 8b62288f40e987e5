//! What became of each row: did a write have its effect, does a row count over a crash (D4).
//!
//! A write had its effect if the storage's shell saw the data change, if it was acknowledged, or if
//! its value was ever read. The last needs written values to be unique, which is an assumption.

use super::{Op, Row};
use crate::checker::value::Value;
use crate::history::{Outcome, Reply, RowResult};

/// The values whose reading matters, sorted, each with the last boot in which a row answered it
/// (0 if only a client told); `None` until it is seen.
struct Asked<'h>(Vec<(Value<'h>, Option<u32>)>);

impl<'h> Asked<'h> {
    fn new(mut values: Vec<Value<'h>>) -> Self {
        values.sort_unstable();
        values.dedup();
        Asked(values.into_iter().map(|value| (value, None)).collect())
    }

    fn look_for_reads(&mut self, rows: &[Row<'h>], ops: &[Op<'h>]) {
        for op in ops {
            if let Some((_, Outcome::Ok(Reply::Value(Some(value))))) = op.end {
                self.see(value, 0);
            }
        }
        for row in rows.iter().filter(|row| !row.is_write() && row.admitted()) {
            if let Some(value) = &row.row.value {
                self.see(value, row.boot());
            }
        }
    }

    fn see(&mut self, value: &'h str, boot: u32) {
        if let Ok(at) = self.position(value) {
            let seen = &mut self.0[at].1;
            *seen = (*seen).max(Some(boot));
        }
    }

    fn last_boot(&self, value: Option<&str>) -> Option<u32> {
        self.0[self.position(value?).ok()?].1
    }

    fn position(&self, value: &str) -> Result<usize, usize> {
        let value = Value::new(value);
        self.0.binary_search_by(|(asked, _)| asked.cmp(&value))
    }
}

/// Fills in [`Row::effective`] and [`Row::survives`].
pub(super) fn settle(rows: &mut [Row<'_>], ops: &[Op<'_>], op_rows: &[(usize, usize)]) {
    let mut admitted = vec![0u32; ops.len()];
    // Whose attempts reached two lives of the storage: which of them the answer came from, its
    // outcome does not tell.
    let mut divided = vec![false; ops.len()];
    for (at, (op, row)) in op_rows.iter().enumerate() {
        admitted[*op] += u32::from(rows[*row].admitted());
        let before = at.checked_sub(1).map(|before| op_rows[before]);
        let divides = |(of, before): (usize, usize)| {
            of == *op && rows[before].row.boot != rows[*row].row.boot
        };
        divided[*op] |= before.is_some_and(divides);
    }
    let last_boot = rows.iter().map(Row::boot).max().unwrap_or(0);
    let told = |row: &Row<'_>| row.op.is_some_and(|op| ops[op].is_ok());
    // Most writes are decided without their value; only the rest is looked for among the reads.
    let undecided = |row: &Row<'_>| {
        row.is_write() && !(row.boot() == last_boot && (told(row) || row.row.effect))
    };
    let asked = rows
        .iter()
        .filter(|row| undecided(row))
        .filter_map(|row| row.row.value.as_deref().map(Value::new));
    let mut asked = Asked::new(asked.collect());
    if !asked.0.is_empty() {
        asked.look_for_reads(rows, ops);
    }
    for row in rows {
        let told = told(row);
        let admitted = row.op.map_or(0, |op| admitted[op]);
        let read = match undecided(row) {
            true => asked.last_boot(row.row.value.as_deref()),
            false => None,
        };
        row.effective = match row.result() {
            _ if !row.is_write() => false,
            _ if row.row.effect => true,
            RowResult::Admitted => told || read.is_some(),
            // What a let-in attempt of the same operation did is not this row's effect.
            RowResult::Refused | RowResult::Rejected => admitted == 0 && (told || read.is_some()),
            RowResult::Replayed => false,
        };
        let alone = row.is_write() && admitted == 1;
        let recovered = alone && read > Some(row.boot());
        let answered = told && row.op.is_some_and(|op| !divided[op]);
        row.survives = row.answer.is_some() || answered || recovered;
    }
}
