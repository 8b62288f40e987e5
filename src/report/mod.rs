//! Histories for people.

mod timeline;

pub use timeline::{TimelineOptions, timeline};
