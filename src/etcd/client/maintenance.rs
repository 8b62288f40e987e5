//! The state of the member. Snapshots, alarms, hashes and moving the leader are not simulated.

use super::{StatusResponse, channel::Channel, error::Result, unexpected};
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
