//! The election service of the server.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use super::{
    CampaignResponse, KeyValue, LeaderKey, LeaderResponse, ProclaimResponse, ResignResponse,
    ResponseHeader,
    channel::{Channel, Stream},
    error::Result,
    unexpected,
};
use crate::etcd::model::{request::Request, response::Response};

/// The client of the election service.
#[derive(Debug, Clone)]
pub struct ElectionClient {
    channel: Channel,
}

impl ElectionClient {
    pub(super) fn new(channel: Channel) -> Self {
        ElectionClient { channel }
    }

    /// Waits until this candidate leads the election of this name. A lease has one candidate: a
    /// second campaign with it only proclaims its value. Without a lease (0) the member makes one
    /// of 60 s that nobody renews. A campaign that is dropped while it waits is withdrawn once the
    /// member has heard of it.
    ///
    /// # Errors
    /// A refusal of the member, with code Unknown (no such lease), or an unknown outcome. It is no
    /// error if the candidate's key has gone while it waited.
    pub async fn campaign(
        &mut self,
        name: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
        lease: i64,
    ) -> Result<CampaignResponse> {
        let request = Request::Campaign { name: name.into(), value: value.into(), lease };
        match self.channel.call(request).await? {
            Response::Campaign(response) => Ok(response),
            _ => unexpected(),
        }
    }

    /// Gives the leader's key a new value.
    ///
    /// # Errors
    /// A refusal of the member, with code Unknown (no leader key in the options; the key is not
    /// there any more; no such lease), or an unknown outcome.
    pub async fn proclaim(
        &mut self,
        value: impl Into<Vec<u8>>,
        options: Option<ProclaimOptions>,
    ) -> Result<ProclaimResponse> {
        let leader = options.unwrap_or_default().leader;
        match self.channel.call(Request::Proclaim { leader, value: value.into() }).await? {
            Response::Proclaim(response) => Ok(response),
            _ => unexpected(),
        }
    }

    /// The pair of the leader.
    ///
    /// # Errors
    /// There is no leader (code Unknown), or no answer.
    pub async fn leader(&mut self, name: impl Into<Vec<u8>>) -> Result<LeaderResponse> {
        match self.channel.call(Request::Leader(name.into())).await? {
            Response::Leader(response) => Ok(response),
            _ => unexpected(),
        }
    }

    /// Opens a stream of leaders. It waits for the first one: the headers of the reply come with
    /// it.
    ///
    /// # Errors
    /// No answer.
    pub async fn observe(&mut self, name: impl Into<Vec<u8>>) -> Result<ObserveStream> {
        let (first, stream) = self.channel.open(Request::Observe(name.into())).await?;
        match first {
            Response::Leader(first) => Ok(ObserveStream { stream, first: Some(first) }),
            _ => unexpected(),
        }
    }

    /// Deletes the leader's key. It is no error if it is not there any more.
    ///
    /// # Errors
    /// A refusal of the member, with code Unknown (no leader key in the options), or an unknown
    /// outcome.
    pub async fn resign(&mut self, option: Option<ResignOptions>) -> Result<ResignResponse> {
        let leader = option.unwrap_or_default().leader;
        match self.channel.call(Request::Resign(leader)).await? {
            Response::Resign(response) => Ok(response),
            _ => unexpected(),
        }
    }
}

impl LeaderKey {
    /// An empty one.
    pub const fn new() -> Self {
        LeaderKey { name: Vec::new(), key: Vec::new(), rev: 0, lease: 0 }
    }

    /// Sets the name of the election.
    pub fn with_name(mut self, name: impl Into<Vec<u8>>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the key.
    pub fn with_key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.key = key.into();
        self
    }

    /// Sets the create revision of the key.
    pub const fn with_rev(mut self, rev: i64) -> Self {
        self.rev = rev;
        self
    }

    /// Sets the lease of the key.
    pub const fn with_lease(mut self, lease: i64) -> Self {
        self.lease = lease;
        self
    }

    /// The name of the election.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The name as text.
    ///
    /// # Errors
    /// If it is not UTF-8.
    pub fn name_str(&self) -> Result<&str> {
        Ok(std::str::from_utf8(&self.name)?)
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The key as text.
    ///
    /// # Errors
    /// If it is not UTF-8.
    pub fn key_str(&self) -> Result<&str> {
        Ok(std::str::from_utf8(&self.key)?)
    }

    /// The create revision of the key: the fencing token.
    pub const fn rev(&self) -> i64 {
        self.rev
    }

    /// The lease of the key.
    pub const fn lease(&self) -> i64 {
        self.lease
    }
}

macro_rules! leader_options {
    ($(#[$doc:meta] $options:ident),*) => {
        $(#[$doc]
        #[derive(Debug, Default, Clone)]
        pub struct $options {
            leader: Option<LeaderKey>,
        }

        impl $options {
            /// Without a leader key.
            pub const fn new() -> Self {
                $options { leader: None }
            }

            /// Sets the leader key.
            pub fn with_leader(mut self, leader: LeaderKey) -> Self {
                self.leader = Some(leader);
                self
            }
        })*
    };
}

leader_options!(
    /// Options of a proclamation.
    ProclaimOptions,
    /// Options of a resignation.
    ResignOptions
);

macro_rules! header_accessors {
    ($($response:ident),*) => {
        $(impl $response {
            /// The header.
            pub fn header(&self) -> Option<&ResponseHeader> {
                self.header.as_ref()
            }

            /// Takes the header out.
            pub fn take_header(&mut self) -> Option<ResponseHeader> {
                self.header.take()
            }
        })*
    };
}

header_accessors!(CampaignResponse, ProclaimResponse, LeaderResponse, ResignResponse);

impl CampaignResponse {
    /// The key of the candidate that leads now.
    pub fn leader(&self) -> Option<&LeaderKey> {
        self.leader.as_ref()
    }

    /// Takes the leader key out.
    pub fn take_leader(&mut self) -> Option<LeaderKey> {
        self.leader.take()
    }
}

impl LeaderResponse {
    /// The leader's pair.
    pub fn kv(&self) -> Option<&KeyValue> {
        self.kv.as_ref()
    }

    /// Takes the leader's pair out.
    pub fn take_kv(&mut self) -> Option<KeyValue> {
        self.kv.take()
    }
}

/// An open stream of leaders. Dropping it ends it.
#[derive(Debug)]
pub struct ObserveStream {
    stream: Stream,
    /// The first message, read when the stream was opened.
    first: Option<LeaderResponse>,
}

impl ObserveStream {
    /// The next leader, or the next value of the leader's key; none when the stream has ended.
    ///
    /// # Errors
    /// The connection was lost.
    pub async fn message(&mut self) -> Result<Option<LeaderResponse>> {
        poll_fn(|cx| self.poll_message(cx)).await.transpose()
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<LeaderResponse>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        self.stream.poll_next(cx).map(|answer| {
            answer.map(|answer| match answer? {
                Response::Leader(response) => Ok(response),
                _ => unexpected(),
            })
        })
    }
}

impl futures_util::Stream for ObserveStream {
    type Item = Result<LeaderResponse>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_message(cx)
    }
}
