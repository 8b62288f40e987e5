//! What no recording shows: limits at their edge, and the version's own ways of watching.

use std::time::Duration;

use super::{
    Identity, Model, Output,
    error::Refusal,
    request::{DeleteRangeRequest, PutRequest, Request, WatchCreateRequest},
    response::{Response, WatchResponse},
    size::REQUEST_BYTES_MAX,
    version::EtcdVersion,
};

const NOW: Duration = Duration::from_secs(1);

fn model(version: EtcdVersion) -> Model {
    Model::new(Identity { version, ..Identity::default() })
}

fn put(model: &mut Model, value: Vec<u8>) -> Result<Response, Refusal> {
    let request = PutRequest { key: b"a".to_vec(), value, ..PutRequest::default() };
    model.handle(NOW, (1, 1), Request::Put(request)).expect("a put is answered at once")
}

/// Asks on the watch stream and gives the messages that it leads to.
fn on_stream(model: &mut Model, request: Request) -> Vec<WatchResponse> {
    model.take_outputs();
    assert!(model.handle(NOW, (1, 2), request).is_none(), "a watch is answered by messages");
    let messages = model.take_outputs().into_iter().filter_map(|output| match output {
        Output::Message(_, Response::Watch(response)) => Some(response),
        _ => None,
    });
    messages.collect()
}

fn watch_from(start_revision: i64) -> Request {
    let (key, fragment) = (b"a".to_vec(), false);
    Request::WatchCreate(WatchCreateRequest { key, start_revision, fragment, ..Default::default() })
}

/// The request and what the consensus adds to it (24 bytes here) may fill the limit and no more; a
/// refused one has no effect.
#[test]
fn a_proposal_may_be_as_large_as_the_limit() {
    let mut model = model(EtcdVersion::V3_5);
    let largest = REQUEST_BYTES_MAX - 24;
    assert!(put(&mut model, vec![b'x'; largest]).is_ok());
    assert_eq!(put(&mut model, vec![b'x'; largest + 1]).err(), Some(Refusal::RequestTooLarge));
    assert_eq!(model.store.revision(), 2);
}

/// History comes in messages of 1000 revisions each, without a gap or a repetition.
#[test]
fn history_comes_in_batches() {
    let mut model = model(EtcdVersion::V3_5);
    for _ in 0..2001 {
        put(&mut model, b"1".to_vec()).expect("a put");
    }
    let messages = on_stream(&mut model, watch_from(2));
    let lengths: Vec<usize> = messages.iter().map(|message| message.events.len()).collect();
    assert_eq!(lengths, [0, 1000, 1000, 1]);
    let revisions = messages.iter().flat_map(|message| &message.events);
    assert!(revisions.map(|event| event.kv.mod_revision).eq(2..=2002));
}

/// A watcher that began before the compaction has been ended and still has its id: it is a
/// duplicate, and in 3.5 no progress is told while it is there.
#[test]
fn a_compacted_watcher_keeps_its_id_until_it_is_cancelled() {
    for (version, progress) in [(EtcdVersion::V3_4, 1), (EtcdVersion::V3_5, 0)] {
        let mut model = model(version);
        for _ in 0..3 {
            put(&mut model, b"1".to_vec()).expect("a put");
        }
        model.handle(NOW, (1, 1), Request::Compact(4)).expect("an answer").expect("compacted");
        let Request::WatchCreate(early) = watch_from(2) else { unreachable!("as it is built") };
        let early = Request::WatchCreate(WatchCreateRequest { watch_id: 7, ..early });
        let ended = on_stream(&mut model, early.clone());
        assert_eq!((ended[0].created, ended[1].canceled), (true, true));
        assert_eq!(ended[1].compact_revision, 4);
        let again = on_stream(&mut model, early);
        assert_eq!((again.len(), again[0].watch_id, again[0].canceled), (1, -1, true));
        assert_eq!(on_stream(&mut model, Request::WatchProgress).len(), progress);
        assert_eq!(on_stream(&mut model, Request::WatchCancel(7)).len(), 1);
        assert_eq!(on_stream(&mut model, Request::WatchCancel(7)).len(), 0);
    }
}

/// A deletion in the compacted revision itself can be watched in 3.5 and not in 3.4.
#[test]
fn a_deletion_in_the_compacted_revision_depends_on_the_version() {
    for (version, messages) in [(EtcdVersion::V3_4, 1), (EtcdVersion::V3_5, 2)] {
        let mut model = model(version);
        put(&mut model, b"1".to_vec()).expect("a put");
        let delete = DeleteRangeRequest { key: b"a".to_vec(), ..DeleteRangeRequest::default() };
        let deleted = model.handle(NOW, (1, 1), Request::DeleteRange(delete));
        deleted.expect("an answer").expect("deleted");
        model.handle(NOW, (1, 1), Request::Compact(3)).expect("an answer").expect("compacted");
        assert_eq!(on_stream(&mut model, watch_from(3)).len(), messages, "{version}");
    }
}

/// In 3.5 a watcher of a future revision holds back the progress of its stream until then.
#[test]
fn progress_waits_for_a_watcher_of_the_future() {
    for (version, early) in [(EtcdVersion::V3_4, 1), (EtcdVersion::V3_5, 0)] {
        let mut model = model(version);
        on_stream(&mut model, watch_from(2));
        assert_eq!(on_stream(&mut model, Request::WatchProgress).len(), early, "{version}");
        put(&mut model, b"1".to_vec()).expect("a put");
        assert_eq!(on_stream(&mut model, Request::WatchProgress).len(), 1, "{version}");
    }
}
