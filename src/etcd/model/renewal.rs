//! Renewals: one after the other on each stream, each with the header of its beginning.
//!
//! `LeaseKeepAlive` in `server/etcdserver/api/v3rpc/lease.go` takes the header before it renews.
//! The renewal of a lease that has run out waits there for the revocation of the lease, and nothing
//! that comes after it on its stream is looked at until then.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use crate::{etcd::quirk::Quirk, history::LeaseChange};

use super::{
    Model, StreamId,
    lease::Renewal,
    response::{LeaseKeepAliveResponse, Response, ResponseHeader},
};

/// A renewal that waits for the revocation of its lease.
#[derive(Debug)]
struct Waiting {
    lease: i64,
    /// Of the moment at which the renewal began.
    header: ResponseHeader,
    /// The leases that are to be renewed after it on the same stream.
    behind: VecDeque<i64>,
}

/// The renewals that wait, at most one for each stream.
#[derive(Debug, Default)]
pub(super) struct Renewals {
    all: BTreeMap<StreamId, Waiting>,
    /// In the order in which they came.
    by_lease: BTreeMap<i64, Vec<StreamId>>,
}

impl Renewals {
    /// Whether the lease must wait for its turn on the stream; then it is in the queue.
    fn is_behind(&mut self, stream: StreamId, lease: i64) -> bool {
        let waiting = self.all.get_mut(&stream);
        waiting.map(|waiting| waiting.behind.push_back(lease)).is_some()
    }

    fn insert(&mut self, stream: StreamId, waiting: Waiting) {
        self.by_lease.entry(waiting.lease).or_default().push(stream);
        self.all.insert(stream, waiting);
    }

    /// Takes what waits for the revocation of a lease.
    fn take(&mut self, lease: i64) -> Vec<(StreamId, Waiting)> {
        let streams = self.by_lease.remove(&lease).unwrap_or_default();
        let all = &mut self.all;
        streams.into_iter().filter_map(|stream| Some((stream, all.remove(&stream)?))).collect()
    }

    /// A stream is over.
    pub(super) fn close(&mut self, stream: StreamId) {
        let Some(waiting) = self.all.remove(&stream) else { return };
        if let Some(streams) = self.by_lease.get_mut(&waiting.lease) {
            streams.retain(|other| *other != stream);
            if streams.is_empty() {
                self.by_lease.remove(&waiting.lease);
            }
        }
    }

    /// How many streams wait.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}

impl Model {
    /// Renews a lease when its turn on the stream has come. The header is that of this moment then,
    /// or an earlier one if the renewal began before it could be handed in.
    pub(crate) fn keep_alive(
        &mut self,
        now: Duration,
        stream: StreamId,
        lease: i64,
        begun: Option<ResponseHeader>,
    ) -> Option<Response> {
        if self.renewals.is_behind(stream, lease) {
            return None;
        }
        let header = begun.unwrap_or_else(|| self.header());
        let Some(ttl_s) = self.renew(now, lease) else {
            self.renewals.insert(stream, Waiting { lease, header, behind: VecDeque::new() });
            return None;
        };
        Some(renewed(header, lease, ttl_s))
    }

    /// The granted TTL, or 0 for a dead lease, which is no error. None: it has run out.
    fn renew(&mut self, now: Duration, lease: i64) -> Option<i64> {
        let ttl_s = match self.lessor.renew(now, lease) {
            Renewal::Renewed(ttl_s) => ttl_s,
            Renewal::Unknown => return Some(0),
            Renewal::RunOut if self.quirks.has(Quirk::RenewalRevives) => {
                self.quirks.count(Quirk::RenewalRevives, 1);
                self.lessor.refresh(now, lease)
            }
            Renewal::RunOut => return None,
        };
        self.lease_event(now, lease, LeaseChange::Renewed);
        Some(ttl_s)
    }

    /// A lease has been revoked: the renewals that waited for this are answered, and their streams
    /// go on.
    pub(super) fn tell_renewals(&mut self, now: Duration, lease: i64) {
        for (stream, waiting) in self.renewals.take(lease) {
            self.send(stream, renewed(waiting.header, lease, 0));
            self.go_on(now, stream, None, waiting.behind);
        }
    }

    /// Every lease has been started anew: the renewals that waited find theirs alive after all.
    pub(super) fn ask_again(&mut self, now: Duration) {
        let leases: Vec<i64> = self.renewals.by_lease.keys().copied().collect();
        for lease in leases {
            for (stream, Waiting { header, mut behind, .. }) in self.renewals.take(lease) {
                behind.push_front(lease);
                self.go_on(now, stream, Some(header), behind);
            }
        }
    }

