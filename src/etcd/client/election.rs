//! The election service of the server. Not simulated yet: its names are here, its calls are
//! refused.

use super::{
    KeyValue, ResponseHeader,
    error::{Result, not_simulated},
};

fn refused<T>() -> Result<T> {
    Err(not_simulated("the election service"))
}

/// The client of the election service.
#[derive(Debug, Clone)]
pub struct ElectionClient(());

impl ElectionClient {
    pub(super) fn new() -> Self {
        ElectionClient(())
    }

    /// Not simulated yet.
    ///
    /// # Errors
    /// Always: Unimplemented.
    pub async fn campaign(
        &mut self,
        _name: impl Into<Vec<u8>>,
        _value: impl Into<Vec<u8>>,
        _lease: i64,
    ) -> Result<CampaignResponse> {
        refused()
    }

    /// Not simulated yet.
    ///
    /// # Errors
    /// Always: Unimplemented.
    pub async fn proclaim(
        &mut self,
        _value: impl Into<Vec<u8>>,
        _options: Option<ProclaimOptions>,
    ) -> Result<ProclaimResponse> {
        refused()
    }

    /// Not simulated yet.
    ///
    /// # Errors
    /// Always: Unimplemented.
    pub async fn leader(&mut self, _name: impl Into<Vec<u8>>) -> Result<LeaderResponse> {
        refused()
    }

    /// Not simulated yet.
    ///
    /// # Errors
    /// Always: Unimplemented.
    pub async fn observe(&mut self, _name: impl Into<Vec<u8>>) -> Result<ObserveStream> {
        refused()
    }

    /// Not simulated yet.
    ///
    /// # Errors
    /// Always: Unimplemented.
    pub async fn resign(&mut self, _option: Option<ResignOptions>) -> Result<ResignResponse> {
        refused()
    }
}

/// The leader's key.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct LeaderKey {
    name: Vec<u8>,
    key: Vec<u8>,
    rev: i64,
    lease: i64,
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

macro_rules! election_responses {
    ($(#[$doc:meta] $response:ident { $($field:ident: $of:ty),* }),*) => {
        $(#[$doc]
        #[derive(Debug, Clone)]
        pub struct $response {
            header: Option<ResponseHeader>,
            $($field: Option<$of>,)*
        }

        impl $response {
            /// The header.
            pub fn header(&self) -> Option<&ResponseHeader> {
                self.header.as_ref()
            }

            /// Takes the header out.
            pub fn take_header(&mut self) -> Option<ResponseHeader> {
                self.header.take()
            }

            $(/// What was asked for.
            pub fn $field(&self) -> Option<&$of> {
                self.$field.as_ref()
            })*
        })*
    };
}

election_responses!(
    /// The answer to a campaign.
    CampaignResponse { leader: LeaderKey },
    /// The answer to a proclamation.
    ProclaimResponse {},
    /// The answer to a question for the leader.
    LeaderResponse { kv: KeyValue },
    /// The answer to a resignation.
    ResignResponse {}
);

impl CampaignResponse {
    /// Takes the leader key out.
    pub fn take_leader(&mut self) -> Option<LeaderKey> {
        self.leader.take()
    }
}

impl LeaderResponse {
    /// Takes the leader's pair out.
    pub fn take_kv(&mut self) -> Option<KeyValue> {
        self.kv.take()
    }
}

/// A stream of leaders.
#[derive(Debug)]
pub struct ObserveStream(());

impl ObserveStream {
    /// Not simulated yet.
    ///
    /// # Errors
    /// Always: Unimplemented.
    pub async fn message(&mut self) -> Result<Option<LeaderResponse>> {
        refused()
    }
}
