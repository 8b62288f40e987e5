//! Fewer holdings and clients, and the usual leases and operations.

use super::search::Search;
use crate::{case::Case, history::NodeName};

/// No limit above this is tried: clients do not get further in a run.
const HOLDINGS_MAX: u32 = 256;

/// The fewest holdings that a client needs: 1, 2, 4, … and then between the last two.
pub(super) fn holdings(search: &mut Search<'_>) {
    let now = match search.case().options.holdings {
        0 => HOLDINGS_MAX,
        limit => limit,
    };
    let limited = |case: &Case, holdings: &u32| {
        let mut case = case.clone();
        case.options.holdings = *holdings;
        case
    };
    let mut low = 0;
    let mut limit = 1;
    while limit < now {
        if search.keeps(limited(search.case(), &limit)) {
            let between: Vec<u32> = (low + 1..limit).collect();
            search.keeps_least(&between, limited);
            return;
        }
        low = limit;
        limit *= 2;
    }
}

/// Leases and operations as they are when nothing is chosen.
pub(super) fn usual(search: &mut Search<'_>) {
    let mut writers = search.case().clone();
    writers.options.readers = 0;
    search.keeps(writers);
    let mut drawn = search.case().clone();
    drawn.options.ttl_s = 0;
    search.keeps(drawn);
}

/// The fewest clients. Faults of those that go are left out.
pub(super) fn clients(search: &mut Search<'_>) {
    for clients in 1..search.case().options.clients {
        let mut case = search.case().clone();
        case.options.clients = clients;
        let gone = |node: &NodeName| matches!(node, NodeName::Client(n) if *n > clients);
        case.plan.faults.retain(|fault| !fault.kind.nodes().iter().any(gone));
        if search.keeps(case) {
            return;
        }
    }
}
