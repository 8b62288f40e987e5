//! Historic bugs of etcd that a right lock cannot mend.

pub(super) mod early_expiry;
pub(super) mod renewal_revives;
pub(super) mod revoke_not_atomic;
