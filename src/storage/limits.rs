//! What a client may ask for at most, and how long it may take.

use std::time::Duration;

/// The limits of a server. The defaults admit all that `contrib/lock` was seen to take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's body; a larger one is answered with status 413.
    pub body_bytes: usize,
    /// Bytes of a key, and of a domain.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Bytes of all bodies that are under way at one time; a request beyond them gets status 503.
    pub bodies_bytes: usize,
    /// Bytes of a request's head, from its first line to its empty line and with both; a longer one
    /// is answered with status 431, one that is not is never refused for its length. White space
    /// around values is not counted. So is a head of more than 100 fields, which is hyper's limit.
    /// A head that goes on without an end is cut off at this, or at 8 KiB if this is less.
    pub head_bytes: usize,
    /// Open connections; further ones are answered with status 503 and closed.
    pub connections: usize,
    /// From the first byte of a request until its head is there; then the connection is closed.
    pub head_timeout: Duration,
    /// From the head of a request until its body is there; then it is answered with status 408.
    pub body_timeout: Duration,
    /// A connection that completes no request for this long is closed, at the latest after twice
    /// this time. It bounds idleness, and clients that do not take their answer.
    pub idle_timeout: Duration,
    /// How long a shutdown waits for requests in progress.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Limits {
            body_bytes: 16 * MIB,
            key_bytes: 16 * MIB,
            value_bytes: 16 * MIB,
            bodies_bytes: 256 * MIB,
            head_bytes: 64 * 1024,
            connections: 1024,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(5),
        }
    }
}
