//! Historic bugs of etcd that a right lock cannot mend.

pub(super) mod early_expiry;
pub(super) mod missed_delete;
pub(super) mod renewal_revives;
pub(super) mod restored_without_bump;
pub(super) mod revision_regress;
pub(super) mod revoke_not_atomic;
pub(super) mod stuck_expiry;
