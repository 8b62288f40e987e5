//! The state of the member. Snapshots, alarms, hashes and moving the leader are not simulated.

use super::{
    Client, StatusResponse,
    absent::{absent_responses, not_simulated_calls},
    channel::Channel,
    error::Result,
    unexpected,
};
use crate::etcd::model::{request::Request, response::Response};

/// The client of the maintenance service.
#[derive(Debug, Clone)]
pub struct MaintenanceClient {
    channel: Channel,
}

impl MaintenanceClient {
    pub(super) fn new(channel: Channel) -> Self {
        MaintenanceClient { channel }
    }

    /// The state of the member.
    ///
    /// # Errors
    /// No answer.
    pub async fn status(&mut self) -> Result<StatusResponse> {
        match self.channel.call(Request::Status).await? {
            Response::Status(response) => Ok(response),
            _ => unexpected(),
        }
    }
}

not_simulated_calls!([MaintenanceClient, Client] {
    alarm(alarm_action: AlarmAction, alarm_type: AlarmType, options: Option<AlarmOptions>)
        -> AlarmResponse = "alarms";
    defragment() -> DefragmentResponse = "defragmentation";
    hash() -> HashResponse = "hashes";
    hash_kv(revision: i64) -> HashKvResponse = "hashes";
    snapshot() -> SnapshotStreaming = "snapshots";
    move_leader(target_id: u64) -> MoveLeaderResponse = "moving the leader";
});

absent_responses! {
    /// The answer about alarms.
    #[derive(Debug, Clone)]
    AlarmResponse { alarms: Vec<AlarmMember> }
    /// The answer to a defragmentation.
    #[derive(Debug, Clone)]
    DefragmentResponse {}
    /// The hash of the whole store.
    #[derive(Debug, Clone)]
    HashResponse { hash: u32 }
    /// The hash of the keys up to a revision.
    #[derive(Debug, Clone)]
    HashKvResponse { hash: u32, compact_version: i64 }
    /// A piece of a snapshot.
    #[derive(Debug, Clone)]
    SnapshotResponse { remaining_bytes: u64, blob: Vec<u8> }
    /// The answer to moving the leader.
    #[derive(Debug, Clone)]
    MoveLeaderResponse {}
}

impl AlarmResponse {
    /// The alarms that are raised.
    pub fn alarms(&self) -> &[AlarmMember] {
        &self.alarms
    }
}

impl HashResponse {
    /// The hash.
    pub fn hash(&self) -> u32 {
        self.hash
    }
}

impl HashKvResponse {
    /// The hash.
    pub fn hash(&self) -> u32 {
        self.hash
    }

    /// The compacted revision when it was made.
    pub fn compact_version(&self) -> i64 {
        self.compact_version
    }
}

impl SnapshotResponse {
    /// How many bytes are still to come.
    pub fn remaining_bytes(&self) -> u64 {
        self.remaining_bytes
    }

    /// The bytes of this piece.
    pub fn blob(&self) -> &[u8] {
        &self.blob
    }
}

/// A snapshot under way.
#[derive(Debug)]
pub struct SnapshotStreaming {
    _private: (),
}

impl SnapshotStreaming {
    /// The next piece: none, there are no snapshots.
    ///
    /// # Errors
    /// None.
    pub async fn message(&mut self) -> Result<Option<SnapshotResponse>> {
        Ok(None)
    }
}

/// What to do about alarms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AlarmAction {
    /// List them.
    Get,
    /// Raise one.
    Activate,
    /// Lower one.
    Deactivate,
}

/// What an alarm is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AlarmType {
    /// Any.
    None,
    /// The store is full.
    Nospace,
    /// The store is corrupt.
    Corrupt,
}

/// An alarm that a member has raised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlarmMember {
    member_id: u64,
    alarm: AlarmType,
}

impl AlarmMember {
    /// The member.
    pub fn member_id(&self) -> u64 {
        self.member_id
    }

    /// What it is about.
    pub fn alarm(&self) -> AlarmType {
        self.alarm
    }
}

/// Options of a request about alarms.
#[derive(Debug, Default, Clone)]
pub struct AlarmOptions {
    member: u64,
}

impl AlarmOptions {
    /// Of all members.
    pub const fn new() -> Self {
        AlarmOptions { member: 0 }
    }

    /// Of one member. It changes the options in place, as in etcd-client.
    pub fn with_member(&mut self, member: u64) {
        self.member = member;
    }
}
