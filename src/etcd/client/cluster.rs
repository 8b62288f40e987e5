//! Answers about the cluster and its member.

use super::ResponseHeader;

/// The answer to a member list.
#[derive(Debug, Clone)]
pub struct MemberListResponse {
    header: ResponseHeader,
    members: Vec<Member>,
}

/// A member of the cluster.
#[derive(Debug, Clone)]
pub struct Member {
    id: u64,
}

impl Member {
    /// Its id.
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        "default"
    }
}

impl MemberListResponse {
    pub(super) fn new(revision: i64, member_id: u64) -> Self {
        let members = vec![Member { id: member_id }];
        MemberListResponse { header: ResponseHeader::new(revision), members }
    }

    /// The header.
    pub fn header(&self) -> Option<&ResponseHeader> {
        Some(&self.header)
    }

    /// The members.
    pub fn members(&self) -> &[Member] {
        &self.members
    }
}

/// The answer to a status request.
#[derive(Debug, Clone)]
pub struct StatusResponse {
    header: ResponseHeader,
    member_id: u64,
}

impl StatusResponse {
    pub(super) fn new(revision: i64, member_id: u64) -> Self {
        StatusResponse { header: ResponseHeader::new(revision), member_id }
    }

    /// The header.
    pub fn header(&self) -> Option<&ResponseHeader> {
        Some(&self.header)
    }

    /// The version that the member behaves like.
    pub fn version(&self) -> &str {
        "3.5.30"
    }

    /// Who leads: the member itself.
    pub const fn leader(&self) -> u64 {
        self.member_id
    }
}
