//! What people read: texts made from histories and verdicts.
//!
//! Pure functions to text. Where the text goes is the business of `cli` and `testing`.

pub mod timeline;
mod words;

pub use timeline::Timeline;