    /// Goes through the renewals of a stream until one has to wait. `begun` is of the first.
    fn go_on(
        &mut self,
        now: Duration,
        stream: StreamId,
        mut begun: Option<ResponseHeader>,
        mut queue: VecDeque<i64>,
    ) {
        while let Some(lease) = queue.pop_front() {
            if let Some(answer) = self.keep_alive(now, stream, lease, begun.take()) {
                self.send(stream, answer);
            } else if let Some(waiting) = self.renewals.all.get_mut(&stream) {
                waiting.behind = queue;
                return;
            }
        }
    }
}

fn renewed(header: ResponseHeader, id: i64, ttl: i64) -> Response {
    Response::KeepAlive(LeaseKeepAliveResponse { header: Some(header), id, ttl })
}

#[cfg(test)]
mod tests {
    use super::super::{Identity, Output, request::PutRequest, request::Request};
    use super::*;

    const GRANTED: Duration = Duration::from_secs(10);
    const RUN_OUT: Duration = Duration::from_secs(12);

    /// Lease 5 for 2 s and lease 6 for 60 s, each with a key; the revision is 3.
    fn model() -> Model {
        let mut model = Model::new(Identity::default());
        model.start(GRANTED, 1_000_000, Duration::ZERO);
        for (id, ttl_s) in [(5, 2), (6, 60)] {
            model.handle(GRANTED, (1, 1), Request::LeaseGrant { ttl_s, id });
            let key = format!("k{id}").into_bytes();
            let put = PutRequest { key, lease: id, ..PutRequest::default() };
            model.handle(GRANTED, (1, 1), Request::Put(put)).expect("at once").expect("a put");
        }
        model.take_outputs();
        model
    }

    fn waits(model: &mut Model, stream: StreamId, lease: i64) -> bool {
        model.handle(RUN_OUT, stream, Request::KeepAlive(lease)).is_none()
    }

    /// Stream, lease, revision, TTL and term of each answer.
    fn told(model: &mut Model) -> Vec<(u64, i64, i64, i64, u64)> {
        let outputs = model.take_outputs().into_iter();
        let answers = outputs.filter_map(|output| match output {
            Output::Message((_, stream), Response::KeepAlive(answer)) => {
                let header = answer.header.expect("there is one");
                Some((stream, answer.id, header.revision, answer.ttl, header.raft_term))
            }
            _ => None,
        });
        answers.collect()
    }

    /// The answer to a late renewal has the header of its arrival; those behind it on the stream
    /// wait and have that of their own beginning. Another stream does not wait.
    #[test]
    fn a_stream_renews_one_lease_after_the_other() {
        let mut model = model();
        let term = model.raft_term;
        for lease in [5, 6, 5] {
            assert!(waits(&mut model, (1, 2), lease));
        }
        assert!(waits(&mut model, (1, 3), 5) && !waits(&mut model, (1, 4), 6));
        assert_eq!(told(&mut model), []);
        model.expire(RUN_OUT);
        let expected = [(2, 5, 3, 0, term), (2, 6, 4, 60, term), (2, 5, 4, 0, term)];
        assert_eq!(told(&mut model), [&expected[..], &[(3, 5, 3, 0, term)]].concat());
        assert!(!waits(&mut model, (1, 2), 6), "nothing is before it any more");
    }

    /// What waits behind a lease may itself have run out when its turn comes.
    #[test]
    fn a_stream_waits_again() {
        let mut model = model();
        let later = RUN_OUT + Duration::from_secs(60);
        assert!(waits(&mut model, (1, 2), 5));
        for lease in [6, 5] {
            assert!(model.handle(later, (1, 2), Request::KeepAlive(lease)).is_none());
        }
        model.revoke(later, 5).expect("known");
        assert_eq!(told(&mut model), [(2, 5, 3, 0, model.raft_term)]);
        model.revoke(later, 6).expect("known");
        let term = model.raft_term;
        assert_eq!(told(&mut model), [(2, 6, 4, 0, term), (2, 5, 5, 0, term)]);
    }

    /// A promotion answers what waited, with the header, and so the term, of its arrival.
    #[test]
    fn a_promotion_answers_with_the_header_of_the_arrival() {
        let mut model = model();
        let term = model.raft_term;
        assert!(waits(&mut model, (1, 2), 5) && waits(&mut model, (1, 2), 6));
        model.promote(RUN_OUT, Duration::from_secs(1));
        assert_eq!(told(&mut model), [(2, 5, 3, 2, term), (2, 6, 3, 60, term + 1)]);
    }

    /// A closed stream is told nothing, and the others that wait for the lease are.
    #[test]
    fn a_closed_stream_waits_no_more() {
        let mut model = model();
        for stream in [2, 3] {
            assert!(waits(&mut model, (1, stream), 5) && waits(&mut model, (1, stream), 6));
        }
        model.close((1, 2));
        assert_eq!(model.renewals.len(), 1);
        model.expire(RUN_OUT);
        let streams: Vec<u64> = told(&mut model).iter().map(|(stream, ..)| *stream).collect();
        assert_eq!(streams, [3, 3]);
        assert_eq!(model.renewals.len(), 0);
    }
}
