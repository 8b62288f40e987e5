//! The client: one handle on all services.

use std::{fmt, time::Duration};

use super::{
    AuthClient, CampaignResponse, ClusterClient, CompactionOptions, CompactionResponse,
    DeleteOptions, DeleteResponse, ElectionClient, Error, GetOptions, GetResponse, KvClient,
    LeaderResponse, LeaseClient, LeaseGrantOptions, LeaseGrantResponse, LeaseKeepAliveStream,
    LeaseKeeper, LeaseLeasesResponse, LeaseRevokeResponse, LeaseTimeToLiveOptions,
    LeaseTimeToLiveResponse, LockClient, LockOptions, LockResponse, MaintenanceClient,
    MemberAddOptions, MemberAddResponse, MemberListResponse, ObserveStream, ProclaimOptions,
    ProclaimResponse, PutOptions, PutResponse, ResignOptions, ResignResponse, StatusResponse, Txn,
    TxnResponse, UnlockResponse, WatchClient, WatchOptions, WatchStream,
    channel::{Channel, Limits},
    error::{Result, not_simulated},
};

/// The etcd client. Clones share its connection.
#[derive(Clone)]
pub struct Client {
    channel: Channel,
    kv: KvClient,
    lease: LeaseClient,
    watch: WatchClient,
    lock: LockClient,
    election: ElectionClient,
    cluster: ClusterClient,
    maintenance: MaintenanceClient,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.channel.fmt(f)
    }
}

/// The address of an endpoint: `IP:PORT`, with or without `http://`.
fn address(endpoint: &str) -> Result<String> {
    if endpoint.starts_with("https://") {
        let message = "HTTPS URLs are only supported with the feature \"tls\"";
        return Err(Error::InvalidArgs(message.to_owned()));
    }
    let address = endpoint.strip_prefix("http://").unwrap_or(endpoint);
    let _: hyper::http::Uri = format!("http://{address}").parse()?;
    Ok(address.trim_end_matches('/').to_owned())
}

/// Connecting.
impl Client {
    /// A client of these endpoints. As in etcd-client it connects with the first request.
    ///
    /// # Errors
    /// If there are no endpoints or one is malformed, or authentication is wanted (not simulated).
    pub async fn connect<E: AsRef<str>, S: AsRef<[E]>>(
        endpoints: S,
        options: Option<ConnectOptions>,
    ) -> Result<Self> {
        let options = options.unwrap_or_default();
        let endpoints =
            endpoints.as_ref().iter().map(|e| address(e.as_ref())).collect::<Result<Vec<_>>>()?;
        if endpoints.is_empty() {
            return Err(Error::InvalidArgs("empty endpoints".to_owned()));
        }
        if options.user.is_some() {
            return Err(not_simulated("authentication"));
        }
        let limits = Limits {
            request: options.timeout,
            connect: options.connect_timeout,
            require_leader: options.require_leader,
        };
        let channel = Channel::new(endpoints, limits);
        Ok(Client {
            kv: KvClient::new(channel.clone()),
            lease: LeaseClient::new(channel.clone()),
            watch: WatchClient::new(channel.clone()),
            lock: LockClient::new(channel.clone()),
            election: ElectionClient::new(channel.clone()),
            cluster: ClusterClient::new(channel.clone()),
            maintenance: MaintenanceClient::new(channel.clone()),
            channel,
        })
    }

    /// Adds an endpoint, to be used when the client connects anew.
    ///
    /// # Errors
    /// If it is malformed.
    pub async fn add_endpoint<E: AsRef<str>>(&self, endpoint: E) -> Result<()> {
        self.channel.add_endpoint(address(endpoint.as_ref())?);
        Ok(())
    }

    /// Removes an endpoint; an open connection to it stays.
    ///
    /// # Errors
    /// If it is malformed.
    pub async fn remove_endpoint<E: AsRef<str>>(&self, endpoint: E) -> Result<()> {
        self.channel.remove_endpoint(&address(endpoint.as_ref())?);
        Ok(())
    }

    /// The client of the KV service.
    pub fn kv_client(&self) -> KvClient {
        self.kv.clone()
    }

    /// The client of the watch service.
    pub fn watch_client(&self) -> WatchClient {
        self.watch.clone()
    }

    /// The client of the lease service.
    pub fn lease_client(&self) -> LeaseClient {
        self.lease.clone()
    }

