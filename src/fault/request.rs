//! Faults of single requests: lost before the effect, reply lost after it, delivered twice.
//!
//! At etcd the member does it, so that the effect is certain; at the storage the network breaks the
//! connection in stead of the message, and the client's resend is the second delivery.

use madsim::task::NodeId;

use super::{Begun, Family};
use crate::{
    cluster::Cluster,
    etcd::server::{Harm, RequestFault, RequestKind},
    history::NodeName,
    plan::{FaultKind, RequestHarm, RequestName},
};

pub(super) const REQUEST: Family = Family {
    name: "request",
    help: "single requests get lost before their effect, lose their reply, or come twice",
    effect: "requests harmed",
    weight: 3,
    length_ms: (300, 3000),
    colour: "#e11d48",
    draw: |stream, _| {
        let request = match stream.chance(350) {
            true => RequestName::Storage,
            false => *stream.pick(&RequestName::ALL[..6]),
        };
        let twice =
            (stream.chance(300) && request != RequestName::Storage).then_some(RequestHarm::Twice);
        let harm = twice.unwrap_or_else(|| {
            if stream.chance(500) { RequestHarm::Lost } else { RequestHarm::ReplyLost }
        });
        FaultKind::Request { request, harm, count: stream.between(1, 3) as u32 }
    },
    begin: |cluster, _, fault| match fault.kind {
        FaultKind::Request { request, harm, count } => match kind(request) {
            Some(kind) => at_etcd(cluster, kind, harm, count),
            None => at_storage(cluster, harm, count),
        },
        _ => Begun::Skipped("not a fault of requests"),
    },
};

/// The kind of a request to etcd; none for the storage's.
fn kind(request: RequestName) -> Option<RequestKind> {
    match request {
        RequestName::Grant => Some(RequestKind::LeaseGrant),
        RequestName::Renewal => Some(RequestKind::KeepAlive),
        RequestName::Revoke => Some(RequestKind::LeaseRevoke),
        RequestName::Txn => Some(RequestKind::Txn),
        RequestName::Range => Some(RequestKind::Range),
        RequestName::Watch => Some(RequestKind::WatchCreate),
        RequestName::Storage => None,
    }
}

fn at_etcd(cluster: &Cluster, kind: RequestKind, harm: RequestHarm, count: u32) -> Begun {
    let harm = match harm {
        RequestHarm::Lost => Harm::Lost,
        RequestHarm::ReplyLost => Harm::ReplyLost,
        RequestHarm::Twice => Harm::Twice,
    };
    let fault = RequestFault { kind, harm, skip: 0, count: u64::from(count) };
    let id = cluster.member().inject(fault);
    Begun::Active(Box::new(move |cluster| cluster.member().withdraw(id)))
}

fn at_storage(cluster: &Cluster, harm: RequestHarm, count: u32) -> Begun {
    let storage = cluster.id(NodeName::Storage);
    let links: Vec<_> = cluster
        .clients()
        .into_iter()
        .map(|client| match harm {
            RequestHarm::Lost | RequestHarm::Twice => (client, storage),
            RequestHarm::ReplyLost => (storage, client),
        })
        .collect();
    let broken =
        |cluster: &Cluster, (src, dst): (NodeId, NodeId)| cluster.net().effect(src, dst).broken;
    let mut armed = Vec::new();
    for link in links {
        armed.push((link, broken(cluster, link)));
        cluster.net().add_breaks(link.0, link.1, u64::from(count));
    }
    Begun::Active(Box::new(move |cluster| {
        let mut effect = 0;
        for (link, before) in armed {
            let harmed = broken(cluster, link) - before;
            cluster.net().remove_breaks(link.0, link.1, u64::from(count).saturating_sub(harmed));
            effect += harmed;
        }
        effect
    }))
}
