//! Watches.

use leasehold::etcd::{
    Client, Error, Event, EventType, KeyValue, WatchClient, WatchFilterType, WatchOptions,
    WatchResponse, WatchStream,
};

use super::{Named, header};

pub(super) async fn client(mut client: Client) -> Named {
    stream(client.watch("key", Some(options())).await?).await?;
    let service: WatchClient = client.watch_client();
    let mut service = service.max_decoding_message_size(1).clone();
    stream(service.watch("key", None).await?).await
}

pub(super) fn options() -> WatchOptions {
    const _: WatchOptions = WatchOptions::new();
    WatchOptions::new()
        .with_range("end")
        .with_from_key()
        .with_prefix()
        .with_all_keys()
        .with_start_revision(1)
        .with_progress_notify()
        .with_filters([WatchFilterType::NoPut, WatchFilterType::NoDelete])
        .with_prev_key()
        .with_watch_id(1)
        .with_fragment()
}

pub(super) async fn stream(mut stream: WatchStream) -> Named {
    fn is_stream<S>(_: &S)
    where
        S: futures_util::Stream<Item = Result<WatchResponse, Error>> + Unpin,
    {
    }
    is_stream(&stream);
    let (): () = stream.watch("key", Some(options())).await?;
    let (): () = stream.cancel(1).await?;
    let (): () = stream.request_progress().await?;
    let message: Option<WatchResponse> = stream.message().await?;
    let Some(mut message) = message else { return Ok(()) };
    let (_, _): (i64, i64) = (message.watch_id(), message.compact_revision());
    let (_, _): (bool, bool) = (message.created(), message.canceled());
    let _: &str = message.cancel_reason();
    let events: &[Event] = message.events();
    for event in events {
        match event.event_type() {
            EventType::Put | EventType::Delete => {}
        }
        let (_, _): (Option<&KeyValue>, Option<&KeyValue>) = (event.kv(), event.prev_kv());
    }
    header!(message);
    Ok(())
}