    /// The client of the lock service.
    pub fn lock_client(&self) -> LockClient {
        self.lock.clone()
    }

    /// The client of the election service.
    pub fn election_client(&self) -> ElectionClient {
        self.election.clone()
    }

    /// The client of the auth service, which is not simulated.
    pub fn auth_client(&self) -> AuthClient {
        AuthClient::new()
    }

    /// Authenticates anew. Without a user, and there is never one here, this does nothing.
    ///
    /// # Errors
    /// None.
    pub async fn refresh_token(&self) -> Result<()> {
        Ok(())
    }

    /// Changes the user: only to none, which is what there is.
    ///
    /// # Errors
    /// With a user: Unimplemented, authentication is not simulated.
    pub async fn update_user(&mut self, user: Option<(String, String)>) -> Result<()> {
        match user {
            Some(_) => Err(not_simulated("authentication")),
            None => Ok(()),
        }
    }

    /// The client of the cluster service.
    pub fn cluster_client(&self) -> ClusterClient {
        self.cluster.clone()
    }

    /// The client of the maintenance service.
    pub fn maintenance_client(&self) -> MaintenanceClient {
        self.maintenance.clone()
    }
}

/// Keys, values and watches.
impl Client {
    /// See [`KvClient::put`].
    ///
    /// # Errors
    /// As there.
    pub async fn put(
        &mut self,
        key: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
        options: Option<PutOptions>,
    ) -> Result<PutResponse> {
        self.kv.put(key, value, options).await
    }

    /// See [`KvClient::get`].
    ///
    /// # Errors
    /// As there.
    pub async fn get(
        &mut self,
        key: impl Into<Vec<u8>>,
        options: Option<GetOptions>,
    ) -> Result<GetResponse> {
        self.kv.get(key, options).await
    }

    /// See [`KvClient::delete`].
    ///
    /// # Errors
    /// As there.
    pub async fn delete(
        &mut self,
        key: impl Into<Vec<u8>>,
        options: Option<DeleteOptions>,
    ) -> Result<DeleteResponse> {
        self.kv.delete(key, options).await
    }

    /// See [`KvClient::compact`].
    ///
    /// # Errors
    /// As there.
    pub async fn compact(
        &mut self,
        revision: i64,
        options: Option<CompactionOptions>,
    ) -> Result<CompactionResponse> {
        self.kv.compact(revision, options).await
    }

    /// See [`KvClient::txn`].
    ///
    /// # Errors
    /// As there.
    pub async fn txn(&mut self, txn: Txn) -> Result<TxnResponse> {
        self.kv.txn(txn).await
    }

    /// See [`WatchClient::watch`].
    ///
    /// # Errors
    /// As there.
    pub async fn watch(
        &mut self,
        key: impl Into<Vec<u8>>,
        options: Option<WatchOptions>,
    ) -> Result<WatchStream> {
        self.watch.watch(key, options).await
    }
}

/// Leases.
impl Client {
    /// See [`LeaseClient::grant`].
    ///
    /// # Errors
    /// As there.
    pub async fn lease_grant(
        &mut self,
        ttl: i64,
        options: Option<LeaseGrantOptions>,
    ) -> Result<LeaseGrantResponse> {
        self.lease.grant(ttl, options).await
    }

    /// See [`LeaseClient::revoke`].
    ///
    /// # Errors
    /// As there.
    pub async fn lease_revoke(&mut self, id: i64) -> Result<LeaseRevokeResponse> {
        self.lease.revoke(id).await
    }

    /// See [`LeaseClient::keep_alive`].
    ///
    /// # Errors
    /// As there.
    pub async fn lease_keep_alive(
        &mut self,
        id: i64,
    ) -> Result<(LeaseKeeper, LeaseKeepAliveStream)> {
        self.lease.keep_alive(id).await
    }

    /// See [`LeaseClient::time_to_live`].
    ///
    /// # Errors
    /// As there.
    pub async fn lease_time_to_live(
        &mut self,
        id: i64,
        options: Option<LeaseTimeToLiveOptions>,
    ) -> Result<LeaseTimeToLiveResponse> {
        self.lease.time_to_live(id, options).await
    }

    /// See [`LeaseClient::leases`].
    ///
    /// # Errors
    /// As there.
    pub async fn leases(&mut self) -> Result<LeaseLeasesResponse> {
        self.lease.leases().await
    }
}

