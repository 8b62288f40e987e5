//! `Client` and the clients of its parts: clones share one connection.

use std::sync::Arc;

use super::{
    CompactionOptions, CompactionResponse, ConnectOptions, DeleteOptions, DeleteResponse, Error,
    GetOptions, GetResponse, LeaseGrantOptions, LeaseGrantResponse, LeaseKeepAliveStream,
    LeaseKeeper, LeaseLeasesResponse, LeaseRevokeResponse, LeaseTimeToLiveOptions,
    LeaseTimeToLiveResponse, MemberListResponse, PutOptions, PutResponse, StatusResponse, Txn,
    TxnResponse, WatchOptions, WatchStream, connection::Connector, kv, lease, watch,
};
use crate::etcd::frame::{Reply, Request};

/// A client of etcd. Cheap to clone; clones share the connection.
///
/// Methods take `&mut self` because etcd-client's do.
#[derive(Clone)]
pub struct Client {
    connector: Arc<Connector>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

/// The key-value part of a client.
pub type KvClient = Client;
/// The lease part of a client.
pub type LeaseClient = Client;
/// The watch part of a client.
pub type WatchClient = Client;

pub(super) fn unexpected(reply: &Reply) -> Error {
    Error::Internal(format!("another answer than the request's: {reply:?}"))
}

fn address(endpoint: &str) -> Result<String, Error> {
    let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let address = rest.trim_end_matches('/');
    if address.parse::<std::net::SocketAddr>().is_err() {
        let message = format!("{endpoint:?}: expected http://IP:PORT, there are no names here");
        return Err(Error::InvalidUri(message));
    }
    Ok(address.to_owned())
}

impl Client {
    /// Makes a client. As in etcd-client it does not wait for a connection.
    pub async fn connect<E: AsRef<str>, S: AsRef<[E]>>(
        endpoints: S,
        options: Option<ConnectOptions>,
    ) -> Result<Self, Error> {
        let endpoints: Vec<String> = endpoints
            .as_ref()
            .iter()
            .map(|endpoint| address(endpoint.as_ref()))
            .collect::<Result<_, _>>()?;
        if endpoints.is_empty() {
            return Err(Error::InvalidArgs("empty endpoints".to_owned()));
        }
        let connector = Arc::new(Connector::new(endpoints, options.unwrap_or_default()));
        Ok(Client { connector })
    }

    /// The key-value part.
    pub fn kv_client(&self) -> KvClient {
        self.clone()
    }

    /// The lease part.
    pub fn lease_client(&self) -> LeaseClient {
        self.clone()
    }

    /// The watch part.
    pub fn watch_client(&self) -> WatchClient {
        self.clone()
    }

    async fn call(&self, request: Request) -> Result<Reply, Error> {
        self.connector.call(request).await
    }

    /// Puts a key.
    pub async fn put(
        &mut self,
        key: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
        options: Option<PutOptions>,
    ) -> Result<PutResponse, Error> {
        let request = kv::put_request(key.into(), value.into(), options);
        match self.call(Request::Put(request)).await? {
            Reply::Put(reply) => Ok(PutResponse::new(reply)),
            other => Err(unexpected(&other)),
        }
    }

    /// Gets a key or a range.
    pub async fn get(
        &mut self,
        key: impl Into<Vec<u8>>,
        options: Option<GetOptions>,
    ) -> Result<GetResponse, Error> {
        let request = kv::range_request(key.into(), options);
        match self.call(Request::Range(request)).await? {
            Reply::Range(reply) => Ok(GetResponse::new(reply)),
            other => Err(unexpected(&other)),
        }
    }

    /// Deletes a key or a range.
    pub async fn delete(
        &mut self,
        key: impl Into<Vec<u8>>,
        options: Option<DeleteOptions>,
    ) -> Result<DeleteResponse, Error> {
        let request = kv::delete_request(key.into(), options);
        match self.call(Request::Delete(request)).await? {
            Reply::Delete(reply) => Ok(DeleteResponse::new(reply)),
            other => Err(unexpected(&other)),
        }
    }

