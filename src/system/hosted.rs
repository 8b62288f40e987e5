//! A storage under test: what it must do, and how it stands in the place of the crate's own.

use crate::{
    history::{OpKind, RowResult},
    storage::{Applied, Request, Response, StateMachine},
};

/// A storage of your own, hosted and recorded by the harness: one request after another.
///
/// The harness keeps the apply log around it, so the judge need not believe it.
pub trait StorageUnderTest: Send + 'static {
    /// Reads a key under a token; `None` is a read without one. A reader with a token enters: from
    /// then on nobody with an older token may change anything.
    fn read(&mut self, key: &str, token: Option<i64>) -> Answer;
    /// Writes a key under a token.
    fn write(&mut self, key: &str, value: &str, token: Option<i64>) -> Answer;
}

/// What a storage under test answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The value that was read; none if the key is not there.
    Value(Option<String>),
    /// The write is done.
    Written,
    /// The fence refused the token, and why.
    Refused(String),
}

/// Brings a storage under test into the place of the crate's own.
pub(crate) struct Hosted<S>(pub(crate) S);

impl<S: StorageUnderTest> StateMachine for Hosted<S> {
    fn apply(&mut self, request: &Request) -> Applied {
        let version = request.version.unwrap_or(0);
        let answer = match request.op {
            OpKind::Read => self.0.read(&request.key, request.version),
            OpKind::Write => self.0.write(&request.key, &request.val, request.version),
        };
        let admitted = |response, effect| Applied { response, result: RowResult::Admitted, effect };
        match answer {
            Answer::Value(Some(value)) => admitted(Response::ok(value, version), false),
            Answer::Value(None) => {
                admitted(Response::error(crate::storage::protocol::KEY_NOT_FOUND), false)
            }
            Answer::Written => admitted(Response::ok(request.val.clone(), version), true),
            Answer::Refused(why) => Applied::refused(why),
        }
    }
}
