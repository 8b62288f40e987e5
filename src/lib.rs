//! Scaffold.
pub mod case;
pub mod etcd;
pub mod history;
pub mod net;
pub mod plan;
pub mod point;
pub mod seed;
pub mod time;
pub(crate) mod cluster {
    pub(crate) mod sim;
}
