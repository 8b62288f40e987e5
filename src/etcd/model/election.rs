//! The election service of the member.
//!
//! `server/etcdserver/api/v3election/election.go` over `client/v3/concurrency/election.go`. The
//! leader is the key of least create revision under `name/`. A campaign does not look at its own
//! key after it has waited, in no version: it can win with a key that is gone.

use std::time::Duration;

use super::{
    Answer, Model, StreamId,
    error::Refusal,
    request::RequestOp,
    response::{
        CampaignResponse, LeaderKey, LeaderResponse, ProclaimResponse, ResignResponse, TxnResponse,
    },
    service::{
        Place, Purpose, delete, first_created, first_pair, if_created_at, key_of, of_key, put,
    },
};

impl Model {
    /// Answers a campaign, or lets it wait. A campaign with the lease of another takes its place
    /// and proclaims its value.
    pub(super) fn campaign(
        &mut self,
        now: Duration,
        stream: StreamId,
        name: Vec<u8>,
        value: Vec<u8>,
        lease: i64,
    ) -> Option<Answer> {
        match self.candidate(now, name, value, lease) {
            Ok((place, response)) => self.take_turn(stream, place, Purpose::Campaign(response)),
            Err(refusal) => Some(Err(refusal.in_service())),
        }
    }

    /// The place of a campaign and the answer that it will get. The header is of its first
    /// transaction, even if a proclamation came after that.
    fn candidate(
        &mut self,
        now: Duration,
        name: Vec<u8>,
        value: Vec<u8>,
        lease: i64,
    ) -> Result<(Place, CampaignResponse), Refusal> {
        let lease = self.session(now, lease)?;
        let (prefix, key) = key_of(&name, lease);
        let success = vec![put(&key, value.clone(), lease)];
        let failure = vec![RequestOp::Range(of_key(&key))];
        let response = self.txn(now, if_created_at(&key, 0, success, failure))?;
        let created = response.header.map_or(0, |header| header.revision);
        let known = first_pair(response.responses.first());
        let revision = known.map_or(created, |own| own.create_revision);
        if known.is_some_and(|own| own.value != value) {
            let proclaimed = self.put_created_at(now, &key, revision, value, lease);
            if let Err(refusal) = proclaimed {
                // Only a key of that name that does not hang on the lease leads here; etcd resigns.
                let _ = self.delete_created_at(now, &key, revision);
                return Err(refusal);
            }
        }
        let leader = LeaderKey { name, key: key.clone(), rev: revision, lease };
        let answer = CampaignResponse { header: response.header, leader: Some(leader) };
        Ok((Place { prefix, key, revision }, answer))
    }

    fn put_created_at(
        &mut self,
        now: Duration,
        key: &[u8],
        revision: i64,
        value: Vec<u8>,
        lease: i64,
    ) -> Result<TxnResponse, Refusal> {
        let put = vec![put(key, value, lease)];
        let response = self.txn(now, if_created_at(key, revision, put, Vec::new()))?;
        if response.succeeded { Ok(response) } else { Err(Refusal::NotLeader) }
    }

    /// Deletes a key if it is still the one that was created in this revision.
    pub(super) fn delete_created_at(
        &mut self,
        now: Duration,
        key: &[u8],
        revision: i64,
    ) -> Result<TxnResponse, Refusal> {
        let delete = vec![RequestOp::DeleteRange(delete(key))];
        self.txn(now, if_created_at(key, revision, delete, Vec::new()))
    }

    /// Gives the leader's key a new value. It fails if the key is not there any more.
    pub(super) fn proclaim(
        &mut self,
        now: Duration,
        leader: Option<LeaderKey>,
        value: Vec<u8>,
    ) -> Result<ProclaimResponse, Refusal> {
        let leader = leader.ok_or(Refusal::MissingLeader)?;
        let lease = self.session(now, leader.lease)?;
        let response = self
            .put_created_at(now, &leader.key, leader.rev, value, lease)
            .map_err(Refusal::in_service)?;
        Ok(ProclaimResponse { header: response.header })
    }

    /// Deletes the leader's key. It is no error if it is not there any more.
    pub(super) fn resign(
        &mut self,
        now: Duration,
        leader: Option<LeaderKey>,
    ) -> Result<ResignResponse, Refusal> {
        let leader = leader.ok_or(Refusal::MissingLeader)?;
        self.session(now, leader.lease)?;
        let response =
            self.delete_created_at(now, &leader.key, leader.rev).map_err(Refusal::in_service)?;
        Ok(ResignResponse { header: response.header })
    }

    /// The leader of an election.
    pub(super) fn leader(&mut self, name: &[u8]) -> Result<LeaderResponse, Refusal> {
        let prefix = [name, b"/"].concat();
        let found = self.range(&first_created(&prefix)).map_err(Refusal::in_service)?;
        let kv = found.kvs.into_iter().next().ok_or(Refusal::NoLeader)?;
        Ok(LeaderResponse { header: found.header, kv: Some(kv) })
    }
}
