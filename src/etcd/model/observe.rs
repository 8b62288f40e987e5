//! Streams of leaders: what an observer of an election is told.
//!
//! `observe` in `client/v3/concurrency/election.go`. An observer follows one key, whoever puts it,
//! until it is deleted; then it asks for the leader, and without one it takes the first key that is
//! put under the name. It is told of each leader at the moment it looks, not of every one that was.

use bytes::Bytes;

use super::{
    Model, StreamId,
    range::{Range, prefix_end},
    response::{Event, EventType, KeyValue, LeaderResponse, Response, ResponseHeader},
    service::first_created,
};

/// What an observer waits for.
#[derive(Debug)]
enum Interest {
    /// The first key that is put in the range: there is no leader.
    Anyone(Range),
    /// Changes of this key after this revision.
    Leader(Bytes, i64),
}

/// An open stream of leaders.
#[derive(Debug)]
pub(super) struct Observer {
    prefix: Vec<u8>,
    interest: Interest,
}

impl Observer {
    fn follows(&self, event: &Event) -> bool {
        match &self.interest {
            Interest::Anyone(range) => {
                event.event_type == EventType::Put && range.contains(&event.kv.key)
            }
            Interest::Leader(key, after) => event.kv.key == *key && event.kv.mod_revision > *after,
        }
    }
}

impl Model {
    /// Opens a stream of leaders. The first message comes at once if there is a leader.
    pub(super) fn observe(&mut self, stream: StreamId, name: &[u8]) {
        let prefix = [name, b"/"].concat();
        let interest = self.look_for_leader(stream, &prefix);
        self.observers.insert(stream, Observer { prefix, interest });
    }

    /// Tells the observer of the leader, if there is one, and gives what it waits for after that.
    fn look_for_leader(&mut self, stream: StreamId, prefix: &[u8]) -> Interest {
        // A read of now under a key that is not empty cannot be refused.
        let found = self.range(&first_created(prefix)).ok();
        let header = self.header();
        if let Some(kv) = found.and_then(|found| found.kvs.into_iter().next()) {
            return self.show_leader(stream, header, kv);
        }
        // Its watch begins with the revision of the read: what was put in that revision and is gone
        // already (a transaction can do that) is taken for a leader.
        let range = Range::new(prefix, &prefix_end(prefix));
        let observer = Observer { prefix: prefix.to_vec(), interest: Interest::Anyone(range) };
        let past = self.store.events_from(header.revision).find(|event| observer.follows(event));
        match past.map(|event| event.kv.clone()) {
            Some(kv) => self.show_leader(stream, header, kv),
            None => observer.interest,
        }
    }

    fn show_leader(&mut self, stream: StreamId, header: ResponseHeader, kv: KeyValue) -> Interest {
        let interest = Interest::Leader(kv.key.clone(), header.revision);
        let leader = LeaderResponse { header: Some(header), kv: Some(kv) };
        self.send(stream, Response::Leader(leader));
        interest
    }

    /// Tells the observers of the events of one revision, in the order of their streams.
    pub(super) fn tell_observers(&mut self, events: &[Event]) {
        if self.observers.is_empty() {
            return;
        }
        let header = self.header();
        let concerned: Vec<StreamId> = self
            .observers
            .iter()
            .filter(|(_, observer)| events.iter().any(|event| observer.follows(event)))
            .map(|(stream, _)| *stream)
            .collect();
        for stream in concerned {
            let Some(mut observer) = self.observers.remove(&stream) else { continue };
            for event in events {
                if observer.follows(event) {
                    observer.interest = self.next_interest(stream, header, &observer, event);
                }
            }
            self.observers.insert(stream, observer);
        }
    }

    fn next_interest(
        &mut self,
        stream: StreamId,
        header: ResponseHeader,
        observer: &Observer,
        event: &Event,
    ) -> Interest {
        match (event.event_type, &observer.interest) {
            (EventType::Delete, _) => self.look_for_leader(stream, &observer.prefix),
            (EventType::Put, Interest::Anyone(_)) => {
                self.show_leader(stream, header, event.kv.clone())
            }
            (EventType::Put, Interest::Leader(key, after)) => {
                // More events of this revision may be of the same key.
                let following = Interest::Leader(key.clone(), *after);
                self.show_leader(stream, header, event.kv.clone());
                following
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{
        Identity, Output,
        request::{DeleteRangeRequest, PutRequest, Request, RequestOp, TxnRequest},
    };
    use super::*;

    fn model() -> Model {
        let mut model = Model::new(Identity::default());
        model.start(Duration::ZERO, 0, Duration::ZERO);
        model
    }

    fn ask(model: &mut Model, stream: u64, request: Request) {
        let answer = model.handle(Duration::ZERO, (1, stream), request);
        assert!(answer.is_none_or(|answer| answer.is_ok()));
    }

    fn put(key: &str) -> PutRequest {
        PutRequest { key: key.into(), ..PutRequest::default() }
    }

    /// Stream, key and revision of each message.
    fn told(model: &mut Model) -> Vec<(u64, String, i64)> {
        let outputs = model.take_outputs().into_iter();
        let leader = |output| match output {
            Output::Message((_, stream), Response::Leader(leader)) => {
                let key = leader.kv.map(|kv| kv.key.to_vec()).unwrap_or_default();
                let revision = leader.header.map_or(0, |header| header.revision);
                Some((stream, String::from_utf8(key).expect("text"), revision))
            }
            _ => None,
        };
        outputs.filter_map(leader).collect()
    }

    /// Observers are told in the order of their streams; a key of another name is nothing to them,
    /// and a stream that was closed is not told any more.
    #[test]
    fn observers_follow_one_key_until_it_is_deleted() {
        let mut model = model();
        for (stream, name) in [(2, "e"), (1, "e"), (3, "e2")] {
            ask(&mut model, stream, Request::Observe(name.into()));
        }
        for key in ["e/b", "e/a", "e/b", "e"] {
            ask(&mut model, 9, Request::Put(put(key)));
        }
        let seen = |stream, key: &str, revision| (stream, key.to_owned(), revision);
        let of_b = [seen(1, "e/b", 2), seen(2, "e/b", 2), seen(1, "e/b", 4), seen(2, "e/b", 4)];
        assert_eq!(told(&mut model), of_b);
        ask(&mut model, 1, Request::CloseStream);
        ask(&mut model, 9, Request::Unlock(b"e/b".to_vec()));
        assert_eq!(told(&mut model), [seen(2, "e/a", 6)]);
    }

    /// A key that one transaction puts and deletes is taken for a leader by who asks right after:
    /// its watch begins with that revision. It is then waited for in vain.
    #[test]
    fn a_key_that_came_and_went_in_one_revision() {
        let mut model = model();
        // The one overlap that etcd lets pass: a deletion with the end "\0".
        let delete = DeleteRangeRequest {
            key: b"e/a".to_vec(),
            range_end: vec![0],
            ..DeleteRangeRequest::default()
        };
        let success = vec![RequestOp::Put(put("e/a")), RequestOp::DeleteRange(delete)];
        ask(&mut model, 9, Request::Txn(TxnRequest { success, ..TxnRequest::default() }));
        ask(&mut model, 1, Request::Observe(b"e".to_vec()));
        assert_eq!(told(&mut model), [(1, "e/a".to_owned(), 2)]);
        ask(&mut model, 9, Request::Put(put("e/b")));
        assert_eq!(told(&mut model), []);
    }
}
