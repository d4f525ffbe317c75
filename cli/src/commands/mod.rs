//! One file per command: its options, what it asks the core, and how the answer is shown.

pub mod cancel;
pub mod dev;
pub mod enqueue;
pub mod grant;
pub mod job;
pub mod jobs;
pub mod migrate;
pub mod preview_policy;
pub mod prune;
pub mod redrive;
pub mod status;
pub mod workers;