/// The lock and the election service.
impl Client {
    /// See [`LockClient::lock`].
    ///
    /// # Errors
    /// As there.
    pub async fn lock(
        &mut self,
        name: impl Into<Vec<u8>>,
        options: Option<LockOptions>,
    ) -> Result<LockResponse> {
        self.lock.lock(name, options).await
    }

    /// See [`LockClient::unlock`].
    ///
    /// # Errors
    /// As there.
    pub async fn unlock(&mut self, key: impl Into<Vec<u8>>) -> Result<UnlockResponse> {
        self.lock.unlock(key).await
    }

    /// See [`ElectionClient::campaign`].
    ///
    /// # Errors
    /// As there.
    pub async fn campaign(
        &mut self,
        name: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
        lease: i64,
    ) -> Result<CampaignResponse> {
        self.election.campaign(name, value, lease).await
    }

    /// See [`ElectionClient::proclaim`].
    ///
    /// # Errors
    /// As there.
    pub async fn proclaim(
        &mut self,
        value: impl Into<Vec<u8>>,
        options: Option<ProclaimOptions>,
    ) -> Result<ProclaimResponse> {
        self.election.proclaim(value, options).await
    }

    /// See [`ElectionClient::leader`].
    ///
    /// # Errors
    /// As there.
    pub async fn leader(&mut self, name: impl Into<Vec<u8>>) -> Result<LeaderResponse> {
        self.election.leader(name).await
    }

    /// See [`ElectionClient::observe`].
    ///
    /// # Errors
    /// As there.
    pub async fn observe(&mut self, name: impl Into<Vec<u8>>) -> Result<ObserveStream> {
        self.election.observe(name).await
    }

    /// See [`ElectionClient::resign`].
    ///
    /// # Errors
    /// As there.
    pub async fn resign(&mut self, option: Option<ResignOptions>) -> Result<ResignResponse> {
        self.election.resign(option).await
    }
}

/// The cluster.
impl Client {
    /// See [`ClusterClient::member_list`].
    ///
    /// # Errors
    /// As there.
    pub async fn member_list(&mut self) -> Result<MemberListResponse> {
        self.cluster.member_list().await
    }

    /// See [`ClusterClient::member_add`].
    ///
    /// # Errors
    /// As there.
    pub async fn member_add<E: AsRef<str>, S: AsRef<[E]>>(
        &mut self,
        urls: S,
        options: Option<MemberAddOptions>,
    ) -> Result<MemberAddResponse> {
        let urls: Vec<String> = urls.as_ref().iter().map(|url| url.as_ref().to_owned()).collect();
        self.cluster.member_add(urls, options).await
    }

    /// See [`MaintenanceClient::status`].
    ///
    /// # Errors
    /// As there.
    pub async fn status(&mut self) -> Result<StatusResponse> {
        self.maintenance.status().await
    }
}

/// Options of connecting.
#[derive(Debug, Default, Clone)]
pub struct ConnectOptions {
    user: Option<(String, String)>,
    timeout: Option<Duration>,
    connect_timeout: Option<Duration>,
    require_leader: bool,
}

impl ConnectOptions {
    /// No limits.
    pub const fn new() -> Self {
        ConnectOptions { user: None, timeout: None, connect_timeout: None, require_leader: false }
    }

    /// Authenticates: not simulated, connecting is refused.
    pub fn with_user(mut self, name: impl Into<String>, password: impl Into<String>) -> Self {
        self.user = Some((name.into(), password.into()));
        self
    }

    /// Limits each call, connecting included; of a stream, the time to its first answer.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Limits connecting to one endpoint.
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = Some(timeout);
        self
    }

    /// HTTP/2 pings; without effect here.
    pub fn with_keep_alive(self, _interval: Duration, _timeout: Duration) -> Self {
        self
    }

    /// Pings without open requests; without effect here.
    pub fn with_keep_alive_while_idle(self, _enabled: bool) -> Self {
        self
    }

    /// Probes of TCP; without effect here.
    pub fn with_tcp_keepalive(self, _tcp_keepalive: Duration) -> Self {
        self
    }

    /// Insists on a leader: calls are refused and streams broken while the member knows none.
    pub fn with_require_leader(mut self, require_leader: bool) -> Self {
        self.require_leader = require_leader;
        self
    }
}
