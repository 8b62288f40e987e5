//! The API of etcd-client 0.18, named once: every method, option and accessor that the simulation
//! offers too, with its types.
//!
//! This compiles in both builds: in the real one `leasehold::etcd` is etcd-client itself, so a name
//! or a signature that differs does not compile there. The functions are not called; that they
//! answer alike is what other tests show. What is left out by intent stands in the table at the
//! head of `leasehold::etcd`.

mod auth;
mod cluster;
mod kv;
mod lease;
mod lock;
mod value;
mod watch;

/// Header and `take_header` of a response.
macro_rules! header {
    ($response:expr) => {{
        let response = &mut $response;
        let _: Option<&leasehold::etcd::ResponseHeader> = response.header();
        let _: Option<leasehold::etcd::ResponseHeader> = response.take_header();
    }};
}
use header;

/// What the client functions of this test give.
type Named = Result<(), leasehold::etcd::Error>;

/// The areas compile in this build, and each is there.
#[test]
fn every_service_is_named() {
    let _ = (kv::client, kv::client_of_the_service, kv::options, kv::range, kv::txn);
    let _ = (lease::client, lease::client_of_the_service, lease::stream);
    let _ = (watch::client, watch::options, watch::stream);
    let _ = (lock::lock, lock::election, lock::leader_key, lock::observe);
    let _ = (cluster::connect, cluster::members, cluster::status, cluster::maintenance);
    let _ = (auth::users, auth::roles, auth::shortcuts);
    assert_eq!(value::numbers_of_enumerations(), 8);
}
