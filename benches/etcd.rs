//! Speed of the simulated etcd's model.
fn main() {}
