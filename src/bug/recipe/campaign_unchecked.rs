//! A candidate waits until nobody is before it, and does not ask whether it is still there itself.

use crate::bug::{
    KnownBug, Needs, Site,
    lock::{LockPolicy, plain_lock},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "campaign-unchecked",
    help: "a campaign is won when nobody is before it, whether or not its own key is there",
    source: "https://github.com/cagriekin/charts/issues/326, as Campaign in etcd's election.go",
    needs: Needs::Fault,
    profile: "clocks",
    caught_by: "grant-validity",
    scenario: "fenced-leader",
    build_in: |system, site| {
        system.lock = plain_lock(CampaignUnchecked, site);
    },
};

struct CampaignUnchecked(Site);

impl LockPolicy for CampaignUnchecked {
    fn needs_own_key(&self) -> bool {
        self.0.hit();
        false
    }
}
