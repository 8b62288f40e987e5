//! Request ids, from which etcd also makes lease ids.
//!
//! `pkg/idutil/id.go`: 2 bytes of the member id, 5 bytes of the wall clock in milliseconds at the
//! start of the process, 1 byte of counter (which carries over into the time). So lease ids rise
//! within one life of one member, and order nothing beyond that: they are no fencing tokens.

/// Makes ids.
#[derive(Debug, Clone)]
pub(crate) struct IdGenerator {
    prefix: u64,
    suffix: u64,
}

impl IdGenerator {
    /// For a member that starts at this wall-clock time.
    pub(crate) fn new(member_id: u64, wall_ms: i64) -> Self {
        let time = (wall_ms as u64) & ((1 << 40) - 1);
        IdGenerator { prefix: member_id << 48, suffix: time << 8 }
    }

    /// The next id. Every proposal takes one.
    pub(crate) fn next(&mut self) -> u64 {
        self.suffix = self.suffix.wrapping_add(1);
        self.prefix | (self.suffix & ((1 << 48) - 1))
    }

    /// The next id as a lease id: positive and not 0 (`v3_server.go`, `LeaseGrant`).
    pub(crate) fn next_lease(&mut self) -> i64 {
        loop {
            let id = (self.next() & (u64::MAX >> 1)) as i64;
            if id != 0 {
                return id;
            }
        }
    }
}
