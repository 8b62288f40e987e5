//! Scaffold.
pub mod case; pub mod history; pub mod plan; pub mod seed; pub mod time; pub mod net; pub mod point;
pub(crate) mod cluster { pub(crate) mod sim; }
