//! Leasehold: lock correctness for etcd. (Scaffold.)
pub mod concurrency;
pub mod history;
pub mod seed;
pub mod time;
