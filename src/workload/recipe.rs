//! The lock recipes that a workload can use: they differ in the calls, not in what is promised.

use super::client::Definite;
use crate::{
    concurrency::{Definiteness, Election, ElectionError, FencingToken, Mutex, Session},
    time::Instant,
};

/// How a client gets the right to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recipe {
    /// It locks and unlocks.
    Mutex,
    /// It campaigns, proclaims once, and resigns.
    Election,
}

/// A handle of one holding.
pub(super) enum Grip {
    Mutex(Mutex),
    Election(Election),
}

impl Grip {
    pub(super) fn new(recipe: Recipe, session: &Session, name: &str) -> Self {
        match recipe {
            Recipe::Mutex => Grip::Mutex(Mutex::new(session, name)),
            Recipe::Election => Grip::Election(Election::new(session, name)),
        }
    }

    pub(super) async fn acquire(&self, deadline: Instant) -> Result<(), ElectionError> {
        match self {
            Grip::Mutex(mutex) => {
                mutex.lock_until(deadline).await?;
            }
            Grip::Election(election) => {
                election.campaign_until("elected", deadline).await?;
                // The key's value changes, its create revision and so the token do not.
                let told = election.proclaim("at work").await;
                if let Err(error) = told {
                    tracing::debug!(%error, "not proclaimed");
                }
            }
        }
        Ok(())
    }

    pub(super) async fn release(&self) -> Result<(), ElectionError> {
        match self {
            Grip::Mutex(mutex) => Ok(mutex.unlock().await?),
            Grip::Election(election) => election.resign().await,
        }
    }

    pub(super) fn key(&self) -> &str {
        match self {
            Grip::Mutex(mutex) => mutex.key(),
            Grip::Election(election) => election.key(),
        }
    }

    pub(super) fn token(&self) -> Option<FencingToken> {
        match self {
            Grip::Mutex(mutex) => mutex.token(),
            Grip::Election(election) => election.token(),
        }
    }
}

impl Definite for ElectionError {
    fn is_definite(&self) -> bool {
        self.definiteness() == Definiteness::Definite
    }
}
