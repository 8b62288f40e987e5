//! What became of each row: did a write have its effect, does a row count over a crash (D4).
//!
//! A write had its effect if the storage's shell saw the data change, if it was acknowledged, or if
//! its value was ever read. The last needs written values to be unique, which is an assumption.

use std::cell::OnceCell;

use super::{Op, Row};
use crate::history::{OpKind, Outcome, Reply, RowResult};

/// Every value that was read, with the boot in which a row answered it (0 if only a client told).
struct ReadValues<'h>(Vec<(&'h str, u32)>);

impl<'h> ReadValues<'h> {
    fn collect(rows: &[Row<'h>], ops: &[Op<'h>]) -> Self {
        let by_rows = rows.iter().filter(|row| row.row.kind == OpKind::Read && row.admitted());
        let by_rows = by_rows.filter_map(|row| Some((row.row.value.as_deref()?, row.row.boot)));
        let by_ops = ops.iter().filter_map(|op| match op.end {
            Some((_, Outcome::Ok(Reply::Value(Some(value))))) => Some((value.as_str(), 0)),
            _ => None,
        });
        let mut values: Vec<_> = by_rows.chain(by_ops).collect();
        values.sort_unstable();
        values.dedup();
        ReadValues(values)
    }

    /// The last boot in which the value was read.
    fn last_boot(&self, value: Option<&str>) -> Option<u32> {
        let value = value?;
        let after = self.0.partition_point(|(read, _)| *read <= value);
        let (read, boot) = self.0[after.checked_sub(1)?];
        (read == value).then_some(boot)
    }
}

/// Fills in [`Row::effective`] and [`Row::survives`].
pub(super) fn settle(rows: &mut [Row<'_>], ops: &[Op<'_>], op_rows: &[(usize, usize)]) {
    let mut admitted = vec![0u32; ops.len()];
    for (op, row) in op_rows {
        admitted[*op] += u32::from(rows[*row].admitted());
    }
    let last_boot = rows.iter().map(|row| row.row.boot).max().unwrap_or(0);
    // Most histories decide without the values: they are gathered when first asked for.
    let read = OnceCell::new();
    let read = || read.get_or_init(|| ReadValues::collect(rows, ops));
    let settled: Vec<(bool, bool)> = rows
        .iter()
        .map(|row| {
            let told = row.op.is_some_and(|op| ops[op].is_ok());
            let admitted = row.op.map_or(0, |op| admitted[op]);
            let value = row.row.value.as_deref();
            let seen = || told || read().last_boot(value).is_some();
            let effective = match row.row.result {
                _ if !row.is_write() => false,
                _ if row.row.effect => true,
                RowResult::Admitted => seen(),
                // What a let-in attempt of the same operation did is not this row's effect.
                RowResult::Refused | RowResult::Rejected => admitted == 0 && seen(),
                RowResult::Replayed => false,
            };
            let boot = row.row.boot;
            let recovered = || {
                let alone = row.is_write() && admitted == 1 && boot < last_boot;
                alone && read().last_boot(value) > Some(boot)
            };
            (effective, row.answer.is_some() || told || recovered())
        })
        .collect();
    for (row, (effective, survives)) in rows.iter_mut().zip(settled) {
        row.effective = effective;
        row.survives = survives;
    }
}