    /// Forgets the history before a revision.
    pub async fn compact(
        &mut self,
        revision: i64,
        _options: Option<CompactionOptions>,
    ) -> Result<CompactionResponse, Error> {
        match self.call(Request::Compact(revision)).await? {
            Reply::Compact(revision) => Ok(CompactionResponse::new(revision)),
            other => Err(unexpected(&other)),
        }
    }

    /// Runs a transaction.
    pub async fn txn(&mut self, txn: Txn) -> Result<TxnResponse, Error> {
        match self.call(Request::Txn(txn.into_request())).await? {
            Reply::Txn(reply) => Ok(TxnResponse::new(reply)),
            other => Err(unexpected(&other)),
        }
    }

    /// Watches a key or a range.
    pub async fn watch(
        &mut self,
        key: impl Into<Vec<u8>>,
        options: Option<WatchOptions>,
    ) -> Result<WatchStream, Error> {
        watch::open(&self.connector, key.into(), options).await
    }

    /// Grants a lease of `ttl` seconds.
    pub async fn lease_grant(
        &mut self,
        ttl: i64,
        options: Option<LeaseGrantOptions>,
    ) -> Result<LeaseGrantResponse, Error> {
        let id = options.unwrap_or_default().id();
        match self.call(Request::LeaseGrant(id, ttl)).await? {
            Reply::LeaseGrant { revision, id, ttl_s } => {
                Ok(LeaseGrantResponse::new(revision, id, ttl_s))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Revokes a lease; its keys are deleted.
    pub async fn lease_revoke(&mut self, id: i64) -> Result<LeaseRevokeResponse, Error> {
        match self.call(Request::LeaseRevoke(id)).await? {
            Reply::LeaseRevoke { revision } => Ok(LeaseRevokeResponse::new(revision)),
            other => Err(unexpected(&other)),
        }
    }

    /// Renews a lease once, and gives the means to go on. An error if the lease is not there.
    pub async fn lease_keep_alive(
        &mut self,
        id: i64,
    ) -> Result<(LeaseKeeper, LeaseKeepAliveStream), Error> {
        lease::keep_alive(&self.connector, id).await
    }

    /// What is known of a lease; -1 seconds if it is not there.
    pub async fn lease_time_to_live(
        &mut self,
        id: i64,
        options: Option<LeaseTimeToLiveOptions>,
    ) -> Result<LeaseTimeToLiveResponse, Error> {
        let with_keys = options.unwrap_or_default().keys();
        match self.call(Request::LeaseTimeToLive(id, with_keys)).await? {
            Reply::LeaseTimeToLive { revision, id, known } => {
                Ok(LeaseTimeToLiveResponse::new(revision, id, known))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// All leases, in the order in which they run out.
    pub async fn leases(&mut self) -> Result<LeaseLeasesResponse, Error> {
        match self.call(Request::Leases).await? {
            Reply::Leases { revision, leases } => Ok(LeaseLeasesResponse::new(revision, leases)),
            other => Err(unexpected(&other)),
        }
    }

    /// The members of the cluster: one.
    pub async fn member_list(&mut self) -> Result<MemberListResponse, Error> {
        match self.call(Request::MemberList).await? {
            Reply::MemberList { revision, member_id } => {
                Ok(MemberListResponse::new(revision, member_id))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// The state of the member.
    pub async fn status(&mut self) -> Result<StatusResponse, Error> {
        match self.call(Request::Status).await? {
            Reply::Status { revision, member_id } => Ok(StatusResponse::new(revision, member_id)),
            other => Err(unexpected(&other)),
        }
    }

    /// Not simulated yet: use [`crate::concurrency::Mutex`].
    pub async fn lock(
        &mut self,
        _name: impl Into<Vec<u8>>,
        _options: Option<std::convert::Infallible>,
    ) -> Result<std::convert::Infallible, Error> {
        Err(Error::not_simulated("the Lock service"))
    }
}
