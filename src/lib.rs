//! Leasehold: lock correctness for etcd. (Scaffold.)
pub mod history;
pub mod net;
pub mod point;
pub mod seed;
pub mod time;
