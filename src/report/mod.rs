//! What people read: texts made from histories and verdicts.
//!
//! Pure functions to text. Where the text goes is the business of `cli` and `testing`.

pub mod html;
pub mod timeline;
mod window;
mod words;

pub use timeline::Timeline;
