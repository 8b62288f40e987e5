//! One client's connection: its requests, its watch streams, its keep-alive streams.

use std::sync::Arc;

use tonic::Status;

use super::{Inner, MemberState};
use crate::{
    etcd::{
        frame::{ClientFrame, Reply, Request, ServerFrame},
        model::{Effects, Renewal, StreamKey, wire::WatchReply},
    },
    net::MessageReceiver,
};

/// Serves a connection until the client is gone.
pub(super) async fn run(state: Arc<MemberState>, connection: u64, mut receiver: MessageReceiver) {
    while let Ok(Some(frame)) = receiver.recv::<ClientFrame>().await {
        let mut inner = state.lock();
        take(&mut inner, state.member_id(), connection, frame);
    }
    let mut inner = state.lock();
    inner.hub.close_connection(connection);
    inner.late_renewals.retain(|(stream, _)| stream.connection != connection);
    inner.connections.remove(&connection);
}

fn take(inner: &mut Inner, member_id: u64, connection: u64, frame: ClientFrame) {
    let key = |stream| StreamKey { connection, stream };
    match frame {
        ClientFrame::Request(id, request) => {
            inner.count_request();
            let mut effects = Effects::default();
            let reply = answer(inner, member_id, &request, &mut effects);
            tracing::trace!(?request, ?reply, "request");
            // The answer goes out first: a client's own watch learns of its write after the write.
            inner.send(connection, ServerFrame::Reply(id, reply));
            inner.publish(effects);
        }
        ClientFrame::Watch(stream, request) => {
            inner.count_request();
            for reply in inner.hub.create(&inner.model, key(stream), request) {
                inner.send(connection, ServerFrame::Watch(stream, reply));
            }
        }
        ClientFrame::CancelWatch(stream, watch_id) => {
            if inner.hub.cancel(key(stream), watch_id) {
                let revision = inner.model.revision();
                let canceled =
                    WatchReply { revision, watch_id, canceled: true, ..Default::default() };
                inner.send(connection, ServerFrame::Watch(stream, canceled));
            }
        }
        ClientFrame::Progress(stream) => {
            let revision = inner.model.revision();
            let progress = WatchReply { revision, watch_id: -1, ..WatchReply::default() };
            inner.send(connection, ServerFrame::Watch(stream, progress));
        }
        ClientFrame::CloseStream(stream) => {
            inner.hub.close_stream(key(stream));
            inner.late_renewals.retain(|(waiting, _)| *waiting != key(stream));
        }
        ClientFrame::KeepAlive(stream, lease) => {
            inner.count_request();
            keep_alive(inner, key(stream), lease);
        }
    }
}

fn keep_alive(inner: &mut Inner, stream: StreamKey, lease: i64) {
    let now = inner.now();
    let mut effects = Effects::default();
    let ttl_s = match inner.model.lease_renew(lease, now, &mut effects) {
        Renewal::Renewed(ttl_s) => ttl_s,
        Renewal::Gone => 0,
        Renewal::Expired => {
            inner.late_renewals.push((stream, lease));
            return;
        }
    };
    inner.publish(effects);
    let revision = inner.model.revision();
    inner.send(stream.connection, ServerFrame::KeepAlive(stream.stream, revision, lease, ttl_s));
}

fn answer(
    inner: &mut Inner,
    member_id: u64,
    request: &Request,
    effects: &mut Effects,
) -> Result<Reply, Status> {
    let now = inner.now();
    let model = &mut inner.model;
    let reply = match request {
        Request::Range(range) => model.range(range).map(Reply::Range),
        Request::Put(put) => model.put(put, now, effects).map(Reply::Put),
        Request::Delete(delete) => model.delete_range(delete, now, effects).map(Reply::Delete),
        Request::Txn(txn) => model.txn(txn, now, effects).map(Reply::Txn),
        Request::Compact(revision) => model.compact(*revision).map(Reply::Compact),
        Request::LeaseGrant(id, ttl_s) => model
            .lease_grant(*id, *ttl_s, now, effects)
            .map(|(id, ttl_s)| Reply::LeaseGrant { revision: model.revision(), id, ttl_s }),
        Request::LeaseRevoke(id) => model
            .lease_revoke(*id, now, effects)
            .map(|()| Reply::LeaseRevoke { revision: model.revision() }),
        Request::LeaseTimeToLive(id, with_keys) => {
            let mut known = model.lease_time_to_live(*id, now);
            if !with_keys {
                known.keys.clear();
            }
            Ok(Reply::LeaseTimeToLive { revision: model.revision(), id: *id, known })
        }
        Request::Leases => Ok(Reply::Leases { revision: model.revision(), leases: model.leases() }),
        Request::MemberList => Ok(Reply::MemberList { revision: model.revision(), member_id }),
        Request::Status => Ok(Reply::Status { revision: model.revision(), member_id }),
    };
    reply.map_err(Status::from)
}
