//! The members of the cluster. Changing them is not simulated.

use super::{
    Client, Member, MemberListResponse,
    absent::{absent_responses, not_simulated_calls},
    channel::Channel,
    error::{Result, not_simulated},
    unexpected,
};
use crate::etcd::model::{request::Request, response::Response};

/// The client of the cluster service.
#[derive(Debug, Clone)]
pub struct ClusterClient {
    channel: Channel,
}

impl ClusterClient {
    pub(super) fn new(channel: Channel) -> Self {
        ClusterClient { channel }
    }

    /// The members.
    ///
    /// # Errors
    /// No answer.
    pub async fn member_list(&mut self) -> Result<MemberListResponse> {
        match self.channel.call(Request::MemberList).await? {
            Response::MemberList(response) => Ok(response),
            _ => unexpected(),
        }
    }

    /// Not simulated.
    ///
    /// # Errors
    /// Always: Unimplemented.
    pub async fn member_add(
        &mut self,
        _urls: impl Into<Vec<String>>,
        _options: Option<MemberAddOptions>,
    ) -> Result<MemberAddResponse> {
        Err(not_simulated("member add"))
    }
}

/// Options of adding a member.
#[derive(Debug, Default, Clone)]
pub struct MemberAddOptions {
    is_learner: bool,
}

impl MemberAddOptions {
    /// A voting member.
    pub const fn new() -> Self {
        MemberAddOptions { is_learner: false }
    }

    /// A member that only learns.
    pub const fn with_is_learner(mut self) -> Self {
        self.is_learner = true;
        self
    }
}

not_simulated_calls!([ClusterClient, Client] {
    member_remove(id: u64) -> MemberRemoveResponse = "member remove";
    member_update(id: u64, url: impl Into<Vec<String>>) -> MemberUpdateResponse = "member update";
    member_promote(id: u64) -> MemberPromoteResponse = "member promote";
});

absent_responses! {
    /// The answer to adding a member.
    #[derive(Debug, Default, Clone)]
    MemberAddResponse { member: Option<Member>, members: Vec<Member> }
    /// The answer to removing a member.
    #[derive(Debug, Default, Clone)]
    MemberRemoveResponse { members: Vec<Member> }
    /// The answer to changing a member's addresses.
    #[derive(Debug, Default, Clone)]
    MemberUpdateResponse { members: Vec<Member> }
    /// The answer to making a learner vote.
    #[derive(Debug, Default, Clone)]
    MemberPromoteResponse { members: Vec<Member> }
}

impl MemberAddResponse {
    /// The new member.
    pub fn member(&self) -> Option<&Member> {
        self.member.as_ref()
    }

    /// All members.
    pub fn member_list(&self) -> &[Member] {
        &self.members
    }
}

macro_rules! members {
    ($($response:ty),*) => {
        $(impl $response {
            /// All members.
            pub fn members(&self) -> &[Member] {
                &self.members
            }
        })*
    };
}

members!(MemberRemoveResponse, MemberUpdateResponse, MemberPromoteResponse);
