//! The two records of truth as bars: who owned each lock, and how high the storage's mark stood.
//!
//! The mark is recomputed from the admitted rows as the judge does it (D4); a guard's own opinion
//! is not asked. Where the commit log does not tell a rank, the token of the row stands for it.

use std::collections::BTreeMap;

use crate::{
    checker::index::{OwnerChange, Row},
    history::NodeName,
};

use super::{
    escape, lane,
    scene::{Bar, Scene, Track},
};

/// A stretch of the apply log in which a domain's mark was the same.
#[derive(Debug, Clone)]
pub(super) struct MarkSpan<'h> {
    pub domain: &'h str,
    /// The greatest rank, or token, that was admitted.
    pub mark: i64,
    /// `seq` of the row that raised it, or with which the storage came back lower.
    pub from: u64,
    /// `seq` of the row that changed it; `u64::MAX` if none did.
    pub to: u64,
    /// The client whose row raised it.
    pub by: Option<NodeName>,
}

/// All marks of a history, in the order of the rows that raised them.
pub(super) fn mark_spans<'h>(scene: &Scene<'h>) -> Vec<MarkSpan<'h>> {
    /// The mark that the running storage has, that one which outlasts a crash, and the open span.
    type Domain = (u32, Option<i64>, Option<i64>, Option<usize>);
    let mut domains: BTreeMap<&str, Domain> = BTreeMap::new();
    let mut spans: Vec<MarkSpan<'h>> = Vec::new();
    for row in &scene.index.rows {
        let (boot, live, durable, open) =
            domains.entry(&row.row.domain).or_insert((row.row.boot, None, None, None));
        let before = *live;
        if *boot != row.row.boot {
            *boot = row.row.boot;
            *live = *durable;
        }
        if row.announces() {
            *live = (*live).max(rank(row));
            if row.survives {
                *durable = (*durable).max(rank(row));
            }
        }
        if *live == before {
            continue;
        }
        if let Some(open) = open.take() {
            spans[open].to = row.seq;
        }
        if let Some(mark) = *live {
            let by = row.op.map(|op| scene.index.ops[op].node);
            *open = Some(spans.len());
            spans.push(MarkSpan {
                domain: &row.row.domain,
                mark,
                from: row.seq,
                to: u64::MAX,
                by: by.filter(|_| row.announces()),
            });
        }
    }
    spans
}

fn rank(row: &Row<'_>) -> Option<i64> {
    row.rank.or(row.row.token)
}

/// The storage's tracks: a mark for each domain.
pub(super) fn marks(scene: &Scene<'_>) -> Vec<Track> {
    let mut tracks: BTreeMap<&str, Track> = BTreeMap::new();
    let spans = mark_spans(scene);
    let alone = spans.iter().all(|span| span.domain == spans[0].domain);
    for span in spans.iter().filter(|span| scene.touches(span.from, span.to)) {
        let label = match span.domain {
            _ if alone => "mark".to_owned(),
            domain => format!("mark of {domain}"),
        };
        let by = span.by.map_or_else(String::new, |by| format!(", raised by {by}"));
        let track = tracks.entry(span.domain).or_insert_with(|| Track::new("tenures", label));
        track.bars.push(Bar {
            from_ns: scene.at_ns(span.from),
            to_ns: scene.at_ns(span.to),
            look: format!("mark-span {}", span.by.map_or_else(|| "c-none".to_owned(), lane::tint)),
            label: format!("rank {}", span.mark),
            title: format!(
                "the greatest rank that the storage had admitted: {}{by}\n\
                 recomputed from the apply log; anything below it is superseded",
                span.mark
            ),
            event: Some(span.from),
            ..Bar::default()
        });
    }
    tracks.into_values().collect()
}

/// A member's tracks: who owned each lock that an operation names. The commit log is one for the
/// cluster, so it is drawn at the first member only.
pub(super) fn owners(scene: &Scene<'_>, node: NodeName) -> Vec<Track> {
    let first = scene.nodes().into_iter().find(|node| matches!(node, NodeName::Etcd(_)));
    if first != Some(node) {
        return Vec::new();
    }
    let holders = lane::holders(scene);
    let locks = scene.index.locks.iter().filter(|lock| lock.named);
    let alone = locks.clone().count() == 1;
    locks
        .map(|lock| {
            let label = if alone { "owner".to_owned() } else { format!("owner of {}", lock.name) };
            let mut track = Track::new("tenures", label);
            for (at, change) in lock.owners.iter().enumerate() {
                let to = lock.owners.get(at + 1).map_or(u64::MAX, |next| next.seq);
                track.bars.extend(tenure(scene, &holders, change, to));
            }
            track
        })
        .collect()
}

fn tenure(
    scene: &Scene<'_>,
    holders: &BTreeMap<usize, usize>,
    change: &OwnerChange,
    to: u64,
) -> Option<Bar> {
    let owner = change.owner.filter(|_| scene.touches(change.seq, to))?;
    let incarnation = &scene.index.incarnations[owner];
    let holding = holders.get(&owner).map(|at| &scene.index.holdings[*at]);
    let rank = incarnation.create_revision;
    let who = holding.map_or_else(|| incarnation.key.to_owned(), |h| h.node.to_string());
    let (from_ns, to_ns) = (scene.at_ns(change.seq), scene.at_ns(to));
    Some(Bar {
        from_ns,
        to_ns,
        look: format!(
            "tenure {}",
            holding.map_or_else(|| "c-none".to_owned(), |h| lane::tint(h.node))
        ),
        label: format!("{who} rank {rank}"),
        title: format!(
            "{who} owns the lock by the commit log\nkey {} rank {rank}\n{} to {}",
            incarnation.key,
            escape::seconds(from_ns),
            escape::seconds(to_ns)
        ),
        event: Some(change.seq),
        ..Bar::default()
    })
}

/// Who owns each named lock just after an event, in words.
pub(super) fn owners_at(scene: &Scene<'_>, holders: &BTreeMap<usize, usize>, seq: u64) -> String {
    let locks = scene.index.locks.iter().enumerate().filter(|(_, lock)| lock.named);
    let said = locks.map(|(at, _)| match scene.index.owner_at(at, seq) {
        None => "nobody".to_owned(),
        Some(owner) => {
            let incarnation = &scene.index.incarnations[owner];
            let holding = holders.get(&owner).map(|at| &scene.index.holdings[*at]);
            let who = holding.map_or_else(|| incarnation.key.to_owned(), |h| h.node.to_string());
            format!("{who}, rank {}", incarnation.create_revision)
        }
    });
    said.collect::<Vec<_>>().join("; ")
}
